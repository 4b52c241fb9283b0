//! A line of AIPerf's `profile_export.jsonl`; names are AIPerf's. What is not read is not kept.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use model::Nanos;

/// One request.
#[derive(Debug, Deserialize)]
pub struct Exported {
    /// Ids and times.
    pub metadata: Metadata,
    /// Measurements by name; those that could not be made are absent.
    #[serde(default)]
    pub metrics: HashMap<String, Metric>,
    /// Headers and the times of the connection, with `--export-http-trace`.
    pub trace_data: Option<TraceData>,
    /// Why it failed.
    pub error: Option<Failure>,
}

/// Times are nanoseconds of the Unix epoch, taken from one monotonic clock and one reading of the wall clock.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Sent as X-Request-ID, one for each request. A UUID, and no trace id even without its dashes.
    pub x_request_id: Option<String>,
    /// When the request was due.
    pub credit_issued_ns: Option<i64>,
    /// Before the connection was asked for.
    pub request_start_ns: i64,
    /// The answer's headers.
    pub request_ack_ns: Option<i64>,
    /// The end of the answer, or the failure.
    pub request_end_ns: i64,
    /// `warmup` or `profiling`.
    pub benchmark_phase: Option<String>,
    /// Whether AIPerf gave up.
    #[serde(default)]
    pub was_cancelled: bool,
}

/// Times as in [`Metadata`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TraceData {
    /// Headers sent, those with credentials redacted.
    pub request_headers: HashMap<String, String>,
    /// Headers of the answer.
    pub response_headers: HashMap<String, String>,
    /// The answer's status.
    pub response_status_code: Option<i64>,
    /// Name look-up.
    pub dns_lookup_start_ns: Option<i64>,
    pub dns_lookup_end_ns: Option<i64>,
    /// Connecting, TLS included.
    pub tcp_connect_start_ns: Option<i64>,
    pub tcp_connect_end_ns: Option<i64>,
    /// When a connection was taken from the pool instead.
    pub connection_reused_ns: Option<i64>,
    /// The whole request is sent.
    pub request_send_end_ns: Option<i64>,
    /// The answer's headers; not to be mistaken for `response_receive_start_ns`, the first of its body.
    pub response_headers_received_ns: Option<i64>,
}

/// A value and its unit, which is not the same in every version.
#[derive(Debug, Deserialize)]
pub struct Metric {
    value: Value,
    #[serde(default)]
    unit: String,
}

#[derive(Debug, Deserialize)]
pub struct Failure {
    /// An HTTP status, where there was an answer.
    pub code: Option<i64>,
    /// The class of the exception.
    #[serde(rename = "type")]
    pub class: Option<String>,
}

impl Exported {
    /// A duration among the metrics.
    pub fn duration(&self, name: &str) -> Option<Nanos> {
        let metric = self.metrics.get(name)?;
        metric.in_nanos(metric.value.as_f64()?)
    }

    /// A list of durations among the metrics.
    pub fn durations(&self, name: &str) -> Option<Vec<Nanos>> {
        let metric = self.metrics.get(name)?;
        metric.value.as_array()?.iter().map(|value| metric.in_nanos(value.as_f64()?)).collect()
    }

    /// A count among the metrics.
    pub fn count(&self, name: &str) -> Option<i64> {
        let count = self.metrics.get(name)?.value.as_f64()?;
        (count.fract() == 0.0 && (0.0..1e15).contains(&count)).then_some(count as i64)
    }
}

impl Metric {
    /// `None` for a unit that is none of time, and for a negative time, which no measurement gives.
    fn in_nanos(&self, value: f64) -> Option<Nanos> {
        let millis = match self.unit.as_str() {
            "ns" => value / 1e6,
            "us" => value / 1e3,
            "ms" => value,
            "sec" | "s" => value * 1e3,
            _ => return None,
        };
        Nanos::from_millis(millis).filter(|nanos| nanos.0 >= 0)
    }
}

impl TraceData {
    /// A header sent.
    pub fn sent(&self, name: &str) -> Option<&str> {
        header(&self.request_headers, name)
    }

    /// A header of the answer.
    pub fn answered(&self, name: &str) -> Option<&str> {
        header(&self.response_headers, name)
    }
}

/// Headers are kept as they were written, and their names are the same in any case.
fn header<'a>(headers: &'a HashMap<String, String>, name: &str) -> Option<&'a str> {
    headers.iter().find(|(told, _)| told.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
