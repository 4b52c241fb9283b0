//! What the services of this listener share: each has one method, which reads a message within its limits, hands it on
//! and answers after the commit.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::HttpBody;
use axum::http;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::codec::CompressionEncoding::{Gzip, Zstd};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tower::Service;

use super::super::budget::{Budget, Reservation};
use super::super::intake::Refusal;
use super::super::limits::{ByteLimit, Limits};
use super::super::meter::Transport;
use super::codec::RawMessageCodec;
use super::status::Answers;

/// The method `Export` of a service.
pub(super) trait Export: Clone + Send + Sync + 'static {
    /// The service's full name.
    const SERVICE: &'static str;
    /// How its calls are counted.
    const TRANSPORT: Transport;
    /// How its refusals are written.
    const ANSWERS: Answers;

    /// The bounds of every listener.
    fn limits(&self) -> &Arc<Limits>;

    /// The memory that all listeners share.
    fn budget(&self) -> &Budget;

    /// The bound of one message.
    fn message_limit(&self) -> ByteLimit;

    /// Takes one message, which `reservation` holds.
    ///
    /// # Errors
    /// The status to answer, already counted.
    fn take(self, message: Bytes, reservation: Arc<Reservation>)
    -> BoxFuture<'static, Result<Response<Bytes>, Status>>;
}

/// The service of one method.
#[derive(Clone)]
pub(super) struct ExportService<E>(pub(super) E);

impl<E: Export> NamedService for ExportService<E> {
    const NAME: &'static str = E::SERVICE;
}

impl<E: Export> Service<http::Request<Body>> for ExportService<E> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = self.0.clone();
        Box::pin(async move { Ok(answer(method, request).await) })
    }
}

async fn answer<E: Export>(method: E, request: http::Request<Body>) -> http::Response<Body> {
    if !request.uri().path().ends_with("/Export") {
        return Status::unimplemented(format!("{} has the method Export only", E::SERVICE)).into_http();
    }
    let limit = method.message_limit();
    let mut grpc = Grpc::new(RawMessageCodec)
        .accept_compressed(Gzip)
        .accept_compressed(Zstd)
        .send_compressed(Gzip)
        .send_compressed(Zstd)
        .max_decoding_message_size(limit.bytes);
    let reservation = Arc::new(method.budget().reserve());
    let request = request.map(|body| MeteredBody::<E>::new(body, &method, Arc::clone(&reservation)));
    let exported = tower::service_fn(move |message: Request<Bytes>| {
        method.clone().take(message.into_inner(), Arc::clone(&reservation))
    });
    let (response, refused) = E::ANSWERS.correct(grpc.unary(exported, request).await, &limit);
    if let Some(reason) = refused {
        E::TRANSPORT.refused(reason);
    }
    response
}

/// Counts a refusal under a reason of its own and turns it into the status that answers it.
pub(super) fn refused_as<E: Export>(refusal: Refusal, reason: &'static str) -> Status {
    E::TRANSPORT.refused(reason);
    E::ANSWERS.refusal(refusal)
}

/// The same under the refusal's own name.
pub(super) fn refused<E: Export>(refusal: Refusal) -> Status {
    let reason = refusal.reason();
    refused_as::<E>(refusal, reason)
}

/// A request body that reserves what it reads, and that must arrive in time.
struct MeteredBody<E> {
    body: Body,
    reservation: Arc<Reservation>,
    deadline: Pin<Box<Sleep>>,
    limits: Arc<Limits>,
    method: std::marker::PhantomData<fn() -> E>,
}

impl<E: Export> MeteredBody<E> {
    fn new(body: Body, method: &E, reservation: Arc<Reservation>) -> Self {
        let limits = Arc::clone(method.limits());
        let deadline = Box::pin(tokio::time::sleep(limits.body_timeout));
        Self { body, reservation, deadline, limits, method: std::marker::PhantomData }
    }

    fn overdue(&self) -> Refusal {
        let timeout = self.limits.body_timeout;
        Refusal::Overloaded {
            message: format!(
                "the message did not arrive within {timeout:?}: try again, in smaller batches if that repeats"
            ),
            retry_after: self.limits.retry_after,
        }
    }
}

impl<E: Export> HttpBody for MeteredBody<E> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx)? else {
            ready!(self.deadline.as_mut().poll(cx));
            return Poll::Ready(Some(Err(refused_as::<E>(self.overdue(), "too_slow"))));
        };
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        if let Some(data) = frame.data_ref()
            && let Err(refusal) = self.reservation.grow(data.len())
        {
            return Poll::Ready(Some(Err(refused::<E>(refusal))));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
