//! A client record as it is uploaded: one line of JSON. What is not known is left out, never written as 0.

use std::collections::BTreeMap;
use std::fmt::Display;

use chrono::SecondsFormat;
use serde::{Serialize, Serializer};
use serde_json::Value;

use model::{Dimension, Nanos, ResultClass, SpanId, StreamSummary, TraceId, UnixNanos};

/// One client record. Its fields are those that `POST /api/v1/records` takes; `docs/api.md` says what each means.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RecordLine {
    /// The trace, where there is no `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub trace_id: Option<TraceId>,
    /// The client's own span: the parent that the server's entry span names.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub span_id: Option<SpanId>,
    /// The header that went with the request: both ids, and whether the trace was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// An id that both sides carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// When it started, by the client's clock.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub started_at: Option<UnixNanos>,
    /// Start of sending to the last byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Millis>,
    /// The same with setup, where setup cannot be told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<Millis>,
    /// Connection setup in disjoint parts.
    #[serde(skip_serializing_if = "SetupLine::is_unknown")]
    pub setup: SetupLine,
    /// Scheduled to started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_queue_ms: Option<Millis>,
    /// Start of sending to the first response byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_ms: Option<Millis>,
    /// Sending the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sending_ms: Option<Millis>,
    /// Sent to the first response byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_ms: Option<Millis>,
    /// First response byte to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiving_ms: Option<Millis>,
    /// Start of sending to the first business event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<Millis>,
    /// Start of sending to the first visible text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_visible_ms: Option<Millis>,
    /// Whether the answer was streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// HTTP status; 0 where there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// How it ended; derived from `status` and `error` where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultClass>,
    /// A class of error of low cardinality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<i64>,
    /// What was seen of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamLine>,
    /// The answer's own timing, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_metrics: Option<Value>,
    /// Whether the record ends at the answer's headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_only: Option<bool>,
    /// The test run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The load scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// All other labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dimensions: BTreeMap<Dimension, String>,
}

/// Connection setup; the parts do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SetupLine {
    /// Waiting for a connection without connecting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_ms: Option<Millis>,
    /// Name look-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_ms: Option<Millis>,
    /// TCP connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<Millis>,
    /// TLS handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<Millis>,
}

impl SetupLine {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What was seen of a streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StreamLine {
    /// Events with content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub business_events: Option<i64>,
    /// Business events that arrived together with another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched_events: Option<i64>,
    /// Gap between business events, median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_gap_ms: Option<Millis>,
    /// Gap, 0.95-quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_gap_ms: Option<Millis>,
    /// Gap, 0.99-quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_gap_ms: Option<Millis>,
    /// Longest gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap_ms: Option<Millis>,
    /// Gaps over one second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps_over_1s: Option<i64>,
    /// Start of sending to the last business event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_ms: Option<Millis>,
    /// Whether the end marker came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_received: Option<bool>,
    /// Highest sequence number seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<i64>,
    /// Sequence numbers that never came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_seq: Option<i64>,
    /// Business events that came in bursts after a silence; 0 where nothing speaks for a buffer on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered_events: Option<i64>,
    /// The median silence before such a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_silence_ms: Option<Millis>,
    /// The median number of events in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_burst: Option<i64>,
}

impl StreamLine {
    /// What the arrivals of the business events tell, since the request was sent and in order.
    pub fn of_arrivals(times: &[Nanos]) -> Self {
        let StreamSummary {
            business_events,
            p50_gap,
            p95_gap,
            p99_gap,
            max_gap,
            gaps_over_1s,
            last_event,
            buffered_events,
            buffer_silence,
            buffer_burst,
            ..
        } = StreamSummary::of_arrivals(times);
        Self {
            business_events,
            p50_gap_ms: p50_gap.map(Millis),
            p95_gap_ms: p95_gap.map(Millis),
            p99_gap_ms: p99_gap.map(Millis),
            max_gap_ms: max_gap.map(Millis),
            gaps_over_1s,
            last_event_ms: last_event.map(Millis),
            buffered_events,
            buffer_silence_ms: buffer_silence.map(Millis),
            buffer_burst,
            ..Self::default()
        }
    }

    /// The same of the first arrival and the gaps after it, in their order.
    pub fn of_gaps(first: Nanos, gaps: &[Nanos]) -> Self {
        let mut at = first;
        let later = gaps.iter().map(|gap| {
            at += *gap;
            at
        });
        Self::of_arrivals(&std::iter::once(first).chain(later).collect::<Vec<_>>())
    }
}

/// A duration that is written in milliseconds, as a decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub Nanos);

impl Millis {
    /// From a number of milliseconds; `None` where it is not finite or does not fit.
    pub fn new(millis: f64) -> Option<Self> {
        Nanos::from_millis(millis).map(Self)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_millis())
    }
}

fn shown<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn rfc3339<S: Serializer>(at: &Option<UnixNanos>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = at.map(|at| at.to_datetime().to_rfc3339_opts(SecondsFormat::AutoSi, true));
    shown(&text, serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use normalise;

    fn millis(millis: f64) -> Option<Millis> {
        Millis::new(millis)
    }

    #[test]
    fn a_line_is_a_record_that_the_server_reads_whole() {
        let line = RecordLine {
            trace_id: Some(TraceId::from_bytes([1; 16]).expect("an id")),
            span_id: Some(SpanId::from_bytes([2; 8]).expect("an id")),
            started_at: Some(UnixNanos(1_000_000_001)),
            duration_ms: millis(325.612_713),
            setup: SetupLine { connect_ms: millis(0.0), ..SetupLine::default() },
            ttft_ms: millis(80.5),
            status: Some(200),
            result: Some(ResultClass::Truncated),
            stream: Some(StreamLine { business_events: Some(3), ..StreamLine::default() }),
            scenario: Some("steady".to_owned()),
            dimensions: [(Dimension::Model, "m-7b".to_owned())].into(),
            ..RecordLine::default()
        };
        let written = serde_json::to_value(&line).expect("JSON");
        assert_eq!(
            written,
            json!({"trace_id": "01".repeat(16), "span_id": "02".repeat(8), "started_at": "1970-01-01T00:00:01.000000001Z",
                   "duration_ms": 325.612713, "setup": {"connect_ms": 0.0}, "ttft_ms": 80.5, "status": 200,
                   "result": "truncated", "stream": {"business_events": 3}, "scenario": "steady",
                   "dimensions": {"model": "m-7b"}})
        );
        let parsed = normalise::record(&to_raw_value(&line).expect("JSON")).expect("a record");
        assert_eq!(parsed.ignored_fields, 0);
        assert_eq!(parsed.record.duration, Some(Nanos(325_612_713)));
        assert_eq!(parsed.record.started_at, line.started_at);
        assert_eq!(parsed.record.setup.dns, None);
    }

    #[test]
    fn the_server_knows_every_field_of_a_line() {
        let text = || Some("ok".to_owned());
        let trace_id = TraceId::from_bytes([1; 16]).expect("an id");
        let span_id = SpanId::from_bytes([2; 8]).expect("an id");
        let line = RecordLine {
            trace_id: Some(trace_id),
            span_id: Some(span_id),
            traceparent: Some(format!("00-{trace_id}-{span_id}-01")),
            request_id: text(),
            started_at: Some(UnixNanos(1)),
            duration_ms: millis(5.0),
            wall_ms: millis(9.0),
            setup: SetupLine {
                blocked_ms: millis(1.0),
                dns_ms: millis(1.0),
                connect_ms: millis(1.0),
                tls_ms: millis(1.0),
            },
            client_queue_ms: millis(1.0),
            headers_ms: millis(1.0),
            sending_ms: millis(1.0),
            waiting_ms: millis(1.0),
            receiving_ms: millis(1.0),
            ttft_ms: millis(1.0),
            ttft_visible_ms: millis(1.0),
            streaming: Some(true),
            status: Some(200),
            result: Some(ResultClass::Ok),
            error: text(),
            input_tokens: Some(1),
            output_tokens: Some(1),
            stream: Some(StreamLine {
                business_events: Some(1),
                batched_events: Some(1),
                p50_gap_ms: millis(1.0),
                p95_gap_ms: millis(1.0),
                p99_gap_ms: millis(1.0),
                max_gap_ms: millis(1.0),
                gaps_over_1s: Some(1),
                last_event_ms: millis(1.0),
                done_received: Some(true),
                last_seq: Some(1),
                missing_seq: Some(0),
                buffered_events: Some(1),
                buffer_silence_ms: millis(1.0),
                buffer_burst: Some(1),
            }),
            response_metrics: Some(json!({"queue_time_ms": 1})),
            headers_only: Some(false),
            run: text(),
            scenario: text(),
            dimensions: Dimension::ALL.iter().map(|dimension| (*dimension, "true".to_owned())).collect(),
        };
        let parsed = normalise::record(&to_raw_value(&line).expect("JSON")).expect("a record");
        assert_eq!(parsed.ignored_fields, 0);
    }

    #[test]
    fn gaps_are_told_by_nearest_ranks() {
        let gaps: Vec<Nanos> = (1..=20).map(|n| Nanos(n * 100_000_000)).collect();
        let line = StreamLine::of_gaps(Nanos(50_000_000), &gaps);
        let told = [line.p50_gap_ms, line.p95_gap_ms, line.p99_gap_ms, line.max_gap_ms];
        assert_eq!(told, [1_000.0, 1_900.0, 2_000.0, 2_000.0].map(millis));
        assert_eq!((line.business_events, line.gaps_over_1s, line.buffered_events), (Some(21), Some(10), Some(0)));
        assert_eq!(line.last_event_ms, millis(21_050.0));
        let nothing = StreamLine { business_events: Some(0), ..StreamLine::default() };
        assert_eq!(StreamLine::of_arrivals(&[]), nothing);
    }
}
