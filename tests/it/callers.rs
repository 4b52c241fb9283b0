//! A caller's own CLIENT span in the place of a client record, until a record comes.

use serde_json::{Value, json};

use crate::common::Server;
use crate::expectation::differences;

/// A call of 120 ms that lasts until the body, and the server's 100 ms that answer it on another clock.
fn spans(trace_id: &str, start: i64) -> Value {
    let group = |service: &str, scope: &str, span: Value| {
        let name = json!([{"key": "service.name", "value": {"stringValue": service}}]);
        json!({"resource": {"attributes": name}, "scopeSpans": [{"scope": {"name": scope}, "spans": [span]}]})
    };
    let span = |id: &str, parent: &str, kind: u8, start: i64, millis: i64| {
        json!({"traceId": trace_id, "spanId": id, "parentSpanId": parent, "name": "POST", "kind": kind,
               "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + millis * 1_000_000).to_string()})
    };
    json!({"resourceSpans": [
        group("app", "opentelemetry.instrumentation.requests", span("00000000000000c1", "", 3, start, 120)),
        group("gateway", "", span("00000000000000a1", "00000000000000c1", 2, 5_000_000, 100)),
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_span_stands_for_a_record_until_one_comes() {
    let server = Server::start().await;
    let trace_id = uuid::Uuid::new_v4().simple().to_string();
    let path = format!("/api/v1/traces/{trace_id}");
    let wants = |wanted: Value| move |answer: &Value| differences(&wanted, answer);
    server.export(&spans(&trace_id, chrono::Utc::now().timestamp_nanos_opt().expect("this century"))).await;
    // A record may still come.
    server.wait_for(&path, wants(json!({"state": "pending", "client": {"source": "span"}}))).await;
    let from_span = json!({"state": "matched", "client": {"source": "span", "wall_ms": 120, "duration_ms": null},
                           "flags_include": ["client_from_span", "setup_unknown"],
                           "phases": {"wall_envelope_ms": 20, "network_envelope_ms": null}});
    server.wait_for(&path, wants(from_span)).await;
    let coverage = "/api/v1/coverage?from=-5m";
    let counted = json!({"coverage": {"client_records": 1, "client_from_spans": 1, "matched": 1}});
    server.wait_for(coverage, wants(counted)).await;
    let (_, phases) = server.get("/api/v1/phases?from=-5m").await;
    let group = &phases["groups"][0];
    assert_eq!(group["phases"]["wall_envelope"]["n"], 1);
    assert!(group["client"].get("duration").is_none_or(|duration| duration["n"] == 0), "{group}");

    server
        .upload(&json!([{"trace_id": trace_id, "span_id": "00000000000000c1", "duration_ms": 130, "status": 200}]))
        .await;
    let from_record = json!({"state": "matched", "client": {"source": "record", "duration_ms": 130, "wall_ms": null},
                             "flags_include": ["late"], "flags_exclude": ["client_from_span"],
                             "phases": {"network_envelope_ms": 30}});
    server.wait_for(&path, wants(from_record)).await;
    let counted = json!({"coverage": {"client_records": 1, "client_from_spans": 0, "matched": 1}});
    server.wait_for(coverage, wants(counted)).await;
}
