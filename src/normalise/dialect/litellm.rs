//! LiteLLM's proxy: its server span, and the spans of what it does before and beside the call. The call itself follows
//! the GenAI conventions.

use super::{Anchor, Laid, NameRule, Reading, Role};
use crate::model::{ServerPhase, Span, SpanKind};
use crate::normalise::scalar;

const DIALECT: &str = "litellm";

const PREPROCESSING: &str = "litellm.preprocessing.duration_ms";

/// The attributes it reads.
pub const KEYS: &[&str] = &[PREPROCESSING];

const SERVER: &str = "Received Proxy Server Request";

const GATEWAY: Option<ServerPhase> = Some(ServerPhase::Gateway);

/// Names of whole spans: common words, so the scope must tell too.
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

/// Version 2 puts the route, the guardrail or the statement after a word.
const FIRST_WORDS: &[&str] = &["auth", "execute_guardrail", "redis", "postgres"];

/// Reads one span.
pub fn read(span: &Span) -> Option<Reading> {
    if span.name == SERVER || (span.kind == SpanKind::Server && span.attributes.has(PREPROCESSING)) {
        return Some(server(span));
    }
    if !span.scope.name.contains(DIALECT) {
        return None;
    }
    if let Some(rule) = NameRule::find(NAMES, &span.name) {
        return Some(rule.reading(DIALECT));
    }
    let (first, _) = span.name.split_once(' ')?;
    let word = FIRST_WORDS.iter().copied().find(|word| *word == first)?;
    Some(Reading { phase: GATEWAY, ..Reading::of(DIALECT, word) })
}

/// The preprocessing time is a prefix: it ends where the call is handed on.
fn server(span: &Span) -> Reading {
    let mut reading = Reading::of(DIALECT, "server span");
    if let Some(length) = span.attributes.get(PREPROCESSING).and_then(scalar::millis) {
        reading.laid.push(Laid { phase: ServerPhase::Gateway, sub: None, length, anchor: Anchor::Start });
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Nanos, Value};
    use crate::normalise::dialect::{self, sample};

    #[test]
    fn preprocessing_is_a_prefix_of_the_server_span() {
        let attributes = [(PREPROCESSING, Value::Double(12.5))];
        let reading = dialect::read(&sample::span(SERVER, SpanKind::Server, 900, &attributes));
        let prefix = Laid { phase: ServerPhase::Gateway, sub: None, length: Nanos(12_500_000), anchor: Anchor::Start };
        assert_eq!((reading.phase, reading.laid), (None, vec![prefix]));
    }

    #[test]
    fn work_beside_the_call_is_gateway_time_in_its_scope_only() {
        for (name, phase) in [
            ("auth", GATEWAY),
            ("auth /v1/chat/completions", GATEWAY),
            ("execute_guardrail pii", GATEWAY),
            ("redis GET", GATEWAY),
            ("router", None),
            ("batch_write_to_db", None),
        ] {
            let span = sample::span(name, SpanKind::Internal, 5, &[]);
            assert_eq!(dialect::read(&span).phase, None, "{name}");
            let scoped = dialect::read(&sample::with_scope(span, "litellm"));
            assert_eq!((scoped.phase, scoped.dialect.as_ref()), (phase, DIALECT), "{name}");
        }
    }
}
