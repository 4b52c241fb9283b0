use super::*;
use crate::dialect::sample;
use model::reading::{Anchor, FirstTokenSource, Role};
use model::{Flag, Nanos, SpanKind, Value};

/// Dialects of one rule, written as JSON: what a configuration file says in TOML.
fn acme(rule: serde_json::Value) -> Dialects {
    let mut rule: Rule = serde_json::from_value(rule).expect("a rule");
    rule.check().expect("fields that agree");
    rule.name = "r".to_owned();
    Dialects::new(vec![OwnDialect { name: "acme".to_owned(), rules: vec![rule] }])
}

fn span(name: &str, attributes: &[(&'static str, Value)]) -> Span {
    sample::with_scope(sample::span(name, SpanKind::Internal, 1000, attributes), "acme.gateway")
}

fn ms(millis: i64) -> Nanos {
    Nanos(millis * 1_000_000)
}

#[test]
fn a_rule_needs_all_of_what_it_asks() {
    let dialects = acme(serde_json::json!({
        "match": {"scope": "acme.*", "name": "infer *", "kind": "internal", "has": ["acme.slot"],
                  "attributes": {"acme.kind": "ll?", "acme.live": true, "acme.rank": 2}},
        "phase": "generation", "sub": "decode",
    }));
    let told = |kind: &str, rank: i64| {
        [
            ("acme.kind", sample::text(kind)),
            ("acme.live", sample::text("True")),
            ("acme.rank", Value::Int(rank)),
            ("acme.slot", Value::Int(0)),
        ]
    };
    let reading = dialects.read(&span("infer a", &told("llm", 2)));
    assert_eq!((reading.phase, reading.sub), (Some(ServerPhase::Generation), Some(SubPhase::Decode)));
    assert_eq!((reading.dialect.as_ref(), reading.rule.as_ref()), ("acme", "r"));
    assert_eq!(dialects.read(&span("infer a", &told("vlm", 2))).phase, None);
    assert_eq!(dialects.read(&span("infer a", &told("llm", 3))).phase, None);
    assert_eq!(dialects.read(&span("infer", &told("llm", 2))).phase, None);
    assert_eq!(dialects.read(&span("infer a", &told("llm", 2)[..3])).phase, None);
    let elsewhere = sample::with_scope(span("infer a", &told("llm", 2)), "other");
    assert_eq!(dialects.read(&elsewhere).phase, None);
}

#[test]
fn rules_go_before_the_built_in_dialects_and_a_declared_phase_before_rules() {
    let dialects = acme(serde_json::json!({"match": {"name": "auth.check"}, "phase": "provider", "call": true}));
    let ruled = dialects.read(&span("auth.check", &[]));
    assert_eq!((ruled.phase, ruled.genai_client), (Some(ServerPhase::Provider), true));
    let declared = dialects.read(&span("auth.check", &[("llm.phase", sample::text("queue"))]));
    assert_eq!((declared.phase, declared.dialect.as_ref()), (Some(ServerPhase::GpuQueue), "native"));
    assert_eq!(dialects.read(&span("route.select", &[])).dialect, "native", "others are read as ever");
}

#[test]
fn durations_are_laid_as_they_passed() {
    let dialects = acme(serde_json::json!({
        "match": {"name": "llm"}, "engine": true, "root": true, "absent_is_zero": ["queue"],
        "durations": [
            {"key": "acme.prep_us", "unit": "us", "phase": "gateway", "from": "start"},
            {"key": "acme.queue_ms", "unit": "ms", "phase": "queue"},
            {"key": "acme.prefill", "unit": "text", "phase": "generation", "sub": "prefill"},
            {"key": "acme.decode_ns", "unit": "ns", "phase": "generation", "sub": "decode"},
        ],
    }));
    let told = [
        ("acme.prep_us", Value::Int(3000)),
        ("acme.queue_ms", Value::Double(20.0)),
        ("acme.prefill", sample::text("0.2s")),
        ("acme.decode_ns", Value::Int(500_000_000)),
    ];
    let reading = dialects.read(&span("llm", &told));
    let laid: Vec<_> = reading.laid.iter().map(|laid| (laid.length, laid.anchor, laid.sub)).collect();
    assert_eq!(
        laid,
        [
            (ms(3), Anchor::Start, None),
            (ms(500), Anchor::End, Some(SubPhase::Decode)),
            (ms(200), Anchor::End, Some(SubPhase::Prefill)),
            (ms(20), Anchor::End, None),
        ]
    );
    assert_eq!((reading.role, reading.root), (Role::Engine, true));
    assert_eq!(dialects.read(&span("llm", &told[2..])).absent_is_zero, [ServerPhase::GpuQueue]);
    let long = dialects.read(&span("llm", &[("acme.queue_ms", Value::Double(19_000.0))]));
    assert_eq!((long.laid.len(), long.flags.has(Flag::UnitSuspect)), (1, false), "wrong perhaps, but not by its unit");
    let wrong_unit = dialects.read(&span("llm", &[("acme.queue_ms", Value::Double(200_000.0))]));
    assert_eq!((wrong_unit.laid.len(), wrong_unit.flags.has(Flag::UnitSuspect)), (0, true));
    assert_eq!(wrong_unit.absent_is_zero, [], "what is there and cannot be used is not 0");
    assert_eq!(dialects.read(&span("llm", &[("acme.queue_ms", Value::Int(-1))])).laid, []);
}

#[test]
fn a_duration_may_lie_between_two_events() {
    let dialects = acme(serde_json::json!({
        "match": {"name": "llm"}, "durations": [{"between": ["acme.queued", "acme.slot"], "phase": "queue"}],
    }));
    let queued = sample::with_event(span("llm", &[]), "acme.queued", 30);
    assert_eq!(dialects.read(&queued).laid, [], "one event is no duration");
    let laid = dialects.read(&sample::with_event(queued.clone(), "acme.slot", 70)).laid;
    assert_eq!((laid[0].phase, laid[0].length, laid[0].anchor), (ServerPhase::GpuQueue, ms(40), Anchor::At(ms(30))));
    assert_eq!(dialects.read(&sample::with_event(queued, "acme.slot", 20)).laid, [], "the wrong way round");
    assert!(dialects.allowed().keeps_event("acme.queued") && dialects.allowed().keeps_event("acme.slot"));
}

#[test]
fn a_first_token_is_an_event_or_an_attribute() {
    let event = acme(serde_json::json!({"match": {"name": "llm"}, "first_token": {"event": "acme.first"}}));
    let marked = sample::with_event(span("llm", &[]), "acme.first", 40);
    let token = event.read(&marked).first_token.expect("told");
    assert_eq!((token.offset, token.source), (ms(40), FirstTokenSource::Event));
    let rule = serde_json::json!({"match": {"name": "llm"}, "first_token": {"attribute": "acme.first", "unit": "s"}});
    let attribute = acme(rule);
    let token = attribute.read(&span("llm", &[("acme.first", Value::Double(0.05))])).first_token.expect("told");
    assert_eq!((token.offset, token.source), (ms(50), FirstTokenSource::Attribute));
    let millis = attribute.read(&span("llm", &[("acme.first", Value::Double(50_000.0))]));
    assert_eq!((millis.first_token, millis.flags.has(Flag::UnitSuspect)), (None, true));
}

#[test]
fn labels_tokens_and_ids_come_from_the_keys_named() {
    let dialects = acme(serde_json::json!({
        "match": {"name": "llm"}, "labels": {"pool": ["acme.none", "acme.pool"]}, "input_tokens": "acme.in",
        "output_tokens": "acme.out", "streaming": "acme.stream", "cold_start": "acme.cold", "request_ids": "acme.req",
    }));
    let told = [
        ("acme.pool", sample::text("a100")),
        ("acme.in", sample::text("12")),
        ("acme.out", Value::Int(7)),
        ("acme.stream", Value::Bool(true)),
        ("acme.cold", Value::Int(0)),
        ("acme.req", sample::text("r-1")),
    ];
    let reading = dialects.read(&span("llm", &told));
    assert_eq!(reading.dimensions.get(Dimension::Pool), Some("a100"));
    assert_eq!((reading.input_tokens, reading.output_tokens), (Some(12), Some(7)));
    assert_eq!((reading.streaming, reading.cold_start), (Some(true), Some(false)));
    assert_eq!(reading.request_ids, ["r-1"]);
    for (key, _) in &told {
        assert!(dialects.allowed().span_key(key).is_some(), "{key} is kept");
    }
    assert!(dialects.allowed().resource_key("acme.pool").is_some());
    assert!(Dialects::default().allowed().span_key("acme.pool").is_none());
}

#[test]
fn a_rule_may_only_add_to_what_is_built_in() {
    let dialects = acme(serde_json::json!({
        "match": {"name": "llm_request"}, "extend": true, "labels": {"pool": "acme.pool"},
    }));
    let told = [("acme.pool", sample::text("a100")), ("gen_ai.latency.time_in_queue", Value::Double(0.1))];
    let reading = dialects.read(&span("llm_request", &told));
    assert_eq!((reading.role, reading.laid.len()), (Role::Engine, 1));
    assert_eq!((reading.dialect.as_ref(), reading.rule.as_ref()), ("acme", "r, over vllm: request span"));
    assert_eq!(reading.dimensions.get(Dimension::Pool), Some("a100"));
}

#[test]
fn noise_is_hidden() {
    let dialects = acme(serde_json::json!({"match": {"service": "unknown_service", "name": "tick"}, "ignore": true}));
    assert_eq!(dialects.read(&span("tick", &[])).role, Role::Noise);
}
