//! OpenInference: spans of kind INTERNAL, with what they are in an attribute.

use super::Reading;
use crate::scalar;
use model::{Span, SpanKind};

const DIALECT: &str = "openinference";

const KIND: &str = "openinference.span.kind";

/// The attributes by which it is recognised.
pub const KEYS: &[&str] = &[KIND];

/// Those that ask a model. Others (chains, agents, tools) hold calls and much else, and own no time.
const MODEL_KINDS: &[&str] = &["LLM", "EMBEDDING", "RERANKER"];

pub fn read(span: &Span) -> Option<Reading> {
    let kind = span.attributes.get(KIND).and_then(scalar::text)?;
    if span.kind == SpanKind::Server || !MODEL_KINDS.contains(&kind.as_ref()) {
        return None;
    }
    Some(Reading::model_call(DIALECT, "model call"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, FirstTokenSource, sample};
    use model::{Dimension, ServerPhase, Value};

    #[test]
    fn a_model_call_tells_tokens_and_its_first_token() {
        let attributes = [
            (KIND, sample::text("LLM")),
            ("llm.model_name", sample::text("m-7b")),
            ("llm.token_count.prompt", Value::Int(412)),
            ("llm.token_count.completion", Value::Int(180)),
        ];
        let span = sample::span("ChatCompletion", SpanKind::Internal, 900, &attributes);
        let reading = dialect::read(&sample::with_event(span, "First Token Stream Event", 120));
        assert_eq!((reading.dialect.as_ref(), reading.phase), (DIALECT, Some(ServerPhase::Provider)));
        assert!(reading.genai_client);
        assert_eq!((reading.input_tokens, reading.output_tokens), (Some(412), Some(180)));
        assert_eq!(reading.dimensions.get(Dimension::Model), Some("m-7b"));
        let first = reading.first_token.map(|token| (token.offset.0, token.source));
        assert_eq!(first, Some((120_000_000, FirstTokenSource::FirstChunk)));
    }

    #[test]
    fn what_holds_calls_is_none() {
        for (kind, value) in [(SpanKind::Internal, "CHAIN"), (SpanKind::Internal, "AGENT"), (SpanKind::Server, "LLM")] {
            let reading = dialect::read(&sample::span("x", kind, 5, &[(KIND, sample::text(value))]));
            assert_eq!((reading.phase, reading.genai_client), (None, false), "{value}");
        }
    }
}
