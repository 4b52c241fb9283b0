use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use model::{Dimension, Nanos, ResultClass};

const TRACE: &str = "0000000000000007000000000000012f";

fn parse(value: &Value) -> Result<ParsedRecord, FieldError> {
    let raw = RawValue::from_string(value.to_string()).expect("valid JSON");
    record(&raw)
}

/// The smallest record, with some fields set.
fn with(more: Value) -> Value {
    let mut value = json!({"trace_id": TRACE, "duration_ms": 1842, "status": 200});
    let (Value::Object(fields), Value::Object(more)) = (&mut value, more) else { panic!("objects") };
    fields.extend(more);
    value
}

fn kept(more: Value) -> ClientRecord {
    parse(&with(more)).expect("accepted").record
}

fn refused(more: Value) -> FieldError {
    parse(&with(more)).expect_err("refused")
}

#[test]
fn the_record_of_the_interface_page_is_read_whole() {
    let parsed = parse(&json!({
        "trace_id": TRACE, "span_id": "00000000006acfc0", "request_id": "req_0001",
        "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 1842,
        "setup": {"blocked_ms": 0.1, "dns_ms": 0, "connect_ms": 0.4, "tls_ms": 3.2},
        "client_queue_ms": 0, "headers_ms": 12, "sending_ms": 0.1, "waiting_ms": 640, "receiving_ms": 1201.9,
        "ttft_ms": 652, "streaming": true, "status": 200, "result": "ok",
        "input_tokens": 412, "output_tokens": 180,
        "stream": {"business_events": 180, "batched_events": 3, "p50_gap_ms": 6, "p95_gap_ms": 11, "p99_gap_ms": 15,
                   "max_gap_ms": 40, "gaps_over_1s": 0, "done_received": true, "last_seq": 181, "missing_seq": 0},
        "response_metrics": {"kind": "vllm", "time_to_first_token_ms": 200, "generation_time_ms": 1000,
                             "queue_time_ms": 428, "mean_itl_ms": 6, "tokens_per_second": 84.17},
        "run": "r1", "scenario": "steady",
        "dimensions": {"model": "m-7b", "provider": "p", "region": "eu", "pool": "a100", "priority": 1,
                       "concurrency": 32}
    }));
    let ParsedRecord { record, ignored_fields } = parsed.expect("accepted");
    assert_eq!(ignored_fields, 0);
    assert_eq!(record.setup.total(), Some(Nanos(3_700_000)));
    assert_eq!(record.started_at, Some(UnixNanos(1_767_323_045_678_000_000)));
    assert_eq!((record.ttft, record.status), (Some(Nanos(652_000_000)), Some(200)));
    let stream = record.stream.expect("told");
    assert_eq!((stream.business_events, stream.max_gap), (Some(180), Some(Nanos(40_000_000))));
    let metrics = record.response_metrics.expect("told");
    assert_eq!((metrics.queue, metrics.decode), (Some(Nanos(428_000_000)), Some(Nanos(1_000_000_000))));
    assert_eq!(record.dimensions.get(Dimension::Concurrency), Some("32"));
}

#[test]
fn unknown_fields_are_counted_wherever_they_are() {
    let parsed = parse(&with(json!({
        "extra": 1, "setup": {"proxy_ms": 1}, "stream": {"x": 1}, "dimensions": {"team": "a"},
        "response_metrics": {"y": 1}
    })));
    assert_eq!(parsed.expect("accepted").ignored_fields, 5);
}

#[test]
fn numbers_may_be_texts_and_null_is_absent() {
    let record = kept(json!({"duration_ms": "1842.5", "status": "200", "ttft_ms": null, "streaming": "True"}));
    assert_eq!(record.duration, Some(Nanos(1_842_500_000)));
    assert_eq!((record.status, record.ttft, record.streaming), (Some(200), None, Some(true)));
}

#[test]
fn bad_durations_are_refused_by_name() {
    for (value, said) in [
        (json!(-1), "cannot be negative"),
        (json!("NaN"), "not a finite number"),
        (json!("inf"), "not a finite number"),
        (json!(1e15), "7 days"),
        (json!("soon"), "must be a number"),
        (json!([1]), "is a list"),
    ] {
        let error = refused(json!({"duration_ms": value}));
        assert_eq!(error.field, "duration_ms");
        assert!(error.reason.contains(said), "{}", error.reason);
    }
    assert_eq!(refused(json!({"setup": {"tls_ms": -3}})).field, "setup.tls_ms");
    assert_eq!(refused(json!({"stream": {"max_gap_ms": -3}})).field, "stream.max_gap_ms");
    assert_eq!(refused(json!({"output_tokens": -3})).field, "output_tokens");
    assert_eq!(refused(json!({"status": 1200})).field, "status");
}

#[test]
fn a_trace_is_needed_and_ids_must_agree() {
    let span = "b7ad6b7169203331";
    let parent = format!("00-{TRACE}-{span}-00");
    let record = kept(json!({"traceparent": parent}));
    assert_eq!(record.span_id.map(|id| id.to_string()).as_deref(), Some(span));
    assert_eq!(record.sampled, Some(false));
    assert_eq!(kept(json!({})).sampled, None);
    assert_eq!(refused(json!({"trace_id": "11".repeat(16), "traceparent": parent})).field, "trace_id");
    assert_eq!(refused(json!({"span_id": "11".repeat(8), "traceparent": parent})).field, "span_id");
    assert_eq!(refused(json!({"trace_id": null})).field, "trace_id");
    assert_eq!(refused(json!({"trace_id": "0".repeat(32)})).field, "trace_id");
    assert_eq!(refused(json!({"trace_id": "abc"})).field, "trace_id");
    assert_eq!(refused(json!({"traceparent": "00-xyz"})).field, "traceparent");
}

#[test]
fn wall_and_duration_must_agree() {
    let setup = json!({"connect_ms": 8});
    let agreeing = kept(json!({"duration_ms": 100, "wall_ms": 108.5, "setup": setup}));
    assert_eq!((agreeing.duration, agreeing.wall), (Some(Nanos(100_000_000)), Some(Nanos(108_500_000))));
    for wall in [50, 104, 2000] {
        let error = refused(json!({"duration_ms": 100, "wall_ms": wall, "setup": setup}));
        assert_eq!(error.field, "wall_ms");
        let numbers = [format!("{wall} ms"), "108 ms".to_owned()];
        assert!(numbers.iter().all(|number| error.reason.contains(number)), "{}", error.reason);
    }
}

#[test]
fn a_duration_is_needed_unless_the_request_broke_off() {
    let none = |more: Value| {
        let mut value = with(more);
        value.as_object_mut().expect("an object").remove("duration_ms");
        parse(&value)
    };
    assert_eq!(none(json!({})).expect_err("refused").field, "duration_ms");
    assert_eq!(none(json!({"result": "truncated"})).expect_err("refused").field, "duration_ms");
    for more in [json!({"status": 503}), json!({"result": "cancelled"}), json!({"status": 0, "error": "timeout"})] {
        assert_eq!(none(more).expect("accepted").record.duration, None);
    }
    let wall = none(json!({"wall_ms": 900})).expect("accepted").record;
    assert_eq!((wall.duration, wall.wall), (None, Some(Nanos(900_000_000))));
    let headers = none(json!({"quality": "headers_only", "headers_ms": 12})).expect("accepted").record;
    assert!(headers.headers_only);
}

#[test]
fn nothing_comes_after_the_end() {
    assert_eq!(refused(json!({"ttft_ms": 1900})).field, "ttft_ms");
    assert_eq!(refused(json!({"stream": {"last_event_ms": 1900}})).field, "stream.last_event_ms");
    assert_eq!(kept(json!({"ttft_ms": 1842.5})).ttft, Some(Nanos(1_842_500_000)));
}

#[test]
fn a_given_result_stands_and_an_unknown_one_is_refused() {
    assert_eq!(kept(json!({"status": 500, "result": "Cancelled"})).result, ResultClass::Cancelled);
    assert_eq!(kept(json!({"stream": {"done_received": false}})).result, ResultClass::Truncated);
    assert_eq!(kept(json!({"completeness": "missing"})).result, ResultClass::Truncated);
    let error = refused(json!({"result": "great"}));
    assert!(error.reason.contains("ok, error, timeout, cancelled, truncated"), "{}", error.reason);
}

#[test]
fn times_of_rfc_3339_have_any_number_of_digits_and_any_offset() {
    for text in ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.000000000Z"] {
        assert_eq!(kept(json!({"started_at": text})).started_at, Some(UnixNanos(1_767_323_045_000_000_000)));
    }
    for value in [json!(1_767_323_045), json!("yesterday"), json!("2300-01-01T00:00:00Z")] {
        assert_eq!(refused(json!({"started_at": value})).field, "started_at");
    }
}

#[test]
fn labels_are_texts_without_addresses_and_keys() {
    let record = kept(json!({
        "error": "mail to joe@example.com failed", "run": "r\u{0}1",
        "dimensions": {"model": "sk-live-0123456789", "run": "other", "scenario": "s", "cold_start": "true",
                       "streaming": false}
    }));
    assert_eq!(record.error.as_deref(), Some("mail to [redacted] failed"));
    assert_eq!((record.run.as_deref(), record.scenario.as_deref()), (Some("r\u{fffd}1"), Some("s")));
    assert_eq!(record.dimensions.get(Dimension::Model), Some("[redacted]"));
    assert_eq!((record.cold_start, record.streaming), (Some(true), Some(false)));
    assert_eq!(refused(json!({"dimensions": {"model": {}}})).field, "dimensions.model");
    assert_eq!(refused(json!({"request_id": "joe@example.com"})).field, "request_id");
    assert_eq!(refused(json!({"request_id": "r".repeat(300)})).field, "request_id");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[a-z_]{1,8}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

const NAMES: &[&str] = &[
    "trace_id",
    "traceparent",
    "span_id",
    "duration_ms",
    "wall_ms",
    "setup",
    "ttft_ms",
    "status",
    "result",
    "stream",
    "response_metrics",
    "started_at",
    "dimensions",
    "error",
    "output_tokens",
    "completeness",
    "quality",
];

proptest! {
    #[test]
    fn any_record_is_read_or_refused_with_a_reason(
        fields in proptest::collection::vec((proptest::sample::select(NAMES), any_json()), 0..6),
    ) {
        let more: serde_json::Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        match parse(&with(Value::Object(more))) {
            Ok(parsed) => {
                let times = [parsed.record.duration, parsed.record.wall, parsed.record.ttft];
                prop_assert!(times.into_iter().flatten().all(|time| time >= Nanos::ZERO));
            }
            Err(error) => prop_assert!(!error.reason.is_empty()),
        }
    }
}
