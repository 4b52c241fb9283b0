//! What the two OTLP endpoints share: decoding, handing on, and the reply that the protocol wants.

pub mod json;
mod text;
pub mod weight;
mod wire;

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

/// As deep as messages are followed inside one another: as deep as the decoder goes.
const NESTING: usize = 100;

/// Remarks on exporters of signals that are not taken here.
static METRICS_SAID: SaidOnce = SaidOnce::new();
static LOGS_SAID: SaidOnce = SaidOnce::new();

/// Hands decoded requests on, for any OTLP endpoint. Clones share everything.
#[derive(Clone)]
pub struct SpanEndpoint {
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
    pub warning: String,
}

impl SpanEndpoint {
    /// An endpoint that hands on to `intake`.
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
        let Decoded { request, warning } = decoded;
        let spans = span_count(&request);
        let mut outcome = if spans == 0 {
            SpanOutcome::default()
        } else {
            self.intake.accept(request).await.inspect_err(|refusal| transport.refused(refusal.reason()))?
        };
        transport.accepted(bytes, spans.saturating_sub(outcome.rejected), outcome.rejected);
        if !outcome.message.is_empty() && !warning.is_empty() {
            outcome.message.push_str("; ");
        }
        outcome.message.push_str(&warning);
        Ok(reply(outcome))
    }
}

/// Decodes the binary form. Text that is not UTF-8 is repaired rather than refused, since a refusal would take the whole
/// request with it.
///
/// # Errors
/// What is wrong with the message, and what its sender can do.
pub fn decode_protobuf(bytes: Bytes) -> Result<Decoded, String> {
    let fault = match ExportTraceServiceRequest::decode(bytes.clone()) {
        Ok(request) => return Ok(Decoded { request, warning: String::new() }),
        Err(fault) => fault,
    };
    let mut message = Vec::from(bytes);
    let repaired = text::repair(&mut message);
    if repaired > 0
        && let Ok(request) = ExportTraceServiceRequest::decode(message.as_slice())
    {
        let warning =
            format!("{repaired} texts are not UTF-8, as protobuf demands: their invalid bytes are kept as '?'");
        return Ok(Decoded { request, warning });
    }
    Err(format!("the body is not an ExportTraceServiceRequest in protobuf: {fault}; check that it is sent whole"))
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
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

    #[test]
    fn text_that_is_not_utf_8_costs_no_span() {
        let attribute = |value: &str| KeyValue {
            key: "k".to_owned(),
            value: Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) }),
            ..KeyValue::default()
        };
        let span = |name: &str, value: &str| Span {
            name: name.to_owned(),
            attributes: vec![attribute(value)],
            ..Span::default()
        };
        let scope = ScopeSpans { spans: vec![span("good", "v"), span("bad#", "v##")], ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
        let mut bytes = ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec();
        for byte in &mut bytes {
            if *byte == b'#' {
                *byte = 0xff;
            }
        }
        let decoded = decode_protobuf(Bytes::from(bytes)).expect("it can be repaired");
        let spans = &decoded.request.resource_spans[0].scope_spans[0].spans;
        assert_eq!(*spans, [span("good", "v"), span("bad?", "v??")]);
        assert!(decoded.warning.starts_with("2 texts are not UTF-8"), "{}", decoded.warning);
    }

    /// Counts the lines that are logged while it is the subscriber.
    #[derive(Clone, Default)]
    struct LineCount(Arc<AtomicUsize>);

    impl std::io::Write for LineCount {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(line.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_exporter_of_another_signal_is_logged_once() {
        let lines = LineCount::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..3 {
                assert!(other_signal("/v1/metrics").is_some_and(|answer| answer.contains("metrics")));
                assert!(other_signal("/v1/logs").is_some_and(|answer| answer.contains("logs")));
                assert_eq!(other_signal("/v1/traces"), None);
            }
        });
        assert_eq!(lines.0.load(Ordering::Relaxed), 2);
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
