//! llm-d: the endpoint picker, an external processor of the gateway's Envoy, and the sidecar that sends prefill and
//! decode to different workers.
//!
//! The sidecar's `llm_d.pd_proxy.true_ttft_ms` ends where decode begins, before any token, so it is no first token and
//! is not read. `gateway.request` lasts as long as the stream that it watches, so it owns no time.

use super::{NameRule, Reading, Role, SubPhase};
use model::{ServerPhase, Span, SpanKind};

const DIALECT: &str = "llm-d";

const GATEWAY: Option<ServerPhase> = Some(ServerPhase::Gateway);
const GENERATION: Option<ServerPhase> = Some(ServerPhase::Generation);

const WATCHED: &str = "gateway.request";

const NAMES: &[NameRule] = &[
    NameRule::new(WATCHED, Role::Observer, None, None),
    NameRule::new("gateway.request_orchestration", Role::Plain, GATEWAY, None),
    NameRule::new("llm_d.pd_proxy.request", Role::Plain, None, None),
    NameRule::new("llm_d.pd_proxy.prefill", Role::Plain, GENERATION, Some(SubPhase::Prefill)),
    NameRule::new("llm_d.pd_proxy.decode", Role::Plain, GENERATION, Some(SubPhase::Decode)),
];

pub fn read(span: &Span) -> Option<Reading> {
    if let Some(rule) = NameRule::find(NAMES, &span.name) {
        // An application's own span may be called so too, but it is not of kind SERVER.
        let common = rule.name == WATCHED && span.kind != SpanKind::Server;
        return (!common).then(|| rule.reading(DIALECT));
    }
    let picker = span.name.starts_with("llm_d.epp.");
    picker.then(|| Reading { phase: GATEWAY, ..Reading::of(DIALECT, "llm_d.epp.*") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{SpanKind, Value};

    #[test]
    fn names_mean_phases() {
        for (name, phase, sub) in [
            ("gateway.request", None, None),
            ("gateway.request_orchestration", GATEWAY, None),
            ("llm_d.epp.profile_handler.pick", GATEWAY, None),
            ("llm_d.pd_proxy.request", None, None),
            ("llm_d.pd_proxy.prefill", GENERATION, Some(SubPhase::Prefill)),
            ("llm_d.pd_proxy.decode", GENERATION, Some(SubPhase::Decode)),
        ] {
            let reading = dialect::read(&sample::span(name, SpanKind::Server, 5, &[]));
            assert_eq!((reading.phase, reading.sub, reading.dialect.as_ref()), (phase, sub, DIALECT), "{name}");
        }
    }

    #[test]
    fn an_application_may_have_a_span_of_that_name() {
        let reading = dialect::read(&sample::span(WATCHED, SpanKind::Internal, 5, &[]));
        assert_eq!((reading.dialect.as_ref(), reading.role), ("", Role::Plain));
    }

    #[test]
    fn the_start_of_decode_is_no_first_token() {
        let attributes = [("llm_d.pd_proxy.true_ttft_ms", Value::Double(120.0))];
        let reading = dialect::read(&sample::span("llm_d.pd_proxy.request", SpanKind::Server, 900, &attributes));
        assert_eq!((reading.first_token, reading.phase), (None, None));
    }
}
