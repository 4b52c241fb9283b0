use serde_json::Value;

use super::super::sink::Found;
use super::*;

/// As `locust.contrib.csv_request_logger` of Locust 2.47.0 writes it, with two columns of ids behind its own.
const REQUESTS: &[u8] = include_bytes!("../../../../tests/it/import/locust/requests.csv");
/// What the locustfile in docs/load-tools.md wrote under Locust 2.47.0.
const DOCUMENTED: &[u8] = include_bytes!("../../../../tests/it/import/locust/documented.csv");
/// As it is without them.
const PLAIN: &[u8] = include_bytes!("../../../../tests/it/import/locust/plain.csv");

fn found(bytes: &[u8], headers_only: bool) -> anyhow::Result<Found> {
    let options = Options { headers_only, ..Options::default() };
    Found::of(bytes, move |input, sink| read(input, options, sink))
}

#[test]
fn a_log_with_ids_is_read() {
    let found = found(REQUESTS, false).expect("a log");
    let want: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/it/import/locust/requests.records.json"))
            .expect("an array of records");
    assert_eq!(found.records, want);
    assert_eq!(found.refused.values().sum::<u64>(), 1, "the row whose ids are empty");
    assert!(!found.cut_off);
}

#[test]
fn what_the_documented_locustfile_writes_is_read() {
    let found = found(DOCUMENTED, false).expect("a log");
    let told: Vec<_> =
        found.records.iter().map(|record| (record["status"].as_i64(), record["error"].as_str())).collect();
    let (ok, failed) = ((Some(200), None), (Some(503), Some("HTTPError")));
    assert_eq!(told, [ok, ok, failed, ok, ok]);
    assert!(found.records.iter().all(|record| record["traceparent"].as_str().is_some_and(|text| text.len() == 55)));
}

#[test]
fn a_log_without_ids_is_refused_with_the_way_out() {
    let error = found(PLAIN, false).expect_err("no ids").to_string();
    assert!(error.contains("traceparent") && error.contains("docs/load-tools.md"), "{error}");
    assert!(found(b"name,status_code,response_time\n", false).is_err());
    assert!(found(b"a,b\n1,2\n", false).expect_err("no log").to_string().contains("response_time_ms"));
}

#[test]
fn streamed_requests_end_at_their_headers() {
    let found = found(REQUESTS, true).expect("a log");
    let first = &found.records[0];
    assert_eq!((&first["headers_ms"], &first["headers_only"]), (&345.6.into(), &true.into()));
    assert_eq!(first.get("wall_ms"), None);
}

#[test]
fn only_the_last_row_may_be_cut_off() {
    let cut = REQUESTS.len() - 30;
    let found_cut = found(&REQUESTS[..cut], false).expect("a log");
    assert_eq!((found_cut.records.len(), found_cut.cut_off, found_cut.refused.len()), (4, true, 0));
    let text = "response_time_ms,trace_id\n5\n6,0af7651916cd43dd8448eb211c80319c\n7,0af7\n";
    let found = found(text.as_bytes(), false).expect("a log");
    assert_eq!((found.records.len(), found.cut_off), (1, false));
    assert_eq!(found.refused.values().sum::<u64>(), 2, "{:?}", found.refused);
}
