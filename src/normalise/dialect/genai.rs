//! Calls of models as the caller sees them: OpenTelemetry's GenAI conventions in old and new names, OpenInference,
//! OpenLLMetry, and the call spans of gateways that follow them.

use super::{Reading, Role};
use crate::model::{ServerPhase, Span, SpanKind};
use crate::normalise::scalar;

const OPERATION: &str = "gen_ai.operation.name";
const OPENINFERENCE_KIND: &str = "openinference.span.kind";
const OPENLLMETRY_TYPE: &str = "llm.request.type";

/// The attributes by which calls are recognised.
pub const KEYS: &[&str] = &[OPERATION, OPENINFERENCE_KIND, OPENLLMETRY_TYPE, "gen_ai.provider.name", "gen_ai.system"];

/// Operations that ask a model. Others (agents, tools, workflows) hold calls and much else, and own no time.
const MODEL_OPERATIONS: &[&str] =
    &["chat", "text_completion", "completion", "generate_content", "embeddings", "embedding", "responses", "rerank"];

const MODEL_KINDS: &[&str] = &["LLM", "EMBEDDING", "RERANKER"];

/// Call spans that older LiteLLM versions write with no operation.
const CALL_NAMES: &[&str] = &["litellm_request"];

/// Spans that repeat the interval of the call around them, and so are no calls of their own.
const REPEATS: &[&str] = &["raw_gen_ai_request"];

/// Reads one span.
pub fn read(span: &Span) -> Option<Reading> {
    if REPEATS.contains(&span.name.as_str()) {
        return Some(Reading { role: Role::Plain, ..Reading::of("genai", "repeats its call") });
    }
    // A gateway may note its call's attributes on its own server span.
    if span.kind == SpanKind::Server {
        return None;
    }
    let (dialect, rule) = call_rule(span)?;
    Some(Reading { phase: Some(ServerPhase::Provider), genai_client: true, ..Reading::of(dialect, rule) })
}

fn call_rule(span: &Span) -> Option<(&'static str, &'static str)> {
    let told = |key: &str| span.attributes.get(key).and_then(scalar::text);
    if let Some(operation) = told(OPERATION) {
        return MODEL_OPERATIONS.contains(&operation.as_ref()).then_some(("genai", "model operation"));
    }
    if let Some(kind) = told(OPENINFERENCE_KIND) {
        return MODEL_KINDS.contains(&kind.as_ref()).then_some(("openinference", "model call"));
    }
    if CALL_NAMES.contains(&span.name.as_str()) {
        return Some(("genai", "litellm_request"));
    }
    if span.kind != SpanKind::Client {
        return None;
    }
    if told(OPENLLMETRY_TYPE).is_some() {
        return Some(("openllmetry", "request type"));
    }
    let provider = told("gen_ai.provider.name").or_else(|| told("gen_ai.system"));
    provider.map(|_| ("genai", "client span with a provider"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::dialect::{self, sample};

    #[test]
    fn calls_are_provider_time() {
        for (name, kind, key, value, dialect) in [
            ("chat m-7b", SpanKind::Client, OPERATION, "chat", "genai"),
            ("chat m-7b", SpanKind::Internal, OPERATION, "chat", "genai"),
            ("ChatCompletion", SpanKind::Internal, OPENINFERENCE_KIND, "LLM", "openinference"),
            ("openai.chat", SpanKind::Client, OPENLLMETRY_TYPE, "chat", "openllmetry"),
            ("litellm_request", SpanKind::Internal, "gen_ai.system", "openai", "genai"),
            ("anything", SpanKind::Client, "gen_ai.provider.name", "openai", "genai"),
        ] {
            let reading = dialect::read(&sample::span(name, kind, 5, &[(key, sample::text(value))]));
            assert_eq!((reading.phase, reading.genai_client), (Some(ServerPhase::Provider), true), "{name}");
            assert_eq!(reading.dialect, dialect, "{name}");
        }
    }

    #[test]
    fn what_holds_calls_is_none() {
        for (kind, key, value) in [
            (SpanKind::Internal, OPERATION, "invoke_agent"),
            (SpanKind::Internal, OPENINFERENCE_KIND, "CHAIN"),
            (SpanKind::Server, OPERATION, "chat"),
            (SpanKind::Internal, "gen_ai.system", "openai"),
        ] {
            let reading = dialect::read(&sample::span("x", kind, 5, &[(key, sample::text(value))]));
            assert_eq!((reading.phase, reading.genai_client), (None, false), "{value}");
        }
        let repeat = sample::span("raw_gen_ai_request", SpanKind::Internal, 5, &[(OPERATION, sample::text("chat"))]);
        assert!(!dialect::read(&repeat).genai_client);
    }
}
