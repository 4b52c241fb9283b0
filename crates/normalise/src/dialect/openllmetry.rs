//! OpenLLMetry: client spans such as `openai.chat`, with an event for each chunk of a stream, the first of which may
//! carry no token. Its spans for workflows, tasks and tools hold calls and own no time.

use super::Reading;
use model::{Span, SpanKind};

const DIALECT: &str = "openllmetry";

const TYPE: &str = "llm.request.type";

/// The attributes by which it is recognised.
pub const KEYS: &[&str] = &[TYPE];

pub fn read(span: &Span) -> Option<Reading> {
    let call = span.kind == SpanKind::Client && span.attributes.has(TYPE);
    call.then(|| Reading::model_call(DIALECT, "model call"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, FirstTokenSource, sample};
    use model::{ServerPhase, Value};

    #[test]
    fn a_call_tells_tokens_streaming_and_its_first_chunk() {
        let attributes = [
            (TYPE, sample::text("chat")),
            ("gen_ai.is_streaming", Value::Bool(true)),
            ("gen_ai.usage.completion_tokens", Value::Int(64)),
        ];
        for event in ["gen_ai.content.completion.chunk", "llm.content.completion.chunk"] {
            let span = sample::span("openai.chat", SpanKind::Client, 900, &attributes);
            let reading = dialect::read(&sample::with_event(span, event, 120));
            assert_eq!((reading.dialect.as_ref(), reading.phase), (DIALECT, Some(ServerPhase::Provider)));
            assert_eq!((reading.streaming, reading.output_tokens), (Some(true), Some(64)));
            let first = reading.first_token.map(|token| (token.offset.0, token.source));
            assert_eq!(first, Some((120_000_000, FirstTokenSource::ChunkEvent)), "{event}");
        }
    }

    #[test]
    fn workflows_own_no_time() {
        let span = sample::span("assistant.workflow", SpanKind::Internal, 900, &[]);
        assert_eq!(dialect::read(&span).phase, None);
    }
}
