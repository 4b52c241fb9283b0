//! LiteLLM's proxy: its server span, its call, and spans of what it does before, beside and around the call.
//!
//! Version 1 writes `Received Proxy Server Request` and `litellm_request`, whose interval `raw_gen_ai_request` repeats
//! and around which `self` and `router` lie; where another span is active it writes no call of its own but notes the
//! call's attributes there. Version 2 writes `chat {model}` beside `execute_guardrail {name}` and `auth {route}` under
//! a server span of FastAPI's, and names statements `redis.get {what}` or `postgres {helper}` (checked in its table of
//! spans).

use super::durations::part;
use super::{Anchor, Laid, NameRule, Reading, Role};
use crate::scalar;
use model::{ServerPhase, Span, SpanKind};

const DIALECT: &str = "litellm";

const PREPROCESSING: &str = "litellm.preprocessing.duration_ms";

/// What version 1 writes on the spans of its services.
const SERVICE: [&str; 2] = ["call_type", "service"];

/// What tells a call whose span a user has renamed.
const CALL_KEYS: [&str; 2] = ["gen_ai.request.model", "gen_ai.system"];

/// The attributes it reads.
pub const KEYS: &[&str] = &[PREPROCESSING, SERVICE[0], SERVICE[1], CALL_KEYS[0], CALL_KEYS[1]];

const SERVER: &str = "Received Proxy Server Request";
const CALL: &str = "litellm_request";

const GATEWAY: Option<ServerPhase> = Some(ServerPhase::Gateway);

/// Names that nobody else writes.
const OWN_NAMES: &[NameRule] = &[
    // It repeats the interval of the call around it, and so is no call of its own.
    NameRule::new("raw_gen_ai_request", Role::Plain, None, None),
    // A mark of no length beside a request that failed.
    NameRule::new("Failed Proxy Server Request", Role::Plain, None, None),
];

/// Names of whole spans: common words, so the scope, the service or a service's attributes must tell too.
const NAMES: &[NameRule] = &[
    NameRule::new("auth", Role::Plain, GATEWAY, None),
    NameRule::new("proxy_pre_call", Role::Plain, GATEWAY, None),
    NameRule::new("guardrail", Role::Plain, GATEWAY, None),
    NameRule::new("redis", Role::Plain, GATEWAY, None),
    NameRule::new("postgres", Role::Plain, GATEWAY, None),
    // These last as long as the call that they hold, or run after the answer: they own no time.
    NameRule::new("self", Role::Plain, None, None),
    NameRule::new("router", Role::Plain, None, None),
    NameRule::new("batch_write_to_db", Role::Plain, None, None),
];

/// Version 2 puts the route, the guardrail, the model or the statement after a word. `route {model}` is the choice of a
/// deployment, not the call.
const FIRST_WORDS: &[&str] = &["auth", "execute_guardrail", "route", "redis", "postgres"];

pub fn read(span: &Span) -> Option<Reading> {
    if span.name == SERVER || (span.kind == SpanKind::Server && span.attributes.has(PREPROCESSING)) {
        return Some(server(span));
    }
    if let Some(rule) = NameRule::find(OWN_NAMES, &span.name) {
        return Some(rule.reading(DIALECT));
    }
    if span.name == CALL {
        return Some(call(CALL));
    }
    let in_scope = span.scope.name.contains(DIALECT);
    let here =
        || in_scope || span.resource.service().contains(DIALECT) || SERVICE.iter().all(|key| span.attributes.has(key));
    if let Some(rule) = NameRule::find(NAMES, &span.name).filter(|_| here()) {
        return Some(rule.reading(DIALECT));
    }
    if let Some(word) = FIRST_WORDS.iter().copied().find(|word| first_word(&span.name) == *word).filter(|_| here()) {
        return Some(Reading { phase: GATEWAY, ..Reading::of(DIALECT, word) });
    }
    let renamed = in_scope && span.kind == SpanKind::Internal && CALL_KEYS.iter().any(|key| span.attributes.has(key));
    renamed.then(|| call("renamed call"))
}

/// Of a statement, the store: what else has a point in its name is somebody else's.
fn first_word(name: &str) -> &str {
    let word = name.split(' ').next().unwrap_or_default();
    match word.split_once('.') {
        Some((store @ ("redis" | "postgres"), _)) => store,
        _ => word,
    }
}

fn call(rule: &'static str) -> Reading {
    Reading::model_call(DIALECT, rule)
}

/// The preprocessing time is a prefix: it ends where the call is handed on.
fn server(span: &Span) -> Reading {
    let mut reading = Reading::of(DIALECT, "server span");
    if let Some(length) = part(span, PREPROCESSING, scalar::millis, &mut reading) {
        reading.laid.push(Laid { phase: ServerPhase::Gateway, sub: None, length, anchor: Anchor::Start });
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{Flag, Nanos, Value};

    #[test]
    fn preprocessing_is_a_prefix_of_the_server_span() {
        for name in [SERVER, "POST /v1/chat/completions"] {
            let attributes = [(PREPROCESSING, Value::Double(12.5))];
            let reading = dialect::read(&sample::span(name, SpanKind::Server, 900, &attributes));
            let prefix =
                Laid { phase: ServerPhase::Gateway, sub: None, length: Nanos(12_500_000), anchor: Anchor::Start };
            assert_eq!((reading.phase, reading.laid), (None, vec![prefix]));
        }
    }

    #[test]
    fn microseconds_under_a_key_of_milliseconds_are_flagged_and_not_used() {
        let attributes = [(PREPROCESSING, Value::Double(25_000.0))];
        let reading = dialect::read(&sample::span(SERVER, SpanKind::Server, 900, &attributes));
        assert_eq!((reading.laid.len(), reading.flags.has(Flag::UnitSuspect)), (0, true));
    }

    #[test]
    fn the_call_is_one_and_its_repetition_none() {
        let attributes = [("gen_ai.system", sample::text("openai")), ("gen_ai.request.model", sample::text("m-7b"))];
        for (name, call) in [
            (CALL, true),
            ("a name of the user's", true),
            ("raw_gen_ai_request", false),
            ("Failed Proxy Server Request", false),
            ("self", false),
            ("router", false),
        ] {
            let span = sample::with_scope(sample::span(name, SpanKind::Internal, 5, &attributes), "litellm");
            let reading = dialect::read(&span);
            assert_eq!((reading.dialect.as_ref(), reading.genai_client), (DIALECT, call), "{name}");
            assert_eq!(reading.phase, call.then_some(ServerPhase::Provider), "{name}");
        }
        let newer = sample::span("chat m-7b", SpanKind::Client, 5, &[("gen_ai.operation.name", sample::text("chat"))]);
        assert!(dialect::read(&sample::with_scope(newer, "litellm")).genai_client);
    }

    #[test]
    fn work_beside_the_call_is_gateway_time_in_its_scope_only() {
        for (name, phase) in [
            ("auth", GATEWAY),
            ("auth /v1/chat/completions", GATEWAY),
            ("execute_guardrail pii", GATEWAY),
            ("route m-7b", GATEWAY),
            ("redis.get llm_response", GATEWAY),
            ("redis GET", GATEWAY),
            ("postgres.select LiteLLM_UserTable", GATEWAY),
            ("router", None),
            ("batch_write_to_db", None),
        ] {
            let span = sample::span(name, SpanKind::Internal, 5, &[]);
            assert_eq!(dialect::read(&span).phase, None, "{name}");
            let scoped = dialect::read(&sample::with_scope(span, "litellm"));
            assert_eq!((scoped.phase, scoped.dialect.as_ref()), (phase, DIALECT), "{name}");
        }
        let service = SERVICE.map(|key| (key, sample::text("auth")));
        assert_eq!(dialect::read(&sample::span("auth", SpanKind::Internal, 5, &service)).phase, GATEWAY);
    }
}
