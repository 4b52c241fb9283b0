//! OTLP's trace service.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::SERVICE_NAME;
use prost::Message;
use tonic::{Response, Status};

use super::super::budget::{Budget, Reservation};
use super::super::limits::{ByteLimit, Limits};
use super::super::meter::Transport;
use super::super::otlp::{HEAVY_BYTES, SpanEndpoint, decode_protobuf, weight};
use super::service::{Export, refused};
use super::status::Answers;

impl Export for SpanEndpoint {
    const SERVICE: &'static str = SERVICE_NAME;
    const TRANSPORT: Transport = Transport::OtlpGrpc;
    const ANSWERS: Answers = Answers { field: "resource_spans" };

    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn message_limit(&self) -> ByteLimit {
        self.limits.grpc_message
    }

    fn take(
        self,
        message: Bytes,
        reservation: Arc<Reservation>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Status>> {
        Box::pin(export(self, message, reservation))
    }
}

async fn export(
    endpoint: SpanEndpoint,
    message: Bytes,
    reservation: Arc<Reservation>,
) -> Result<Response<Bytes>, Status> {
    let bytes = message.len();
    reservation.grow(bytes + weight::of_protobuf(&message)).map_err(refused::<SpanEndpoint>)?;
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
        SpanEndpoint::ANSWERS.invalid(reason)
    })?;
    let reply = endpoint.export(Transport::OtlpGrpc, decoded, bytes).await;
    let reply = reply.map_err(|refusal| SpanEndpoint::ANSWERS.refusal(refusal))?;
    let is_empty = reply.partial_success.is_none();
    let mut response = Response::new(Bytes::from(reply.encode_to_vec()));
    if is_empty {
        // Nothing to compress: saves setting up a compressor for each call.
        response.disable_compression();
    }
    Ok(response)
}
