use serde_json::Value;

use super::super::sink::Found;
use super::*;

/// One run of three requests, in the shape of vLLM's `benchmarks/serve.py`: one answered, one refused, one timed out.
const DETAILED: &str = include_str!("../../../../tests/it/import/vllm-bench/detailed.json");
/// The same, and behind it a run of an older version, which tells fewer things.
const APPENDED: &str = include_str!("../../../../tests/it/import/vllm-bench/appended.json");

fn options(prefixes: &[&str]) -> Options {
    let started_at = "2026-11-30T00:15:00Z".parse().expect("a time");
    let request_id_prefix = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
    Options { request_id_prefix, started_at: vec![started_at], ..Options::default() }
}

fn found(text: &str, options: Options) -> anyhow::Result<Found> {
    Found::of(text.as_bytes(), move |input, sink| read(input, options, sink))
}

#[test]
fn a_run_is_read_by_the_index_of_its_lists() {
    let found = found(DETAILED, options(&["bench-1-"])).expect("a run");
    let want: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/it/import/vllm-bench/detailed.records.json"))
            .expect("an array of records");
    assert_eq!(found, Found { records: want, ..Found::default() });
}

#[test]
fn without_a_prefix_the_file_is_refused_with_the_way_out() {
    let error = found(DETAILED, Options::default()).expect_err("no ids").to_string();
    assert!(error.contains("opentelemetry-instrument") && error.contains("--request-id-prefix"), "{error}");
}

#[test]
fn appended_runs_need_a_prefix_each() {
    let found_both = found(APPENDED, options(&["a-", "b-"])).expect("two runs");
    let ids: Vec<&str> = found_both.records.iter().filter_map(|record| record["request_id"].as_str()).collect();
    assert_eq!(ids, ["a-0", "a-1", "a-2", "b-0"]);
    let older = &found_both.records[3];
    assert_eq!((&older["wall_ms"], &older["stream"]["max_gap_ms"]), (&150.0.into(), &30.0.into()));
    assert_eq!(older.get("started_at"), None);
    for prefixes in [&["a-"][..], &["a-", "b-", "c-"]] {
        assert!(found(APPENDED, options(prefixes)).is_err(), "{prefixes:?}");
    }
}

#[test]
fn lists_that_do_not_fit_one_another_are_refused() {
    for (key, value) in [("itls", "[[0.1]]"), ("completed", "3"), ("ttfts", "null"), ("errors", "[]")] {
        let mut run: Value = serde_json::from_str(DETAILED).expect("JSON");
        run[key] = serde_json::from_str(value).expect("JSON");
        assert!(found(&run.to_string(), options(&["a-"])).is_err(), "{key}");
    }
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let cut = &APPENDED[..APPENDED.len() - 20];
    let found = found(cut, options(&["a-"])).expect("a run and a half");
    assert_eq!((found.records.len(), found.cut_off), (3, true));
}
