use serde_json::Value;

use super::super::sink::Found;
use super::*;
use model::Dimension;

/// What AIPerf 0.13.0 wrote under `opentelemetry-instrument` with `--export-http-trace`.
const TRACED: &[u8] = include_bytes!("../../../../tests/it/import/aiperf/profile_export.otel.jsonl");
/// Without that option: a request of the warm-up, an answer whose connection nothing tells of, one on a connection of
/// the pool, one cancelled, one refused, one timed out.
const PLAIN: &[u8] = include_bytes!("../../../../tests/it/import/aiperf/plain.jsonl");

fn found(bytes: &[u8], options: Options) -> Found {
    Found::of(bytes, move |input, sink| read(input, options, sink)).expect("a file of AIPerf")
}

fn expected(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("an array of records")
}

#[test]
fn a_traced_file_is_read_to_the_nanosecond() {
    let found = found(TRACED, Options::default());
    let want = expected(include_str!("../../../../tests/it/import/aiperf/profile_export.otel.records.json"));
    assert_eq!(found, Found { records: want, ..Found::default() });
}

#[test]
fn the_server_takes_every_field_of_a_record() {
    for record in found(TRACED, Options::default()).records {
        let raw = serde_json::value::to_raw_value(&record).expect("JSON");
        let parsed = normalise::record(&raw).expect("a record");
        assert_eq!(parsed.ignored_fields, 0, "{record}");
        assert_eq!(parsed.record.response_metrics.expect("told").queue, Some(model::Nanos(40_000_000)));
    }
}

#[test]
fn headers_that_tell_a_timing_go_along() {
    let text = std::str::from_utf8(TRACED).expect("UTF-8").lines().next().expect("a line");
    for (headers, kind, queue) in [
        (serde_json::json!({"X-Queue-Time": "12", "x-inference-time": "30"}), "tgi_headers", "x-queue-time"),
        (
            serde_json::json!({"x-vllm-queue-time": "12", "Server-Timing": "queue;dur=1"}),
            "vllm_headers",
            "x-vllm-queue-time",
        ),
    ] {
        let mut line: Value = serde_json::from_str(text).expect("a line");
        line["trace_data"]["response_headers"] = headers;
        let told = &found(line.to_string().as_bytes(), Options::default()).records[0]["response_metrics"];
        assert_eq!((&told["kind"], &told[queue]), (&kind.into(), &"12".into()), "{told}");
    }
}

#[test]
fn without_headers_the_request_id_is_left() {
    let found = found(PLAIN, Options::default());
    let want = expected(include_str!("../../../../tests/it/import/aiperf/plain.records.json"));
    assert_eq!(found.records, want);
    assert_eq!(found.left_out, [(WARM_UP.to_owned(), 1)].into());
    assert!(found.refused.is_empty() && !found.cut_off);
}

#[test]
fn the_warm_up_is_imported_where_it_is_asked_for() {
    let found = found(PLAIN, Options { warmup: true, ..Options::default() });
    assert_eq!((found.records.len(), found.left_out.len()), (6, 0));
}

#[test]
fn setup_and_duration_make_the_wall() {
    for (line, record) in TRACED.split(|byte| *byte == b'\n').zip(found(TRACED, Options::default()).records) {
        let line: Value = serde_json::from_slice(line).expect("a line");
        let at = |name: &str| line["metadata"][name].as_i64().expect("a time");
        let millis = |value: &Value| value.as_f64().expect("a duration");
        let wall = (at("request_end_ns") - at("request_start_ns")) as f64 / 1e6;
        let setup: f64 = record["setup"].as_object().expect("parts").values().map(millis).sum();
        assert!((setup + millis(&record["duration_ms"]) - wall).abs() < 1e-6, "{record}");
        let parts: f64 = ["sending_ms", "waiting_ms", "receiving_ms"].iter().map(|name| millis(&record[name])).sum();
        assert!((parts - millis(&record["duration_ms"])).abs() < 1e-6, "{record}");
    }
}

#[test]
fn one_traceparent_for_all_falls_back_to_the_request_id() {
    let own = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("a line");
        let same = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        // Names of headers have no case; the server's own answer about the trace is not what is tested here.
        line["trace_data"]["request_headers"] = serde_json::json!({"TraceParent": same});
        line["trace_data"]["response_headers"] = serde_json::json!({});
        line
    };
    let mut lines: Vec<Value> = std::str::from_utf8(TRACED).expect("UTF-8").lines().map(own).collect();
    lines[1]["metadata"]["x_request_id"] = Value::Null;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let found = found(text.as_bytes(), Options::default());
    assert_eq!((found.records.len(), found.refused), (5, [(ids::CONSTANT.to_owned(), 1)].into()));
    assert!(found.records.iter().all(|record| record.get("traceparent").is_none() && record["request_id"].is_string()));
}

#[test]
fn a_server_that_started_a_trace_of_its_own_is_followed() {
    let theirs = "4bf92f3577b34da6a3ce929d0e0e4736";
    let text = std::str::from_utf8(TRACED).expect("UTF-8").lines().next().expect("a line");
    let mut line: Value = serde_json::from_str(text).expect("a line");
    line["trace_data"]["response_headers"]["traceresponse"] = format!("00-{theirs}-00f067aa0ba902b7-01").into();
    let found = found(line.to_string().as_bytes(), Options::default());
    assert_eq!(found.records[0]["trace_id"], theirs);
    assert_eq!(found.records[0].get("traceparent"), None);
}

#[test]
fn a_broken_line_is_refused_and_a_cut_one_is_said() {
    let text = [TRACED, b"{\"metadata\":{}}\n", &TRACED[..100]].concat();
    let found = found(&text, Options::default());
    assert_eq!((found.records.len(), found.cut_off), (6, true));
    assert_eq!(found.refused, [(NO_LINE.to_owned(), 1)].into());
}

#[test]
fn labels_are_filled_in() {
    let labels = LabelArgs {
        run: Some("r1".to_owned()),
        scenario: Some("steady".to_owned()),
        dimensions: vec![(Dimension::Model, "m-7b".to_owned())],
    };
    let found = found(TRACED, Options { labels, ..Options::default() });
    assert!(found.records.iter().all(|record| record["run"] == "r1" && record["scenario"] == "steady"));
    assert!(found.records.iter().all(|record| record["dimensions"]["model"] == "m-7b"));
}
