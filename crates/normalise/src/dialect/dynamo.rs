//! NVIDIA Dynamo: a root of kind INTERNAL, the router's span of each attempt, which lasts until the answer ends and so
//! owns no time, and on the worker `handle_payload` around `engine.generate` around the engine's own spans.
//!
//! Checked against its source: names and attributes of `engine.generate` (`ttft_ms` is a text with two decimals, and
//! is written by prefill workers too), the router's outcomes and attempts, scope and target.

use super::{NameRule, Reading, Role, SubPhase, origin};
use crate::scalar;
use model::{Dimension, ServerPhase, Span};

const DIALECT: &str = "dynamo";

const REQUEST_ID: &str = "x_dynamo_request_id";
const DISAGGREGATED_ROLE: &str = "disagg_role";

/// What the root tells of the request that it got. A service may have any name, and the scope may not be exported.
const ROOT_TELLS: &[&str] = &[REQUEST_ID, "x_request_id", "method"];

/// What the worker's span tells, and spans of that name elsewhere do not.
const GENERATE_TELLS: &[&str] = &[DISAGGREGATED_ROLE, "ttft_ms"];

/// The attributes it reads.
pub const KEYS: &[&str] =
    &[REQUEST_ID, "x_request_id", "method", DISAGGREGATED_ROLE, "ttft_ms", "model", "input_tokens", "output_tokens"];

const ROOT: &str = "http-request";
const GENERATE: &str = "engine.generate";

const ENVELOPES: &[NameRule] = &[
    NameRule::new("router.route_request", Role::Plain, None, None),
    NameRule::new("kv_router.route_request", Role::Plain, None, None),
    NameRule::new("handle_payload", Role::Plain, None, None),
];

pub fn read(span: &Span) -> Option<Reading> {
    if span.name == ROOT && (in_dynamo(span) || tells(span, ROOT_TELLS)) {
        return Some(Reading { root: true, ..Reading::of(DIALECT, ROOT) });
    }
    if span.name == GENERATE && (in_dynamo(span) || tells(span, GENERATE_TELLS)) {
        return Some(generate(span));
    }
    NameRule::find(ENVELOPES, &span.name).map(|rule| rule.reading(DIALECT))
}

/// Its plain attribute names mean something else elsewhere, so they are read here.
fn generate(span: &Span) -> Reading {
    let told = |key: &str| span.attributes.get(key).and_then(scalar::count);
    let role = span.attributes.get(DISAGGREGATED_ROLE).and_then(scalar::text);
    let sub = match role.as_deref() {
        Some("prefill") => Some(SubPhase::Prefill),
        Some("decode") => Some(SubPhase::Decode),
        _ => None,
    };
    let mut reading = Reading {
        phase: Some(ServerPhase::Generation),
        sub,
        // What a prefill worker makes is handed to the decode worker, not to the client.
        no_first_token: sub == Some(SubPhase::Prefill),
        input_tokens: told("input_tokens"),
        output_tokens: told("output_tokens"),
        ..Reading::of(DIALECT, GENERATE)
    };
    reading.dimensions.set(Dimension::Model, span.attributes.get("model").and_then(scalar::text));
    reading
}

fn in_dynamo(span: &Span) -> bool {
    origin::names(span, &[DIALECT])
}

fn tells(span: &Span, keys: &[&str]) -> bool {
    keys.iter().any(|key| span.attributes.has(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};
    use model::{SpanKind, Value};

    #[test]
    fn the_root_is_known_by_its_request_id() {
        let span = sample::span(ROOT, SpanKind::Internal, 5, &[(REQUEST_ID, sample::text("r-1"))]);
        let reading = dialect::read(&span);
        assert_eq!((reading.root, reading.request_ids), (true, vec!["r-1".to_owned()]));
        assert!(!dialect::read(&sample::span(ROOT, SpanKind::Internal, 5, &[])).root);
    }

    #[test]
    fn a_prefill_workers_token_is_not_the_clients() {
        let attributes = [(DISAGGREGATED_ROLE, sample::text("prefill")), ("ttft_ms", sample::text("2.00"))];
        let reading = dialect::read(&sample::span(GENERATE, SpanKind::Internal, 5, &attributes));
        assert_eq!((reading.sub, reading.first_token), (Some(SubPhase::Prefill), None));
    }

    #[test]
    fn the_worker_generates_and_the_router_only_envelops() {
        let attributes = [
            (DISAGGREGATED_ROLE, sample::text("decode")),
            ("model", sample::text("m-7b")),
            ("output_tokens", Value::Int(64)),
            ("ttft_ms", sample::text("2.00")),
        ];
        let reading = dialect::read(&sample::span(GENERATE, SpanKind::Internal, 5, &attributes));
        assert_eq!((reading.phase, reading.output_tokens), (Some(ServerPhase::Generation), Some(64)));
        assert_eq!(reading.sub, Some(SubPhase::Decode));
        assert_eq!(reading.dimensions.get(Dimension::Model), Some("m-7b"));
        assert_eq!(reading.first_token.map(|token| token.offset.0), Some(2_000_000));
        for name in ["router.route_request", "kv_router.route_request", "handle_payload"] {
            let router = dialect::read(&sample::span(name, SpanKind::Client, 5, &[]));
            assert_eq!((router.phase, router.dialect.as_ref()), (None, DIALECT), "{name}");
        }
    }
}
