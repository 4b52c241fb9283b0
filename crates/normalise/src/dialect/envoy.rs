//! Envoy: `ingress` of kind SERVER or `egress {host}` of kind CLIENT, which a route may rename, and inside it one
//! `router {cluster} egress` for each attempt where upstream spans are switched on. Every value is a text.
//!
//! Newer versions write HTTP attributes under OpenTelemetry's names, but keep `component`, `upstream_cluster` and
//! `response_flags` (checked in its table of tags), so recognition does not depend on the version.

use super::{Reading, proxy};
use crate::scalar;
use model::{Span, SpanKind};

const DIALECT: &str = "envoy";

const COMPONENT: &str = "component";
const RESPONSE_FLAGS: &str = "response_flags";
const CLUSTERS: [&str; 2] = ["upstream_cluster", "upstream_cluster.name"];

/// The attributes by which it is recognised.
pub const KEYS: &[&str] = &[COMPONENT, RESPONSE_FLAGS, CLUSTERS[0], CLUSTERS[1]];

/// Where a filter of Envoy calls its external processor. The call lasts as long as the stream, so it owns no time.
const EXTERNAL_PROCESSOR: &str = "ExternalProcessor.Process";

/// The flag of a request whose client went away.
const CLIENT_GONE: &str = "DC";

/// The status that proxies give to such a request.
const CLIENT_CLOSED_REQUEST: i64 = 499;

pub fn read(span: &Span) -> Option<Reading> {
    if !is_envoy(span) {
        return None;
    }
    if span.name.ends_with(EXTERNAL_PROCESSOR) {
        return Some(Reading::of(DIALECT, "external processor"));
    }
    let mut reading = match span.kind {
        SpanKind::Server => proxy::server(DIALECT, "server span"),
        // The whole of an outward listener: an attempt where nothing lies inside, else what stands around attempts.
        SpanKind::Client if span.name.starts_with("egress") => {
            Reading { root: true, ..proxy::attempt(DIALECT, "egress") }
        }
        SpanKind::Client => proxy::attempt(DIALECT, "attempt"),
        _ => return None,
    };
    if client_gone(span) {
        reading.http_status = Some(CLIENT_CLOSED_REQUEST);
    }
    Some(reading)
}

fn is_envoy(span: &Span) -> bool {
    let component = span.attributes.get(COMPONENT).and_then(scalar::text);
    component.is_some_and(|component| component == "proxy")
        || span.scope.name == "envoy"
        || [RESPONSE_FLAGS].iter().chain(&CLUSTERS).any(|key| span.attributes.has(key))
}

fn client_gone(span: &Span) -> bool {
    let flags = span.attributes.get(RESPONSE_FLAGS).and_then(scalar::text);
    flags.is_some_and(|flags| flags.split(',').any(|flag| flag.trim() == CLIENT_GONE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, Role, sample};
    use model::{ServerPhase, Value};

    fn attributes(flags: &str, status: &'static str) -> [(&'static str, Value); 4] {
        [
            (COMPONENT, sample::text("proxy")),
            (CLUSTERS[0], sample::text("vllm")),
            (RESPONSE_FLAGS, sample::text(flags)),
            (status, sample::text("200")),
        ]
    }

    #[test]
    fn servers_are_gateway_time_and_attempts_are_left_to_the_join() {
        for status in ["http.status_code", "http.response.status_code"] {
            for (name, kind, role, root) in [
                ("ingress", SpanKind::Server, Role::ProxyServer, false),
                ("a renamed route", SpanKind::Server, Role::ProxyServer, false),
                ("egress llm.example", SpanKind::Client, Role::ProxyAttempt, true),
                ("router vllm egress", SpanKind::Client, Role::ProxyAttempt, false),
            ] {
                let reading = dialect::read(&sample::span(name, kind, 10, &attributes("-", status)));
                assert_eq!((reading.dialect.as_ref(), reading.role, reading.root), (DIALECT, role, root), "{name}");
                let gateway = (role == Role::ProxyServer).then_some(ServerPhase::Gateway);
                assert_eq!((reading.phase, reading.http_status), (gateway, Some(200)), "{name}");
            }
        }
    }

    #[test]
    fn a_client_that_went_away_is_no_success() {
        let span = sample::span("ingress", SpanKind::Server, 10, &attributes("DC", "http.status_code"));
        assert_eq!(dialect::read(&span).http_status, Some(CLIENT_CLOSED_REQUEST));
    }

    #[test]
    fn an_external_processor_call_owns_no_time() {
        let name = "envoy.service.ext_proc.v3.ExternalProcessor.Process";
        let span = sample::span(name, SpanKind::Client, 10, &[(COMPONENT, sample::text("proxy"))]);
        assert_eq!((dialect::read(&span).role, dialect::read(&span).phase), (Role::Plain, None));
    }
}
