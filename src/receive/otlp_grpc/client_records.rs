//! The service of client records.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use tonic::{Response, Status};

use super::super::budget::{Budget, Reservation};
use super::super::intake::Refusal;
use super::super::limits::{ByteLimit, Limits};
use super::super::meter::Transport;
use super::super::otlp::HEAVY_BYTES;
use super::super::records::{RecordEndpoint, typed};
use super::service::{Export, refused};
use super::status::Answers;

impl Export for RecordEndpoint {
    const SERVICE: &'static str = typed::SERVICE;
    const TRANSPORT: Transport = Transport::RecordsGrpc;
    const ANSWERS: Answers = Answers { field: "records" };

    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn message_limit(&self) -> ByteLimit {
        ByteLimit { subject: "the message of client records", ..self.limits.grpc_message }
    }

    fn take(
        self,
        message: Bytes,
        reservation: Arc<Reservation>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Status>> {
        Box::pin(async move {
            let bytes = message.len();
            let read = read(message, self.message_limit(), &reservation).await;
            let answered = match read {
                Ok(message) => answer(&self, message, bytes).await,
                Err(refusal) => Err(refusal),
            };
            answered.map(Response::new).map_err(refused::<Self>)
        })
    }
}

/// Takes the records apart; those of a large message not on the threads that serve sockets, since each is decoded.
async fn read(message: Bytes, limit: ByteLimit, reservation: &Arc<Reservation>) -> Result<typed::Message, Refusal> {
    if message.len() <= HEAVY_BYTES / 8 {
        return typed::read(message, &limit, reservation);
    }
    let held = Arc::clone(reservation);
    let reading = tokio::task::spawn_blocking(move || typed::read(message, &limit, &held));
    let failed = |cause| Refusal::Invalid { message: format!("reading the message failed: {cause}") };
    reading.await.unwrap_or_else(|cause| Err(failed(cause)))
}

async fn answer(endpoint: &RecordEndpoint, message: typed::Message, bytes: usize) -> Result<Bytes, Refusal> {
    let mut answer = endpoint.upload(Transport::RecordsGrpc, message.records, bytes).await?;
    answer.ignored_fields += message.unknown_fields;
    Ok(typed::write(answer))
}
