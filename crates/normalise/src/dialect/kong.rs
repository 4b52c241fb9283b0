//! Kong: the span `kong` around a request, one `kong.balancer` for each try, and spans for its own work. Its plugins
//! write a span each; the AI proxy's holds `kong.gen_ai`, which tells model and tokens.
//!
//! Checked against Kong's tracing instrumentation and its AI gateway's documentation. How long `kong.gen_ai` lasts is
//! not documented, so it owns no time: the tries tell it.

use super::{NameRule, Reading, Role, proxy};
use model::{ServerPhase, Span};

const DIALECT: &str = "kong";

/// Marks a root that exists only to hand a context on; it is not exported, and means nothing where it comes all the
/// same.
const PROPAGATION_ONLY: &str = "kong.propagation_only";

/// The attributes it reads.
pub const KEYS: &[&str] = &[PROPAGATION_ONLY];

const NAMES: &[NameRule] = &[NameRule::new("kong.gen_ai", Role::Plain, None, None)];

pub fn read(span: &Span) -> Option<Reading> {
    if span.attributes.has(PROPAGATION_ONLY) {
        return Some(Reading::of(DIALECT, PROPAGATION_ONLY));
    }
    match span.name.as_str() {
        "kong" => return Some(proxy::server(DIALECT, "kong")),
        "kong.balancer" => return Some(proxy::attempt(DIALECT, "kong.balancer")),
        _ => {}
    }
    if let Some(rule) = NameRule::find(NAMES, &span.name) {
        return Some(rule.reading(DIALECT));
    }
    let work = span.name.starts_with("kong.");
    work.then(|| Reading { phase: Some(ServerPhase::Gateway), ..Reading::of(DIALECT, "kong.*") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{Dimension, SpanKind, Value};

    #[test]
    fn names_mean_phases() {
        let gateway = Some(ServerPhase::Gateway);
        for (name, kind, role, phase) in [
            ("kong", SpanKind::Server, Role::ProxyServer, gateway),
            ("kong.balancer", SpanKind::Client, Role::ProxyAttempt, None),
            ("kong.router", SpanKind::Internal, Role::Plain, gateway),
            ("kong.dns", SpanKind::Client, Role::Plain, gateway),
            ("kong.access.plugin.key-auth", SpanKind::Internal, Role::Plain, gateway),
            ("kong.internal.request", SpanKind::Client, Role::Plain, gateway),
            ("kong.database.query", SpanKind::Client, Role::Plain, gateway),
            ("kong.gen_ai", SpanKind::Internal, Role::Plain, None),
        ] {
            let reading = dialect::read(&sample::span(name, kind, 10, &[]));
            assert_eq!((reading.dialect.as_ref(), reading.role, reading.phase), (DIALECT, role, phase), "{name}");
        }
    }

    #[test]
    fn the_ai_proxy_tells_model_and_tokens() {
        let attributes = [
            ("gen_ai.operation.name", sample::text("chat")),
            ("gen_ai.request.model", sample::text("m-7b")),
            ("gen_ai.usage.output_tokens", Value::Int(64)),
        ];
        let reading = dialect::read(&sample::span("kong.gen_ai", SpanKind::Internal, 10, &attributes));
        assert_eq!((reading.genai_client, reading.output_tokens), (false, Some(64)));
        assert_eq!(reading.dimensions.get(Dimension::Model), Some("m-7b"));
    }

    #[test]
    fn a_root_made_to_hand_a_context_on_owns_no_time() {
        let span = sample::span("root", SpanKind::Internal, 10, &[(PROPAGATION_ONLY, Value::Bool(true))]);
        assert_eq!((dialect::read(&span).phase, dialect::read(&span).dialect.as_ref()), (None, DIALECT));
    }
}
