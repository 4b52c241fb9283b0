//! The trace service: reads one message, decodes it, hands it on, answers after the commit.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::HttpBody;
use axum::http;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::SERVICE_NAME as TRACE_SERVICE;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::codec::CompressionEncoding::{Gzip, Zstd};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tower::Service;

use super::super::budget::Reservation;
use super::super::intake::Refusal;
use super::super::limits::Limits;
use super::super::meter::Transport;
use super::super::otlp::{HEAVY_BYTES, SpanDoor, decode_protobuf, weight};
use super::codec::RawMessageCodec;
use super::status::{correct, invalid};

/// `opentelemetry.proto.collector.trace.v1.TraceService`.
#[derive(Clone)]
pub(super) struct TraceService {
    door: SpanDoor,
}

impl TraceService {
    pub(super) fn new(door: SpanDoor) -> Self {
        Self { door }
    }
}

impl NamedService for TraceService {
    const NAME: &'static str = TRACE_SERVICE;
}

impl Service<http::Request<Body>> for TraceService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let door = self.door.clone();
        Box::pin(async move { Ok(answer(door, request).await) })
    }
}

async fn answer(door: SpanDoor, request: http::Request<Body>) -> http::Response<Body> {
    if !request.uri().path().ends_with("/Export") {
        return Status::unimplemented(format!("{TRACE_SERVICE} has the method Export only")).into_http();
    }
    let limit = door.limits.grpc_message;
    let mut grpc = Grpc::new(RawMessageCodec)
        .accept_compressed(Gzip)
        .accept_compressed(Zstd)
        .send_compressed(Gzip)
        .send_compressed(Zstd)
        .max_decoding_message_size(limit.bytes);
    let reservation = Arc::new(door.budget.reserve());
    let request = request.map(|body| MeteredBody::new(body, Arc::clone(&door.limits), Arc::clone(&reservation)));
    let exported = tower::service_fn(move |message: Request<Bytes>| {
        export(door.clone(), message.into_inner(), Arc::clone(&reservation))
    });
    let (response, refused) = correct(grpc.unary(exported, request).await, &limit);
    if let Some(reason) = refused {
        Transport::OtlpGrpc.refused(reason);
    }
    response
}

async fn export(
    door: SpanDoor,
    message: Bytes,
    reservation: Arc<Reservation>,
) -> Result<Response<ExportTraceServiceResponse>, Status> {
    let bytes = message.len();
    let weighed = reservation.grow(bytes + weight::of_protobuf(&message));
    weighed.inspect_err(|refusal| Transport::OtlpGrpc.refused(refusal.reason()))?;
    let decoded = if bytes > HEAVY_BYTES {
        let held = Arc::clone(&reservation);
        let decoding = tokio::task::spawn_blocking(move || {
            let decoded = decode_protobuf(message);
            // Held until here even where the caller has gone.
            drop(held);
            decoded
        });
        decoding.await.unwrap_or_else(|cause| Err(format!("decoding failed: {cause}")))
    } else {
        decode_protobuf(message)
    };
    let decoded = decoded.map_err(|reason| {
        Transport::OtlpGrpc.refused("undecodable");
        invalid(reason)
    })?;
    let reply = door.export(Transport::OtlpGrpc, decoded, bytes).await?;
    let is_empty = reply.partial_success.is_none();
    let mut response = Response::new(reply);
    if is_empty {
        // Nothing to compress: saves setting up a compressor for each call.
        response.disable_compression();
    }
    Ok(response)
}

/// A request body that reserves what it reads, and that must arrive in time.
struct MeteredBody {
    body: Body,
    reservation: Arc<Reservation>,
    deadline: Pin<Box<Sleep>>,
    limits: Arc<Limits>,
}

impl MeteredBody {
    fn new(body: Body, limits: Arc<Limits>, reservation: Arc<Reservation>) -> Self {
        Self { body, reservation, deadline: Box::pin(tokio::time::sleep(limits.body_timeout)), limits }
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

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx)? else {
            ready!(self.deadline.as_mut().poll(cx));
            return Poll::Ready(Some(Err(refused(self.overdue(), "too_slow"))));
        };
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        if let Some(data) = frame.data_ref()
            && let Err(refusal) = self.reservation.grow(data.len())
        {
            let reason = refusal.reason();
            return Poll::Ready(Some(Err(refused(refusal, reason))));
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

fn refused(refusal: Refusal, reason: &'static str) -> Status {
    Transport::OtlpGrpc.refused(reason);
    refusal.into()
}
