//! What the two OTLP doors share: decoding, handing on, and the reply that the protocol wants.

pub mod json;
pub mod weight;

use std::sync::Arc;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;

use super::budget::Budget;
use super::intake::{Refusal, SpanIntake, SpanOutcome};
use super::limits::Limits;
use super::meter::{SaidOnce, Transport};

/// A body of more bytes is decoded off the threads that serve sockets.
pub const HEAVY_BYTES: usize = 1024 * 1024;

/// Remarks on exporters of signals that are not taken here.
static METRICS_SAID: SaidOnce = SaidOnce::new();
static LOGS_SAID: SaidOnce = SaidOnce::new();

/// Hands decoded requests on, for any OTLP door. Clones share everything.
#[derive(Clone)]
pub struct SpanDoor {
    pub(super) intake: Arc<dyn SpanIntake>,
    pub(super) limits: Arc<Limits>,
    pub(super) budget: Budget,
}

/// A decoded request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// What it asks to store.
    pub request: ExportTraceServiceRequest,
    /// What its sender should know even where everything was taken; empty where there is nothing to say.
    pub warning: &'static str,
}

impl SpanDoor {
    /// A door that hands on to `intake`.
    pub fn new(intake: Arc<dyn SpanIntake>, limits: Arc<Limits>, budget: Budget) -> Self {
        Self { intake, limits, budget }
    }

    /// Hands a decoded request on, and resolves when it is durable. A request without spans is a success at once.
    ///
    /// # Errors
    /// The intake's refusal.
    pub async fn export(
        &self,
        transport: Transport,
        decoded: Decoded,
        bytes: usize,
    ) -> Result<ExportTraceServiceResponse, Refusal> {
        let spans = span_count(&decoded.request);
        let outcome = if spans == 0 {
            SpanOutcome { rejected: 0, message: decoded.warning.to_owned() }
        } else {
            self.intake.accept(decoded.request).await.inspect_err(|refusal| transport.refused(refusal.reason()))?
        };
        transport.accepted(bytes, spans.saturating_sub(outcome.rejected), outcome.rejected);
        Ok(reply(outcome))
    }
}

/// Decodes the binary form.
///
/// # Errors
/// What is wrong with the message, and what its sender can do.
pub fn decode_protobuf(bytes: Bytes) -> Result<Decoded, String> {
    let request = ExportTraceServiceRequest::decode(bytes).map_err(|cause| {
        format!("the body is not an ExportTraceServiceRequest in protobuf: {cause}; check that it is sent whole")
    })?;
    Ok(Decoded { request, warning: "" })
}

/// Full success leaves `partial_success` unset; a message without rejected spans is a warning.
fn reply(outcome: SpanOutcome) -> ExportTraceServiceResponse {
    if outcome.rejected == 0 && outcome.message.is_empty() {
        return ExportTraceServiceResponse { partial_success: None };
    }
    let partial = ExportTracePartialSuccess {
        rejected_spans: i64::try_from(outcome.rejected).unwrap_or(i64::MAX),
        error_message: outcome.message,
    };
    ExportTraceServiceResponse { partial_success: Some(partial) }
}

fn span_count(request: &ExportTraceServiceRequest) -> u64 {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.map(|scope| scope.spans.len() as u64).sum()
}

/// Says what to change for an exporter of metrics or logs, and logs it the first time. `None` for any other path.
pub(super) fn other_signal(path: &str) -> Option<&'static str> {
    let (signal, said, answer) = match path {
        "/v1/metrics" | "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => {
            ("metrics", &METRICS_SAID, "tracejoin takes traces only: remove it from the pipeline that exports metrics")
        }
        "/v1/logs" | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => {
            ("logs", &LOGS_SAID, "tracejoin takes traces only: remove it from the pipeline that exports logs")
        }
        _ => return None,
    };
    if said.is_first() {
        tracing::warn!(signal, path, "an exporter sends a signal that is not taken here, said once");
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn success_has_no_partial_success_at_all() {
        assert_eq!(reply(SpanOutcome::default()).partial_success, None);
    }

    #[test]
    fn a_message_alone_is_a_warning() {
        let warned = reply(SpanOutcome { rejected: 0, message: "old names".to_owned() }).partial_success;
        let expected = ExportTracePartialSuccess { rejected_spans: 0, error_message: "old names".to_owned() };
        assert_eq!(warned, Some(expected));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_protobuf_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            if let Err(reason) = decode_protobuf(Bytes::from(bytes)) {
                prop_assert!(reason.contains("ExportTraceServiceRequest"));
            }
        }
    }
}
