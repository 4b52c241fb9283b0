//! One measurement of k6's JSON output.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use model::UnixNanos;

/// What is measured, of what tells about requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// A part of a request.
    Part(Part),
    /// An event of a stream, which xk6-sse counts.
    StreamEvent,
    /// Bytes that an iteration sent or received.
    Bytes,
    /// A gRPC call.
    Grpc,
}

/// What k6 measures of each request of k6/http, under one time and the same labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Count,
    Duration,
    Blocked,
    Connecting,
    Tls,
    Sending,
    Waiting,
    Receiving,
    Failed,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 9;
}

impl Metric {
    /// From k6's name; `None` for what tells nothing of a request.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "http_reqs" => Self::Part(Part::Count),
            "http_req_duration" => Self::Part(Part::Duration),
            "http_req_blocked" => Self::Part(Part::Blocked),
            "http_req_connecting" => Self::Part(Part::Connecting),
            "http_req_tls_handshaking" => Self::Part(Part::Tls),
            "http_req_sending" => Self::Part(Part::Sending),
            "http_req_waiting" => Self::Part(Part::Waiting),
            "http_req_receiving" => Self::Part(Part::Receiving),
            "http_req_failed" => Self::Part(Part::Failed),
            "sse_event" => Self::StreamEvent,
            "data_sent" | "data_received" => Self::Bytes,
            "grpc_req_duration" => Self::Grpc,
            _ => return None,
        })
    }
}

/// Tags and metadata of a point. All points of one request have the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Of low cardinality: k6 indexes them.
    pub tags: BTreeMap<String, String>,
    /// Of any cardinality.
    pub metadata: BTreeMap<String, String>,
}

impl Labels {
    /// A tag that is not empty.
    pub fn tag(&self, name: &str) -> Option<&str> {
        said(&self.tags, name)
    }

    /// A label that is not empty, wherever it stands; metadata is the nearer to the request.
    pub fn any(&self, name: &str) -> Option<&str> {
        said(&self.metadata, name).or_else(|| said(&self.tags, name))
    }
}

fn said<'a>(labels: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    labels.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What is measured.
    pub metric: Metric,
    /// When; for a request, its end.
    pub time: UnixNanos,
    /// Milliseconds, or a count.
    pub value: f64,
    pub labels: Labels,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    value: f64,
    #[serde(default)]
    tags: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, Value>>,
}

impl Point {
    /// Reads what stands under `data`; `None` where it is not a point's.
    pub fn read(metric: Metric, data: &RawValue) -> Option<Self> {
        let data: Data = serde_json::from_str(data.get()).ok()?;
        let time = DateTime::parse_from_rfc3339(&data.time).ok()?.timestamp_nanos_opt()?;
        let labels = Labels { tags: texts(data.tags), metadata: texts(data.metadata) };
        Some(Self { metric, time: UnixNanos(time), value: data.value, labels })
    }
}

/// k6 writes texts; other writers of its form may write numbers.
fn texts(labels: Option<BTreeMap<String, Value>>) -> BTreeMap<String, String> {
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    labels.unwrap_or_default().into_iter().map(|(name, value)| (name, text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Option<Point> {
        Point::read(Metric::Bytes, serde_json::from_str(data).expect("JSON"))
    }

    #[test]
    fn times_have_any_number_of_digits_and_an_offset() {
        for (text, nanos) in [
            ("1970-01-01T00:00:01Z", 1_000_000_000),
            ("1970-01-01T00:00:01.5Z", 1_500_000_000),
            ("1970-01-01T02:00:01.000000007+02:00", 1_000_000_007),
        ] {
            let point = read(&format!(r#"{{"time":"{text}","value":1}}"#)).expect(text);
            assert_eq!(point.time, UnixNanos(nanos), "{text}");
        }
        assert_eq!(read(r#"{"time":"yesterday","value":1}"#), None);
        assert_eq!(read(r#"{"time":"1970-01-01T00:00:01Z"}"#), None);
    }

    #[test]
    fn labels_are_texts_and_empty_ones_are_none() {
        let point = read(
            r#"{"time":"1970-01-01T00:00:01Z","value":1,"tags":{"a":"tag","b":" "},"metadata":{"a":"meta","n":7}}"#,
        );
        let labels = point.expect("a point").labels;
        assert_eq!((labels.any("a"), labels.tag("a"), labels.any("b")), (Some("meta"), Some("tag"), None));
        assert_eq!(labels.any("n"), Some("7"));
    }
}
