use serde_json::Value;

use super::super::sink::Found;
use super::*;

/// A report in the shape of GuideLLM 0.8.1: answered with and without streaming, cut off, failed, and one without an id
/// of its answer. `benchmarks.yaml` is the same.
const JSON: &[u8] = include_bytes!("../../../../tests/it/import/guidellm/benchmarks.json");
const YAML: &[u8] = include_bytes!("../../../../tests/it/import/guidellm/benchmarks.yaml");

fn found(bytes: &[u8], by_response_id: bool) -> anyhow::Result<Found> {
    let options = Options { by_response_id, ..Options::default() };
    Found::of(bytes, move |input, sink| read(input, options, sink))
}

fn want(mut records: Vec<Value>) -> Vec<Value> {
    records.sort_by_key(|record| record["request_id"].to_string());
    records
}

#[test]
fn both_forms_of_a_report_give_the_same_records() {
    let text = include_str!("../../../../tests/it/import/guidellm/benchmarks.records.json");
    let expected = want(serde_json::from_str(text).expect("an array of records"));
    for bytes in [JSON, YAML] {
        let found = found(bytes, true).expect("a report");
        assert_eq!(want(found.records), expected);
        assert_eq!(found.refused, [(NO_RESPONSE_ID.to_owned(), 1)].into());
        assert!(!found.cut_off);
    }
}

#[test]
fn without_the_option_the_report_is_refused_with_the_way_out() {
    let error = found(JSON, false).expect_err("no ids").to_string();
    assert!(error.contains("--by-response-id") && error.contains("opentelemetry-instrument"), "{error}");
}

#[test]
fn a_report_that_is_cut_off_says_so() {
    let at = JSON.windows(13).position(|window| window == b"chatcmpl-late").expect("the third request");
    let found = found(&JSON[..at], true).expect("a part of a report");
    assert_eq!((found.records.len(), found.cut_off), (2, true));
}

#[test]
fn what_is_no_report_is_refused() {
    for text in ["{\"benchmarks\": 5}", "{\"benchmarks\": [{\"requests\": \"many\"}]}", "[", "benchmarks: 5\n"] {
        assert!(found(text.as_bytes(), true).is_err(), "{text}");
    }
    let odd = br#"{"benchmarks": [{"requests": {"successful": [{"response_id": 5}, {}]}}]}"#;
    assert_eq!(found(odd, true).expect("a report").refused, [(NO_REQUEST.to_owned(), 2)].into());
}
