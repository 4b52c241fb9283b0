use proptest::prelude::*;

use super::*;
use model::{Nanos, SpanKind, Value};

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::Str),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Double),
        proptest::collection::vec(any::<String>(), 0..3).prop_map(Value::List),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    let known = vec![
        "llm_request",
        " Req 1a2b3c4d",
        "generate",
        "InferRequest",
        "compute",
        "kong",
        "x http send",
        "chat m",
        "engine.generate",
        "Received Proxy Server Request",
        "auth.check",
    ];
    prop_oneof![proptest::sample::select(known).prop_map(str::to_owned), any::<String>()]
}

proptest! {
    #[test]
    fn whatever_a_span_holds_is_read_without_panic_and_never_negative(
        name in any_name(),
        kind in 0..6,
        start in 0..i64::MAX,
        end in proptest::option::of(0..i64::MAX),
        told in proptest::collection::vec((proptest::sample::select(events().collect::<Vec<_>>()), any::<i32>()), 0..4),
        pairs in proptest::collection::vec((proptest::sample::select(keys().collect::<Vec<_>>()), any_value()), 0..12),
    ) {
        let mut span = sample::span(&name, SpanKind::from_number(kind), 1, &pairs);
        span.start = model::UnixNanos(start);
        span.end = end.map(model::UnixNanos);
        for (event, millis) in told {
            span = sample::with_event(span, event, i64::from(millis));
        }
        let reading = read(&span);
        prop_assert!(reading.laid.iter().all(|laid| laid.length >= Nanos::ZERO));
        prop_assert!(reading.first_token.is_none_or(|token| token.offset >= Nanos::ZERO));
        prop_assert!(reading.input_tokens.is_none_or(|tokens| tokens >= 0));
    }
}

#[test]
fn every_built_in_dialect_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = built_in().map(|dialect| dialect.name).collect();
    assert_eq!(names.len(), built_in().count());
}

#[test]
fn an_unknown_span_is_plain() {
    let reading = read(&sample::span("usage.log", SpanKind::Internal, 5, &[]));
    assert_eq!(reading, Reading::default());
}
