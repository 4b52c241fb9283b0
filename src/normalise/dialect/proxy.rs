//! Pure proxies: Envoy, Kong and APISIX. Envoy writes every value as a text, and both old and new HTTP names.

use super::{Reading, Role};
use crate::model::{ServerPhase, Span, SpanKind};
use crate::normalise::scalar;

/// The attributes by which they are recognised.
pub const KEYS: &[&str] =
    &["component", "response_flags", "upstream_cluster", "upstream_cluster.name", "apisix.route_id"];

/// Where a filter of Envoy calls its external processor. The call lasts as long as the stream, so it owns no time.
const EXTERNAL_PROCESSOR: &str = "ExternalProcessor.Process";

/// Reads one span.
pub fn read(span: &Span) -> Option<Reading> {
    kong(span).or_else(|| apisix(span)).or_else(|| envoy(span))
}

fn envoy(span: &Span) -> Option<Reading> {
    let component = span.attributes.get("component").and_then(scalar::text);
    let marked = ["response_flags", "upstream_cluster", "upstream_cluster.name"];
    let recognised = component.is_some_and(|component| component == "proxy")
        || span.scope.name == "envoy"
        || marked.into_iter().any(|key| span.attributes.has(key));
    if !recognised {
        return None;
    }
    if span.name.ends_with(EXTERNAL_PROCESSOR) {
        return Some(Reading::of("envoy", "external processor"));
    }
    by_kind("envoy", span)
}

fn kong(span: &Span) -> Option<Reading> {
    match span.name.as_str() {
        "kong" => Some(server("kong", "kong")),
        "kong.balancer" => Some(attempt("kong", "kong.balancer")),
        name if name.starts_with("kong.") => {
            Some(Reading { phase: Some(ServerPhase::Gateway), ..Reading::of("kong", "kong.*") })
        }
        _ => None,
    }
}

fn apisix(span: &Span) -> Option<Reading> {
    span.attributes.has("apisix.route_id").then(|| by_kind("apisix", span)).flatten()
}

fn by_kind(dialect: &'static str, span: &Span) -> Option<Reading> {
    match span.kind {
        SpanKind::Server => Some(server(dialect, "server span")),
        SpanKind::Client => Some(attempt(dialect, "attempt")),
        _ => None,
    }
}

fn server(dialect: &'static str, rule: &'static str) -> Reading {
    Reading { role: Role::ProxyServer, phase: Some(ServerPhase::Gateway), ..Reading::of(dialect, rule) }
}

/// Its phase depends on what lies inside it, which only the join sees.
fn attempt(dialect: &'static str, rule: &'static str) -> Reading {
    Reading { role: Role::ProxyAttempt, ..Reading::of(dialect, rule) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::dialect::{self, sample};

    #[test]
    fn servers_are_gateway_time_and_attempts_are_left_to_the_join() {
        let envoy: &[_] = &[("component", sample::text("proxy")), ("http.status_code", sample::text("200"))];
        let route: &[_] = &[("apisix.route_id", sample::text("1"))];
        for (name, kind, attributes, dialect, role) in [
            ("ingress", SpanKind::Server, envoy, "envoy", Role::ProxyServer),
            ("router vllm egress", SpanKind::Client, envoy, "envoy", Role::ProxyAttempt),
            ("kong", SpanKind::Server, &[], "kong", Role::ProxyServer),
            ("kong.balancer", SpanKind::Client, &[], "kong", Role::ProxyAttempt),
            ("POST /v1/*", SpanKind::Server, route, "apisix", Role::ProxyServer),
        ] {
            let reading = dialect::read(&sample::span(name, kind, 10, attributes));
            assert_eq!((reading.dialect.as_ref(), reading.role), (dialect, role), "{name}");
            let gateway = (role == Role::ProxyServer).then_some(ServerPhase::Gateway);
            assert_eq!(reading.phase, gateway, "{name}");
        }
    }

    #[test]
    fn inner_work_of_kong_is_gateway_time() {
        let plugin = sample::span("kong.access.plugin.key-auth", SpanKind::Internal, 3, &[]);
        assert_eq!(dialect::read(&plugin).phase, Some(ServerPhase::Gateway));
    }

    #[test]
    fn an_external_processor_call_owns_no_time() {
        let name = "envoy.service.ext_proc.v3.ExternalProcessor.Process";
        let span = sample::span(name, SpanKind::Client, 10, &[("component", sample::text("proxy"))]);
        assert_eq!((dialect::read(&span).role, dialect::read(&span).phase), (Role::Plain, None));
    }
}
