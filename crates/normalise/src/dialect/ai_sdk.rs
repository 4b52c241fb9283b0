//! Vercel's AI SDK: one span around all steps (`ai.streamText`) and one for each call of a model
//! (`ai.streamText.doStream`).

use super::Reading;
use model::Span;

const DIALECT: &str = "ai-sdk";

/// How the names of calls end.
const CALLS: &[&str] = &[".doStream", ".doGenerate", ".doEmbed"];

pub fn read(span: &Span) -> Option<Reading> {
    let call = span.name.starts_with("ai.") && CALLS.iter().any(|call| span.name.ends_with(call));
    call.then(|| Reading::model_call(DIALECT, "model call"))
}

#[cfg(test)]
mod tests {
    use crate::dialect::{self, FirstTokenSource, sample};
    use model::{ServerPhase, SpanKind, Value};

    #[test]
    fn a_call_is_provider_time_and_what_holds_it_is_none() {
        for (name, call) in [
            ("ai.streamText.doStream", true),
            ("ai.generateText.doGenerate", true),
            ("ai.embed.doEmbed", true),
            ("ai.streamText", false),
            ("ai.toolCall", false),
        ] {
            let reading = dialect::read(&sample::span(name, SpanKind::Internal, 900, &[]));
            assert_eq!(reading.phase, call.then_some(ServerPhase::Provider), "{name}");
        }
    }

    #[test]
    fn its_first_chunk_is_an_event_or_milliseconds() {
        let event = sample::span("ai.streamText.doStream", SpanKind::Internal, 900, &[]);
        let told = [("ai.response.msToFirstChunk", Value::Double(120.0))];
        let attribute = sample::span("ai.streamText.doStream", SpanKind::Internal, 900, &told);
        for span in [sample::with_event(event, "ai.stream.firstChunk", 120), attribute] {
            let first = dialect::read(&span).first_token.map(|token| (token.offset.0, token.source));
            assert_eq!(first, Some((120_000_000, FirstTokenSource::FirstChunk)));
        }
    }
}
