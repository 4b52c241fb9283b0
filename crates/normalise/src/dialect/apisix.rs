//! APISIX: one server span a request under the old HTTP names, and since its core is traced too, spans for the phases
//! and plugins of the gateway, some of them of kind SERVER.
//!
//! Checked against the plugin `opentelemetry` and the tests of its core spans.

use super::{Reading, origin, proxy};
use model::{ServerPhase, Span, SpanKind};

const DIALECT: &str = "apisix";

const ROUTE: &str = "apisix.route_id";
const SERVICE: &str = "apisix.service_id";

/// The attributes by which it is recognised.
pub const KEYS: &[&str] = &[ROUTE, SERVICE];

pub fn read(span: &Span) -> Option<Reading> {
    if span.name.starts_with("apisix.phase.") {
        return Some(Reading { phase: Some(ServerPhase::Gateway), ..Reading::of(DIALECT, "apisix.phase.*") });
    }
    // A request that no route matched has no route's id.
    let named = || span.scope.name == "opentelemetry-lua" && origin::names(span, &["APISIX", "apisix"]);
    if span.kind != SpanKind::Server || !(span.attributes.has(ROUTE) || span.attributes.has(SERVICE) || named()) {
        return None;
    }
    Some(proxy::server(DIALECT, "server span"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, Role, sample};

    #[test]
    fn the_server_span_is_known_by_its_route_and_phases_by_their_name() {
        let attributes = [
            (ROUTE, sample::text("1")),
            ("http.method", sample::text("POST")),
            ("http.status_code", sample::text("200")),
        ];
        let server = dialect::read(&sample::span("POST /v1/*", SpanKind::Server, 10, &attributes));
        assert_eq!((server.dialect.as_ref(), server.role), (DIALECT, Role::ProxyServer));
        assert_eq!((server.phase, server.http_status), (Some(ServerPhase::Gateway), Some(200)));
        for name in ["apisix.phase.access", "apisix.phase.access.plugins.key-auth"] {
            let phase = dialect::read(&sample::span(name, SpanKind::Server, 10, &[]));
            assert_eq!((phase.role, phase.phase), (Role::Plain, Some(ServerPhase::Gateway)), "{name}");
        }
    }

    #[test]
    fn another_program_with_the_same_library_is_none() {
        let span = sample::with_scope(sample::span("POST", SpanKind::Server, 10, &[]), "opentelemetry-lua");
        assert_eq!(dialect::read(&span).role, Role::Plain);
    }
}
