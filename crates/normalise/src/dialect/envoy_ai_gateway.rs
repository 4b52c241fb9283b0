//! Envoy's AI gateway: an external processor whose span lasts from the request's body to the end of the stream, under
//! OpenInference's names (`ChatCompletion` …, INTERNAL) or OpenTelemetry's (`chat {model}`, CLIENT). It sees the
//! upstream call from beside Envoy, so Envoy's own spans may stand around it or next to it.
//!
//! Checked against its tracer (scope `envoyproxy/ai-gateway`, default service `ai-gateway`). It adds its first-token
//! event when the span ends, with the time of that, so that event tells nothing here.

use std::borrow::Cow;

use super::{Reading, Role, genai, openinference};
use model::Span;

const DIALECT: &str = "envoy-ai-gateway";

const SCOPE: &str = "envoyproxy/ai-gateway";

/// What the service is called unless told otherwise: a pipeline may drop the scope.
const SERVICE: &str = "ai-gateway";

/// Reads one span. Tool traffic passes here too, and is no call of a model.
pub fn read(span: &Span) -> Option<Reading> {
    if span.scope.name != SCOPE && span.resource.service() != SERVICE {
        return None;
    }
    let call = openinference::read(span).or_else(|| genai::read(span))?;
    let dialect = Cow::Borrowed(DIALECT);
    Some(Reading { dialect, role: Role::Observer, root: true, no_first_token: true, ..call })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{ServerPhase, SpanKind};

    #[test]
    fn it_observes_a_call_and_its_first_token_event_is_none() {
        let openinference = [("openinference.span.kind", sample::text("LLM"))];
        let genai = [("gen_ai.operation.name", sample::text("chat"))];
        for (name, kind, attributes) in
            [("ChatCompletion", SpanKind::Internal, &openinference[..]), ("chat m-7b", SpanKind::Client, &genai)]
        {
            let span = sample::with_scope(sample::span(name, kind, 900, attributes), SCOPE);
            let reading = dialect::read(&sample::with_event(span, "First Token Stream Event", 100));
            assert_eq!((reading.dialect.as_ref(), reading.role), (DIALECT, Role::Observer), "{name}");
            assert_eq!((reading.phase, reading.first_token), (Some(ServerPhase::Provider), None), "{name}");
        }
    }

    #[test]
    fn tool_traffic_is_no_call() {
        let span = sample::with_scope(sample::span("tools/call", SpanKind::Client, 5, &[]), SCOPE);
        assert_eq!(dialect::read(&span).phase, None);
    }
}
