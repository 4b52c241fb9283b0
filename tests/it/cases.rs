//! The reference cases: what arrives, and what the answer must then say, worked out by hand from the design.

use serde_json::Value;

use crate::common::Server;
use crate::expectation;

const CASES: &str = include_str!("cases/cases.json");

#[tokio::test(flavor = "multi_thread")]
async fn every_case_is_answered_right_and_stays_so() {
    let server = Server::start().await;
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("cases");
    let cases: Vec<Value> = cases.iter().map(with_fresh_ids).collect();
    assert!(cases.len() >= 23);
    for case in &cases {
        for request in case["otlp"].as_array().into_iter().flatten() {
            server.export(request).await;
        }
        if case["records"].as_array().is_some_and(|records| !records.is_empty()) {
            server.upload(&case["records"]).await;
        }
        if let Some(events) = case["events"].as_array() {
            server.log(events).await;
        }
    }
    for round in ["first", "again"] {
        for case in &cases {
            for (trace_id, wanted) in case["expect"].as_object().expect("expectations") {
                server
                    .wait_for(&format!("/api/v1/traces/{trace_id}"), |answer| {
                        let mut faults = expectation::differences(wanted, answer);
                        faults.extend(sum_fault(answer));
                        faults.iter().map(|fault| format!("{} ({round}): {fault}", name(case))).collect()
                    })
                    .await;
            }
        }
    }
}

fn name(case: &Value) -> &str {
    case["name"].as_str().expect("a name")
}

/// The same case under trace ids of its own: several cases use one id.
fn with_fresh_ids(case: &Value) -> Value {
    let mut text = case.to_string();
    for trace_id in case["expect"].as_object().expect("expectations").keys() {
        let fresh = uuid::Uuid::new_v4().simple().to_string();
        text = text.replace(trace_id.as_str(), &fresh);
        if trace_id.to_uppercase() != *trace_id {
            text = text.replace(&trace_id.to_uppercase(), &fresh.to_uppercase());
        }
    }
    serde_json::from_str(&text).expect("still JSON")
}

/// Server phases, unknown counted as 0, are the server's total.
fn sum_fault(answer: &Value) -> Option<String> {
    let total = answer["server"]["total_ms"].as_f64()?;
    let phases = answer["phases"].as_object()?;
    let parts = ["gateway", "gpu_queue", "generation", "provider", "upstream_envelope", "unattributed"];
    let sum: f64 = parts.iter().filter_map(|part| phases[&format!("{part}_ms")].as_f64()).sum();
    (!expectation::is_close(total, sum)).then(|| format!("phases sum to {sum}, the server's total is {total}"))
}
