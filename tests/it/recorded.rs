//! Spans that real systems wrote, and what must be made of them. A file says which versions wrote it; what is expected
//! was worked out from the spans' own times by the design's rules, not taken from an answer. Nothing but the wire's
//! normalisation and the pure join is asked.

use api::{Explained, TraceAnswer};
use join::{Progress, TraceInputs, explain};
use model::ReceivedRecord;
use model::{Fragment, TraceId, UnixNanos};
use normalise::{self, Dialects, Limits, dialect};
use serde_json::Value;
use serde_json::value::RawValue;
use tracejoin::receive::otlp::json as otlp_json;

use crate::expectation::differences;

/// What was received of one trace.
fn inputs(recording: &Value, trace_id: TraceId) -> TraceInputs {
    let mut fragments: Vec<Fragment> = Vec::new();
    for request in recording["otlp"].as_array().expect("requests") {
        let decoded = otlp_json::decode(request.to_string().as_bytes()).expect("OTLP in JSON");
        let normalised = normalise::fragments(decoded.request, &Limits::default(), &Dialects::default());
        assert_eq!(normalised.rejected_spans(), 0, "{}", normalised.message);
        let mine = normalised.fragments.into_iter().filter(|(id, _)| *id == trace_id);
        fragments.extend(mine.map(|(_, fragment)| fragment));
    }
    let records = recording["records"].as_array().expect("records").iter().map(|record| {
        let raw = RawValue::from_string(record.to_string()).expect("JSON");
        normalise::record(&raw).unwrap_or_else(|error| panic!("{error}: {record}")).record
    });
    let arrived = |record| ReceivedRecord { record, received_at: UnixNanos(0) };
    let records = records.filter(|record| record.trace_id == trace_id).map(arrived).collect();
    TraceInputs { fragments, records, ..TraceInputs::empty(trace_id, UnixNanos(0), 1000) }
}

fn check(text: &str) {
    let recording: Value = serde_json::from_str(text).expect("a recording");
    let expected = recording["expect"].as_object().expect("expectations");
    assert!(!expected.is_empty());
    for (trace_id, wanted) in expected {
        let inputs = inputs(&recording, trace_id.parse().expect("a trace id"));
        let explained = explain(inputs, Progress::FINAL, &dialect::read).shown().into_iter();
        let shown: Vec<Explained> = explained.map(|joined| Explained::of(joined, 1)).collect();
        let got = serde_json::to_value(TraceAnswer::of(&shown).expect("something to show")).expect("JSON");
        let faults = differences(wanted, &got);
        assert!(faults.is_empty(), "{}, {trace_id}: {}\n{got:#}", recording["recorded"], faults.join("; "));
    }
}

#[test]
fn litellm_version_1() {
    check(include_str!("recorded/litellm-v1.json"));
}

#[test]
fn litellm_version_1_under_a_fastapi_without_spans_of_its_own() {
    check(include_str!("recorded/litellm-v1-old-fastapi.json"));
}

#[test]
fn litellm_version_2() {
    check(include_str!("recorded/litellm-v2.json"));
}
