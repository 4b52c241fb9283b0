//! Envoy's AI gateway: an external processor whose span lasts from the request's body to the end of the stream, under
//! OpenInference's names (`ChatCompletion` …, INTERNAL) or OpenTelemetry's (`chat {model}`, CLIENT). It sees the
//! upstream call from beside Envoy, so Envoy's own spans may stand around it or next to it.
//!
//! Checked against its tracer (scope `envoyproxy/ai-gateway`, default service `ai-gateway`). It adds its first-token
//! event when the span ends, with the time of that, so that event tells nothing here.

use super::{Reading, Role};
use crate::model::{ServerPhase, Span, SpanKind};
use crate::normalise::scalar;

const DIALECT: &str = "envoy-ai-gateway";

const SCOPE: &str = "ai-gateway";

const OPENINFERENCE_KIND: &str = "openinference.span.kind";
const OPERATION: &str = "gen_ai.operation.name";

/// The attributes by which its calls of models are recognised.
pub const KEYS: &[&str] = &[OPENINFERENCE_KIND, OPERATION];

/// Reads one span.
pub fn read(span: &Span) -> Option<Reading> {
    if !span.scope.name.contains(SCOPE) || span.kind == SpanKind::Server {
        return None;
    }
    let told = |key: &str| span.attributes.get(key).and_then(scalar::text);
    let asks_model = told(OPENINFERENCE_KIND).is_some_and(|kind| kind != "TOOL" && kind != "CHAIN" && kind != "AGENT");
    if !asks_model && told(OPERATION).is_none() {
        // Tool traffic passes here too.
        return None;
    }
    Some(Reading {
        role: Role::Observer,
        root: true,
        phase: Some(ServerPhase::Provider),
        genai_client: true,
        no_first_token: true,
        ..Reading::of(DIALECT, "upstream call")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::dialect::{self, sample};

    #[test]
    fn it_observes_a_call_and_its_first_token_event_is_none() {
        let openinference = [("openinference.span.kind", sample::text("LLM"))];
        let genai = [("gen_ai.operation.name", sample::text("chat"))];
        for (name, kind, attributes) in
            [("ChatCompletion", SpanKind::Internal, &openinference[..]), ("chat m-7b", SpanKind::Client, &genai)]
        {
            let span = sample::with_scope(sample::span(name, kind, 900, attributes), "envoyproxy/ai-gateway");
            let reading = dialect::read(&sample::with_event(span, "First Token Stream Event", 100));
            assert_eq!((reading.dialect.as_ref(), reading.role), (DIALECT, Role::Observer), "{name}");
            assert_eq!((reading.phase, reading.first_token), (Some(ServerPhase::Provider), None), "{name}");
        }
    }

    #[test]
    fn tool_traffic_is_no_call() {
        let span = sample::with_scope(sample::span("tools/call", SpanKind::Client, 5, &[]), "envoyproxy/ai-gateway");
        assert_eq!(dialect::read(&span).phase, None);
    }
}
