//! A line as it is archived: as it may be sent again, and nothing else of it.

use serde::Serialize;
use serde_json::{Map, Value};

use model::{EventLog, Nanos, StreamEvent, TraceId};

/// What is reckoned for a line that waits, beside what it carries in `extra`.
const LINE_WEIGHT: usize = 160;

/// A line with what it may keep of its `extra`.
pub type KeptLine = (StreamEvent, Map<String, Value>);

/// Lines of one request that were committed together.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptLog {
    /// The trace under which they are stored.
    pub trace_id: TraceId,
    pub request_id: Option<String>,
    pub lines: Vec<KeptLine>,
}

/// The fields in the order in which people read them.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_seq: Option<i64>,
    event_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_time_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_time_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_flag: Option<bool>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: &'a Map<String, Value>,
}

impl KeptLog {
    /// The log without what its lines keep beside.
    pub fn log(&self) -> EventLog {
        let lines = self.lines.iter().map(|(event, _)| *event).collect();
        EventLog { trace_id: self.trace_id, request_id: self.request_id.clone(), lines }
    }

    pub(super) fn weight(&self) -> usize {
        let id = self.request_id.as_ref().map_or(0, String::len);
        let extra = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(LINE_WEIGHT, str::len);
        self.lines.iter().map(|(_, more)| LINE_WEIGHT + id + more.iter().map(extra).sum::<usize>()).sum()
    }

    /// Adds the lines as NDJSON. A trace id that only stands for the request id is left out, as it was when they came.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let stands_in = self.request_id.as_deref().map(TraceId::of_request_id) == Some(self.trace_id);
        let trace_id = (!stands_in).then(|| self.trace_id.to_string());
        for (event, extra) in &self.lines {
            let written = Written {
                request_id: self.request_id.as_deref(),
                trace_id: trace_id.clone(),
                event_seq: event.seq,
                event_type: event.kind.name(),
                client_time_ms: event.client_time.and_then(millis),
                service_time_ms: event.service_time.and_then(millis),
                token_count: event.tokens,
                batch_flag: event.batched,
                extra,
            };
            serde_json::to_writer(&mut *out, &written)?;
            out.push(b'\n');
        }
        Ok(())
    }
}

/// A clock's reading in milliseconds that reads back as the same nanosecond. Dividing would round once more.
fn millis(time: Nanos) -> Option<f64> {
    format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000).parse().ok()
}
