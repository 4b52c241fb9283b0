//! Joining over the whole way: late data, re-sent data, several instances.

use serde_json::{Value, json};

use crate::common::Server;

/// A gateway's entry span of 100 ms with 60 ms of generation.
fn spans(trace_id: &str) -> Value {
    let span = |id: &str, parent: &str, name: &str, kind: u8, start: u64, length: u64| {
        json!({"traceId": trace_id, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": (start * 1_000_000).to_string(),
               "endTimeUnixNano": ((start + length) * 1_000_000).to_string()})
    };
    let service = json!([{"key": "service.name", "value": {"stringValue": "gateway"}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [
        span("00000000000000a1", "", "POST /v1/chat/completions", 2, 1_000, 100),
        span("00000000000000a2", "00000000000000a1", "inference.generate", 3, 1_020, 60),
    ]}]}]})
}

fn record(trace_id: &str) -> Value {
    json!([{"trace_id": trace_id, "duration_ms": 130, "status": 200, "run": "joining"}])
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

fn wants(wanted: Value) -> impl Fn(&Value) -> Vec<String> {
    move |answer| crate::expectation::differences(&wanted, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn late_spans_repair_an_orphan_and_what_is_sent_again_changes_nothing() {
    let server = Server::start().await;
    let trace_id = fresh_id();
    let path = format!("/api/v1/traces/{trace_id}");
    let first = server.upload(&record(&trace_id)).await;
    assert_eq!((&first["accepted"], &first["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!(server.get(&path).await.1["state"], "pending");
    server.wait_for(&path, wants(json!({"state": "client_only", "revision": 1, "phases": null}))).await;

    server.export(&spans(&trace_id)).await;
    let repaired = json!({"state": "matched", "revision": 2, "flags_include": ["late"],
                          "phases": {"network_envelope_ms": 30, "generation_ms": 60, "unattributed_ms": 40}});
    server.wait_for(&path, wants(repaired.clone())).await;

    server.export(&spans(&trace_id)).await;
    let again = server.upload(&record(&trace_id)).await;
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(1)));
    // The copies have been looked at once nothing waits any more.
    server
        .wait_for(
            "/api/v1/phases?run=joining&from=-1h",
            wants(json!({"unsettled_records": 0, "coverage": {"pending": 0}})),
        )
        .await;
    server.wait_for(&path, wants(repaired)).await;
    let (_, phases) = server.get("/api/v1/phases?run=joining&from=-1h").await;
    assert_eq!((&phases["coverage"]["client_records"], &phases["coverage"]["matched"]), (&json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_share_a_database_join_each_request_once() {
    let one = Server::start().await;
    let two = one.twin().await;
    let ids: Vec<String> = (0..200).map(|_| fresh_id()).collect();
    for (number, trace_id) in ids.iter().enumerate() {
        let (here, there) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
        here.export(&spans(trace_id)).await;
        there.upload(&record(trace_id)).await;
    }
    let all = json!({"coverage": {"client_records": 200, "matched": 200, "pending": 0, "server_only": 0}});
    for server in [&one, &two] {
        server.wait_for("/api/v1/phases?run=joining&from=-1h", wants(all.clone())).await;
    }
    let joined = |metrics: &str| -> u64 {
        let lines = metrics.lines().filter(|line| line.starts_with("tracejoin_requests_joined_total{"));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let counted = joined(&one.text("/metrics").await) + joined(&two.text("/metrics").await);
    assert_eq!(counted, 200, "each first join is counted by one instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_outlives_the_reader_of_its_addresses() {
    let mut server = Server::start().await;
    server.wait_for("/api/v1/phases", |_| Vec::new()).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(server.is_running());
    assert_eq!(server.get("/api/v1/phases").await.0, 200);
}
