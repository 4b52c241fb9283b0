//! A simulated call as its client's record.

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::gateway::{Call, Ending};
use super::{Identity, labels};
use crate::model::{Nanos, UnixNanos};

/// The record that a load generator would upload.
pub fn record(call: &Call, identity: &Identity, start: UnixNanos, run: &str) -> Value {
    let started_at = (start + call.at).to_datetime().to_rfc3339_opts(SecondsFormat::Millis, true);
    let mut record = json!({
        "trace_id": identity.trace.to_string(),
        "span_id": hex::encode(identity.client),
        "started_at": started_at,
        "duration_ms": call.client_duration().as_millis(),
        "setup": {"blocked_ms": 0, "dns_ms": 0, "connect_ms": call.setup.as_millis() / 3.0,
                  "tls_ms": call.setup.as_millis() * 2.0 / 3.0},
        "ttft_ms": call.client_first_token().map(Nanos::as_millis),
        "streaming": call.streaming,
        "status": if call.ending == Ending::GivenUp { 0 } else { labels::status(call) },
        "result": result(call),
        "run": run,
        "scenario": "steady",
        "dimensions": {"model": labels::model(call), "provider": labels::provider(call), "region": "eu"},
    });
    if call.ending == Ending::Answered {
        record["input_tokens"] = call.input_tokens.into();
        record["output_tokens"] = call.output_tokens.into();
        if let Some(stream) = stream(call) {
            record["stream"] = stream;
        }
    }
    record
}

fn result(call: &Call) -> &'static str {
    match call.ending {
        Ending::Answered => "ok",
        Ending::Refused | Ending::Failed => "error",
        Ending::GivenUp => "timeout",
    }
}

/// One event a token, evenly spaced, and the end marker.
fn stream(call: &Call) -> Option<Value> {
    let first = call.client_first_token()?;
    let gap = (call.client_duration() - first).as_millis() / call.output_tokens as f64;
    Some(json!({
        "business_events": call.output_tokens, "batched_events": 0, "p50_gap_ms": gap, "p95_gap_ms": gap,
        "p99_gap_ms": gap, "max_gap_ms": gap, "gaps_over_1s": 0, "done_received": true,
        "last_seq": call.output_tokens, "missing_seq": 0,
    }))
}
