//! The reference cases: what arrives, and what the answer must then say, worked out by hand from the design.

use serde_json::{Map, Value};

use crate::common::Server;

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
                        let mut faults = compare(wanted, answer, "");
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

/// Everything that an answer says differently from what is wanted.
pub fn compare(wanted: &Value, got: &Value, path: &str) -> Vec<String> {
    let empty = Map::new();
    let flags = || got["flags"].as_array().cloned().unwrap_or_default();
    let mut faults = Vec::new();
    for (key, want) in wanted.as_object().unwrap_or(&empty) {
        let here = format!("{path}.{key}");
        let listed = || want.as_array().into_iter().flatten();
        match key.as_str() {
            "flags_include" if listed().all(|flag| flags().contains(flag)) => {}
            "flags_exclude" if !listed().any(|flag| flags().contains(flag)) => {}
            "flags_include" | "flags_exclude" => faults.push(format!("{key} {want}, flags {:?}", flags())),
            "span_count" if got["spans"].as_array().map(Vec::len) == want.as_u64().map(|n| n as usize) => {}
            "state_after_deadline" if got["state"] == *want => {}
            _ if want.is_object() => faults.extend(compare(want, &got[key], &here)),
            _ if got.get(key).is_some_and(|got| close(want, got)) => {}
            _ => faults.push(format!("{here}: want {want}, got {:?}", got.get(key))),
        }
    }
    faults
}

fn close(want: &Value, got: &Value) -> bool {
    if let (Some(want), Some(got)) = (want.as_f64(), got.as_f64()) {
        return (want - got).abs() <= f64::max(1e-3, 1e-4 * want.abs());
    }
    if let (Some(want), Some(got)) = (want.as_array(), got.as_array()) {
        return want.len() == got.len() && want.iter().zip(got).all(|(want, got)| close(want, got));
    }
    want == got
}

/// Server phases, unknown counted as 0, are the server's total.
fn sum_fault(answer: &Value) -> Option<String> {
    let total = answer["server"]["total_ms"].as_f64()?;
    let phases = answer["phases"].as_object()?;
    let parts = ["gateway", "gpu_queue", "generation", "provider", "upstream_envelope", "unattributed"];
    let sum: f64 = parts.iter().filter_map(|part| phases[&format!("{part}_ms")].as_f64()).sum();
    ((sum - total).abs() >= 2e-6).then(|| format!("phases sum to {sum}, the server's total is {total}"))
}
