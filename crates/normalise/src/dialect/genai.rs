//! Calls of models as the caller sees them, under OpenTelemetry's GenAI conventions in old and new names.

use super::Reading;
use crate::scalar;
use model::{Span, SpanKind};

const DIALECT: &str = "genai";

const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const SYSTEM: &str = "gen_ai.system";

/// The attributes by which calls are recognised.
pub const KEYS: &[&str] = &[OPERATION, PROVIDER, SYSTEM];

/// Operations that ask a model.
const MODEL_OPERATIONS: &[&str] =
    &["chat", "text_completion", "completion", "generate_content", "embeddings", "embedding", "responses", "rerank"];

/// Operations that ask no model, by the end of their names: they hold calls and much else, or ask a store.
const OTHER_OPERATIONS: &[&str] = &["agent", "tool", "workflow", "task", "plan", "retrieval", "memory", "memory_store"];

pub fn read(span: &Span) -> Option<Reading> {
    // A gateway may note its call's attributes on its own server span.
    if span.kind == SpanKind::Server {
        return None;
    }
    let rule = call_rule(span)?;
    Some(Reading::model_call(DIALECT, rule))
}

fn call_rule(span: &Span) -> Option<&'static str> {
    let operation = span.attributes.get(OPERATION).and_then(scalar::text).unwrap_or_default();
    if MODEL_OPERATIONS.contains(&operation.as_ref()) {
        return Some("model operation");
    }
    let provider = span.attributes.has(PROVIDER) || span.attributes.has(SYSTEM);
    let other = OTHER_OPERATIONS.iter().any(|word| operation.ends_with(word));
    // Systems have operations of their own beside those of the conventions.
    (span.kind == SpanKind::Client && provider && !other).then_some("client span with a provider")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::ServerPhase;

    #[test]
    fn calls_are_provider_time() {
        for (name, kind, key, value) in [
            ("chat m-7b", SpanKind::Client, OPERATION, "chat"),
            ("chat m-7b", SpanKind::Internal, OPERATION, "chat"),
            ("anything", SpanKind::Client, PROVIDER, "openai"),
            ("anything", SpanKind::Client, SYSTEM, "openai"),
        ] {
            let reading = dialect::read(&sample::span(name, kind, 5, &[(key, sample::text(value))]));
            assert_eq!((reading.phase, reading.genai_client), (Some(ServerPhase::Provider), true), "{name}");
            assert_eq!(reading.dialect, DIALECT, "{name}");
        }
    }

    #[test]
    fn a_systems_own_operation_is_a_call_where_it_names_a_provider() {
        for (operation, phase) in [
            ("image_generation", Some(ServerPhase::Provider)),
            ("invoke_agent", None),
            ("execute_tool", None),
            ("invoke_workflow", None),
            ("retrieval", None),
            ("search_memory", None),
        ] {
            let attributes = [(OPERATION, sample::text(operation)), (PROVIDER, sample::text("openai"))];
            let reading = dialect::read(&sample::span("x", SpanKind::Client, 5, &attributes));
            assert_eq!(reading.phase, phase, "{operation}");
        }
    }

    #[test]
    fn what_holds_calls_is_none() {
        for (kind, key, value) in [
            (SpanKind::Internal, OPERATION, "invoke_agent"),
            (SpanKind::Internal, OPERATION, "execute_tool"),
            (SpanKind::Server, OPERATION, "chat"),
            (SpanKind::Internal, SYSTEM, "openai"),
        ] {
            let reading = dialect::read(&sample::span("x", kind, 5, &[(key, sample::text(value))]));
            assert_eq!((reading.phase, reading.genai_client), (None, false), "{value}");
        }
    }
}
