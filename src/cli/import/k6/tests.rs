//! What real runs of k6 1.1.0 become; the files in `tests/it/import/k6` are what it wrote, less points of other metrics.
//! Only `sse.ndjson` was written by hand, after the source of xk6-sse.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::identity::NO_ID;
use super::resolve::{FILTERED, OWN_UPLOAD, REDIRECT, SEVERAL};
use super::*;
use crate::cli::import::sink::Found;

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/import/k6").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn found_with(bytes: &[u8], options: Options) -> Found {
    Found::of(bytes, |input, sink| read(input, options, sink)).expect("readable")
}

fn found(name: &str) -> Found {
    found_with(&file(name), Options::default())
}

/// The only record of a file in which nothing else is a request.
fn only(name: &str) -> Value {
    let found = found(name);
    let [record] = <[Value; 1]>::try_from(found.records.clone()).unwrap_or_else(|_| panic!("{found:?}"));
    assert_eq!(Found { records: found.records, ..Found::default() }, Found { records: vec![record.clone()], ..found });
    record
}

fn counts<const N: usize>(counts: [(&str, u64); N]) -> std::collections::BTreeMap<String, u64> {
    counts.map(|(reason, members)| (reason.to_owned(), members)).into()
}

#[test]
fn a_run_is_read_whole() {
    let found = found("probe.ndjson");
    assert_eq!(
        found.records[0],
        json!({
            "trace_id": "fe43ff781be5045d601294ecd37ce2e7", "span_id": "8aad2b43b4c723bd",
            "started_at": "2026-11-29T19:31:31.961553706Z", "duration_ms": 325.612713,
            "setup": {"blocked_ms": 0.101888, "connect_ms": 1.790323, "tls_ms": 0.0},
            "headers_ms": 0.49719, "sending_ms": 0.112173, "waiting_ms": 0.385017, "receiving_ms": 325.115523,
            "status": 200, "scenario": "probe", "dimensions": {"model": "m-small"},
        })
    );
    assert_eq!(found.records.len(), 6);
    assert_eq!(found.refused, counts([(NO_ID, 2)]), "the script uploads its probes without ids");
    assert!(found.left_out.is_empty() && !found.cut_off);
    assert_eq!(self::found("probe.ndjson.gz"), found);
    let zstd = zstd::encode_all(&*file("probe.ndjson"), 1).expect("in memory");
    assert_eq!(found_with(&zstd, Options::default()), found);
}

#[test]
fn a_connection_that_is_not_had_has_no_times() {
    assert_eq!(
        only("refused.ndjson"),
        json!({
            "trace_id": "f966497c82170ac144476621fe28a904", "span_id": "fbc4ef5c7dea6bef",
            "started_at": "2026-11-30T00:18:13.610798188Z", "status": 0, "error": "connection_refused",
            "scenario": "edge", "dimensions": {"model": "m-small"},
        })
    );
}

#[test]
fn a_timeout_has_the_times_up_to_it() {
    let record = only("timeout.ndjson");
    assert_eq!((&record["status"], &record["error"]), (&json!(0), &json!("timeout")));
    assert_eq!((&record["duration_ms"], &record["sending_ms"]), (&json!(300.866098), &json!(0.065077)));
    assert_eq!(record["setup"], json!({"blocked_ms": 0.089603, "connect_ms": 0.158946, "tls_ms": 0.0}));
    assert_eq!((record.get("headers_ms"), record.get("waiting_ms")), (None, None), "no answer came");

    let within_the_answer = only("timeout_stream.ndjson");
    assert_eq!(within_the_answer["error"], "timeout");
    assert_eq!(within_the_answer["headers_ms"], 2.709643);
    assert_eq!(within_the_answer["receiving_ms"], 297.521291);
}

#[test]
fn an_unavailable_server_has_its_status() {
    let record = only("unavailable.ndjson");
    assert_eq!((&record["status"], record.get("error")), (&json!(503), None));
}

#[test]
fn an_interrupted_request_is_cancelled_and_has_no_duration() {
    assert_eq!(
        only("interrupted.ndjson"),
        json!({
            "trace_id": "2079ba020ec67136088a59a997eb16fc", "span_id": "90eab08b6d54d64a", "started_at": "2026-11-30T00:18:16.516652782Z",
            "result": "cancelled", "error": "interrupted", "scenario": "cut",
        })
    );
}

#[test]
fn asynchronous_requests_keep_their_own_ids() {
    let found = found("async.ndjson");
    let ids: Vec<_> =
        found.records.iter().map(|record| (&record["trace_id"], &record["dimensions"]["model"])).collect();
    let want = [
        (json!("111149989673ab3448d9e1ccfac73c4a"), json!("m-0")),
        (json!("fffee9dd0c90ce3dbcf03ebb4d60aa91"), json!("m-1")),
    ];
    assert_eq!(ids, want.iter().map(|(id, model)| (id, model)).collect::<Vec<_>>());
}

#[test]
fn a_batch_under_one_id_is_refused() {
    let found = found("batch.ndjson");
    assert_eq!((found.records.len(), found.refused), (0, counts([(SEVERAL, 3)])));
}

#[test]
fn a_redirect_is_one_request() {
    let found = found("redirect.ndjson");
    assert_eq!((found.records.len(), found.refused.len()), (1, 0));
    assert_eq!(found.left_out, counts([(REDIRECT, 1)]));
    assert_eq!((&found.records[0]["status"], &found.records[0]["duration_ms"]), (&json!(200), &json!(71.615618)));
    assert_eq!(only("redirect_not_followed.ndjson")["status"], 307);
}

#[test]
fn stale_metadata_is_refused_unless_one_request_is_named() {
    let found = found("stale.ndjson");
    assert_eq!((found.records.len(), found.refused), (0, counts([(SEVERAL, 2)])));
    assert_eq!(found.left_out, counts([(OWN_UPLOAD, 1)]));

    let named = Options { names: vec!["chat".to_owned()], ..Options::default() };
    let found = found_with(&file("stale.ndjson"), named);
    assert_eq!((found.records.len(), found.refused.len()), (1, 0));
    assert_eq!(found.records[0]["duration_ms"], 31.048208);
    assert_eq!(found.left_out, counts([(FILTERED, 2)]));

    let at = Options { urls: vec!["http://127.0.0.1:18181/nowhere".to_owned()], ..Options::default() };
    assert_eq!(found_with(&file("stale.ndjson"), at).left_out, counts([(FILTERED, 3)]));
}

#[test]
fn ids_that_are_none_are_refused_by_reason() {
    let found = found("bad_ids.ndjson");
    assert_eq!(found.records, Vec::<Value>::new());
    let reasons: Vec<_> = found.refused.iter().map(|(reason, members)| (&reason[..45], *members)).collect();
    assert_eq!(
        reasons,
        [
            ("a request whose trace_id has 1 bytes, must ha", 1),
            ("a request whose trace_id is all zeros, which ", 1),
            ("a request without trace_id in its metadata or", 1),
        ]
    );
}

#[test]
fn a_traceparent_tells_whether_the_trace_was_sampled() {
    let rule = Options { tags: vec!["tier=priority".parse().expect("a rule")], ..Options::default() };
    let found = found_with(&file("traceparent.ndjson"), rule);
    let parents: Vec<_> = found.records.iter().map(|record| &record["traceparent"]).collect();
    assert_eq!(
        parents,
        [
            "00-997cbdbb96d73dfb7476fe20bff424b2-7de1095f26a95486-00",
            "00-933679b5ec29f77b89bf95886131fc43-788eb4414093b1d8-01"
        ]
    );
    assert_eq!(found.records[0]["dimensions"], json!({"priority": "gold", "region": "eu"}));
}

#[test]
fn a_stream_of_xk6_sse_has_its_first_event_and_its_gaps() {
    let found = found("sse.ndjson");
    assert_eq!(
        found.records[0],
        json!({
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7",
            "started_at": "2026-11-29T19:31:32.100Z", "wall_ms": 150.0, "ttft_ms": 80.0, "streaming": true,
            "status": 200, "scenario": "probe", "dimensions": {"model": "m-small"},
            "stream": {"business_events": 4, "p50_gap_ms": 20.0, "p95_gap_ms": 30.0, "p99_gap_ms": 30.0,
                       "max_gap_ms": 30.0, "gaps_over_1s": 0, "last_event_ms": 140.0},
        })
    );
    let interrupted = &found.records[1];
    assert_eq!((&interrupted["result"], &interrupted["ttft_ms"]), (&json!("cancelled"), &json!(30.0)));
    assert_eq!((found.records.len(), found.refused.len(), found.left_out.len()), (2, 0, 0));

    let text = String::from_utf8(file("sse.ndjson")).expect("UTF-8");
    let under_way = text.lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(found_with(under_way.as_bytes(), Options::default()).left_out, counts([(NOT_ENDED, 1)]));
}

#[test]
fn the_console_gives_its_records_and_takes_labels() {
    let labels = LabelArgs { run: Some("night".to_owned()), ..LabelArgs::default() };
    let options = Options { labels: labels.clone(), ..Options::default() };
    let records = found_with(&file("console.ndjson"), options).records;
    assert_eq!(records.len(), 6);
    assert_eq!(
        records[0],
        json!({"level": "probe", "trace_id": "fe43ff781be5045d601294ecd37ce2e7", "ttfb_ms": 0.385017, "run": "night"})
    );
    let labelled = found_with(&file("probe.ndjson"), Options { labels, ..Options::default() });
    assert!(labelled.records.iter().all(|record| record["run"] == "night" && record["scenario"] == "probe"));
}

#[test]
fn other_outputs_of_k6_are_refused_with_the_way_out() {
    for text in ["metric_name,timestamp,metric_value\n", "{\n \"metrics\": {\"a\": {\"avg\": 1, \"med\": 1}}\n}\n"] {
        let read = Found::of(text.as_bytes(), |input, sink| read(input, Options::default(), sink));
        assert!(read.expect_err("no requests").to_string().contains("--out json=FILE"), "{text}");
    }
    let other = br#"{"metadata":{"request_start_ns":1,"request_end_ns":2},"metrics":{}}"#;
    let error = Found::of(other, |input, sink| read(input, Options::default(), sink)).expect_err("AIPerf's");
    assert!(error.to_string().contains("`tracejoin import aiperf`"), "{error}");
    let found = found_with(b"{\"a\":1}\n", Options::default());
    assert_eq!(found.refused, counts([(UNKNOWN_LINE, 1)]));
}

#[test]
fn a_run_that_is_there_twice_gives_copies_for_the_server_to_count() {
    let twice = [file("redirect_not_followed.ndjson"), file("redirect_not_followed.ndjson")].concat();
    let found = found_with(&twice, Options::default());
    assert_eq!((found.records.len(), found.refused.len()), (2, 0));
    assert_eq!(found.records[0], found.records[1]);
}

/// How many requests with an id have all their points before a place in the file.
fn whole_before(text: &str) -> usize {
    let ends = text.lines().filter(|line| line.contains("\"http_req_failed\"") && line.ends_with('}'));
    ends.filter(|line| line.contains("trace_id") && serde_json::from_str::<Value>(line).is_ok()).count()
}

proptest! {
    #[test]
    fn a_cut_loses_the_last_request_at_most(cut in 0_usize..28_188) {
        let text = String::from_utf8(file("probe.ndjson")).expect("UTF-8");
        let whole = found("probe.ndjson");
        let cut = &text[..cut.min(text.len())];
        let found = found_with(cut.as_bytes(), Options::default());
        prop_assert!(found.records.len() >= whole_before(cut));
        prop_assert_eq!(&found.records[..], &whole.records[..found.records.len()]);
    }

    #[test]
    fn the_order_of_points_makes_no_difference(
        lines in Just(String::from_utf8(file("probe.ndjson")).expect("UTF-8"))
            .prop_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .prop_shuffle()
    ) {
        let sorted = |mut found: Found| {
            found.records.sort_by_key(|record| record["trace_id"].to_string());
            found
        };
        let found = found_with((lines.join("\n") + "\n").as_bytes(), Options::default());
        prop_assert_eq!(sorted(found), sorted(self::found("probe.ndjson")));
    }
}
