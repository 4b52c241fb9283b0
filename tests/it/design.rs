//! Small traces whose right answers follow from the design by hand: each case is the JSON that a sender would send, and
//! the arithmetic stands beside it. Nothing but the wire's normalisation and the pure join is asked.

use api::{Explained, TraceAnswer};
use join::{Progress, TraceInputs, explain};
use model::ReceivedRecord;
use model::{Fragment, TraceId, UnixNanos};
use normalise::{self, Dialects, Limits, dialect};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracejoin::receive::otlp::json as otlp_json;

use crate::expectation;

const TRACE: &str = "000000000000000000000000000000f1";

/// A case: what arrives, and what is part of the answer.
struct Case {
    name: String,
    /// Groups of spans, one a resource: `[resource attributes, spans, scope name]`.
    spans: Value,
    records: Value,
    want: Value,
}

/// Reads a file of cases. Each has its arithmetic under `why`.
fn cases(text: &str) -> Vec<Case> {
    let Value::Array(cases) = serde_json::from_str(text).expect("a list of cases") else { panic!("no list") };
    cases
        .into_iter()
        .map(|case| Case {
            name: case["name"].as_str().expect("a name").to_owned(),
            spans: case["spans"].clone(),
            records: case["records"].clone(),
            want: case["want"].clone(),
        })
        .collect()
}

/// A span in short form: `id|parent|name|kind|start_ms|length_ms`, then its attributes as an object, its events as pairs
/// of name and milliseconds, and `error` where it failed. A parent `-` is none, a length `-` a missing end.
fn span(short: &Value) -> Value {
    let head: Vec<&str> = short[0].as_str().expect("the span's head").split('|').map(str::trim).collect();
    let [id, parent, name, kind, start, length] = head.as_slice() else { panic!("six parts: {short}") };
    let start = nanos(start);
    let mut span = json!({
        "traceId": TRACE, "spanId": format!("{id:0>16}"), "name": name, "kind": kind.parse::<i32>().expect("a kind"),
        "startTimeUnixNano": start.to_string(), "attributes": attributes(&short[1]), "events": events(&short[2]),
    });
    if *parent != "-" {
        span["parentSpanId"] = json!(format!("{parent:0>16}"));
    }
    if *length != "-" {
        span["endTimeUnixNano"] = json!((start + nanos(length) - BASE).to_string());
    }
    if short[3] == "error" {
        span["status"] = json!({"code": 2});
    }
    span
}

/// 2026-01-02T03:04:05Z.
const BASE: i64 = 1_767_323_045_000_000_000;

fn nanos(millis: &str) -> i64 {
    let millis: f64 = millis.parse().expect("milliseconds");
    BASE + (millis * 1e6).round() as i64
}

fn attributes(pairs: &Value) -> Value {
    let Value::Object(pairs) = pairs else { return json!([]) };
    let value = |value: &Value| match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(bool) => json!({"boolValue": bool}),
        Value::Number(number) if number.is_i64() => json!({"intValue": number.to_string()}),
        other => json!({"doubleValue": other}),
    };
    pairs.iter().map(|(key, told)| json!({"key": key, "value": value(told)})).collect()
}

fn events(events: &Value) -> Value {
    let Value::Array(events) = events else { return json!([]) };
    let event = |event: &Value| {
        let at = nanos(&event[1].to_string());
        json!({"name": event[0], "timeUnixNano": at.to_string()})
    };
    events.iter().map(event).collect()
}

fn fragments(groups: &Value) -> Vec<Fragment> {
    let groups: Vec<Value> = groups
        .as_array()
        .expect("groups of spans")
        .iter()
        .map(|group| {
            let spans: Vec<Value> = group[1].as_array().expect("spans").iter().map(span).collect();
            let scope = json!({"name": group[2].as_str().unwrap_or_default()});
            json!({"resource": {"attributes": attributes(&group[0])}, "scopeSpans": [{"scope": scope, "spans": spans}]})
        })
        .collect();
    let body = json!({"resourceSpans": groups}).to_string();
    let decoded = otlp_json::decode(body.as_bytes()).expect("OTLP in JSON");
    let normalised = normalise::fragments(decoded.request, &Limits::default(), &Dialects::default());
    assert_eq!(normalised.rejected_spans(), 0, "{}", normalised.message);
    normalised.fragments.into_iter().map(|(_, fragment)| fragment).collect()
}

fn answer(case: &Case, backwards: bool) -> Value {
    let mut fragments = fragments(&case.spans);
    let mut records: Vec<ReceivedRecord> = Vec::new();
    for (at, record) in (0..).zip(case.records.as_array().expect("records")) {
        let mut record = record.clone();
        if record.get("traceparent").is_none() {
            record["trace_id"] = json!(TRACE);
        }
        let raw = RawValue::from_string(record.to_string()).expect("JSON");
        let record = normalise::record(&raw).unwrap_or_else(|error| panic!("{}: {error}", case.name)).record;
        records.push(ReceivedRecord { record, received_at: UnixNanos(at) });
    }
    if backwards {
        fragments.iter_mut().for_each(|fragment| fragment.spans.reverse());
        fragments.reverse();
        records.reverse();
    }
    let trace_id: TraceId = TRACE.parse().expect("a trace id");
    let nothing = TraceInputs::empty(trace_id, UnixNanos(BASE), 1000);
    let inputs = TraceInputs { fragments, records, ..nothing };
    let shown: Vec<Explained> = explain(inputs, Progress::FINAL, &dialect::read)
        .shown()
        .into_iter()
        .map(|joined| Explained::of(joined, 1))
        .collect();
    serde_json::to_value(TraceAnswer::of(&shown).expect("something to show")).expect("JSON")
}

/// Server phases, unknown counted as 0, are the server's total; those up to the first token its TTFT.
fn sums(got: &Value, found: &mut Vec<String>) {
    for (split, whole) in [("phases", "total_ms"), ("ttft", "ttft_ms")] {
        let names = ["gateway", "gpu_queue", "generation", "provider", "upstream_envelope", "unattributed"];
        if !got[split].is_object() {
            continue;
        }
        let sum: f64 = names.iter().filter_map(|name| got[split][format!("{name}_ms")].as_f64()).sum();
        if got["server"][whole].as_f64().is_none_or(|total| (total - sum).abs() > 1e-9) {
            found.push(format!("{split} make {sum}, the server's {whole} is {}", got["server"][whole]));
        }
    }
}

fn check(text: &str) {
    let mut failed = Vec::new();
    for case in cases(text) {
        for backwards in [false, true] {
            let got = answer(&case, backwards);
            let mut found = expectation::differences(&case.want, &got);
            sums(&got, &mut found);
            if !found.is_empty() {
                failed.push(format!("{} (backwards: {backwards}): {}", case.name, found.join("; ")));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn painting() {
    check(include_str!("design/painting.json"));
}

#[test]
fn clocks_and_calls() {
    check(include_str!("design/clocks.json"));
}

#[test]
fn answers_that_carry_their_own_timing() {
    check(include_str!("design/response_metrics.json"));
}

#[test]
fn identity_states_and_flags() {
    check(include_str!("design/identity.json"));
}

#[test]
fn callers_without_records() {
    check(include_str!("design/callers.json"));
}

#[test]
fn streaming_and_rates() {
    check(include_str!("design/streaming.json"));
}

#[test]
fn systems_in_their_own_languages() {
    check(include_str!("design/systems.json"));
}

#[test]
fn traps_of_real_systems() {
    check(include_str!("design/traps.json"));
}
