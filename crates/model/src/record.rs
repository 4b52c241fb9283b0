//! The client's observation of a request.

use serde::{Deserialize, Serialize};

use super::dimension::Dimensions;
use super::id::{SpanId, TraceId};
use super::response_metrics::ResponseMetrics;
use super::time::{Nanos, UnixNanos};

/// How a request ended. Classes are never mixed in one distribution. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ResultClass {
    /// A whole answer.
    Ok = 0,
    /// Refused or failed.
    Error = 1,
    /// Given up for taking too long.
    Timeout = 2,
    /// Given up by the client.
    Cancelled = 3,
    /// The answer broke off or has holes.
    Truncated = 4,
}

impl ResultClass {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Error, Self::Timeout, Self::Cancelled, Self::Truncated];

    /// The name in the API, the database and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Truncated => "truncated",
        }
    }

    /// From an HTTP status; 0 is no answer at all.
    pub const fn from_status(status: i64) -> Self {
        match status {
            408 | 504 => Self::Timeout,
            499 => Self::Cancelled,
            0 | 400.. => Self::Error,
            _ => Self::Ok,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// From the stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|class| *class as i16 == number)
    }
}

/// The parts of connection setup, disjoint. `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Setup {
    /// Waiting for a connection without connecting.
    pub blocked: Option<Nanos>,
    /// Name look-up.
    pub dns: Option<Nanos>,
    /// TCP connect.
    pub connect: Option<Nanos>,
    /// TLS handshake.
    pub tls: Option<Nanos>,
}

impl Setup {
    /// The sum of the parts that are known; `None` where none is.
    pub fn total(&self) -> Option<Nanos> {
        let parts = [self.blocked, self.dns, self.connect, self.tls];
        parts.iter().any(Option::is_some).then(|| parts.into_iter().flatten().sum())
    }
}

/// Whether all of a streamed answer arrived. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Completeness {
    /// End marker seen, no hole.
    Ok = 0,
    /// No end marker.
    NoEnd = 1,
    /// Holes in the sequence.
    Missing = 2,
    /// No end marker, and holes.
    Both = 3,
}

impl Completeness {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ok, Self::NoEnd, Self::Missing, Self::Both];

    /// From the stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as i16 == number)
    }

    /// From what a stream's summary tells; `None` where neither is known.
    pub fn from_parts(done_received: Option<bool>, missing_seq: Option<i64>) -> Option<Self> {
        let ended = done_received.unwrap_or(true);
        let whole = missing_seq.unwrap_or(0) == 0;
        (done_received.is_some() || missing_seq.is_some()).then_some(match (ended, whole) {
            (true, true) => Self::Ok,
            (false, true) => Self::NoEnd,
            (true, false) => Self::Missing,
            (false, false) => Self::Both,
        })
    }
}

/// What the client saw of a streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StreamSummary {
    /// Events with content.
    pub business_events: Option<i64>,
    /// Business events that arrived together with another.
    pub batched_events: Option<i64>,
    /// Gap between business events, median.
    pub p50_gap: Option<Nanos>,
    /// Gap, 0.95-quantile.
    pub p95_gap: Option<Nanos>,
    /// Gap, 0.99-quantile.
    pub p99_gap: Option<Nanos>,
    /// Longest gap.
    pub max_gap: Option<Nanos>,
    /// Gaps over one second.
    pub gaps_over_1s: Option<i64>,
    /// Whether the end marker came.
    pub done_received: Option<bool>,
    /// Highest sequence number seen.
    pub last_seq: Option<i64>,
    /// Sequence numbers that never came.
    pub missing_seq: Option<i64>,
    /// Start of sending to the last business event.
    pub last_event: Option<Nanos>,
    /// Tokens that came after the first business event, where event token counts are known.
    pub tokens_after_first: Option<i64>,
    /// Business events that came in bursts after a silence, as out of a buffer on the way; 0 where nothing speaks for
    /// one. Only who saw all arrivals can tell.
    pub buffered_events: Option<i64>,
    /// The median silence before such a burst.
    pub buffer_silence: Option<Nanos>,
    /// The median number of events in one.
    pub buffer_burst: Option<i64>,
}

impl StreamSummary {
    /// Gaps over one second by all gaps, which are one fewer than the business events (design, section 5).
    pub fn stall_rate(&self) -> Option<f64> {
        share(self.gaps_over_1s?, self.business_events? - 1)
    }

    /// Business events that arrived in a batch by all of them.
    pub fn batched_share(&self) -> Option<f64> {
        share(self.batched_events?, self.business_events?)
    }

    /// Business events that came out of a buffer on the way by all of them.
    pub fn buffered_share(&self) -> Option<f64> {
        share(self.buffered_events?, self.business_events?)
    }
}

fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// One request as its client measured it. Times are durations by the client's own clock, except `started_at`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRecord {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// The client's own span id: the parent that the server's entry span names.
    pub span_id: Option<SpanId>,
    /// The traceparent's sampled flag, where a traceparent was given.
    pub sampled: Option<bool>,
    /// A request id that client and server may share.
    pub request_id: Option<String>,
    /// When it started, by the client's clock: a label for windows, never subtracted from a server's time.
    pub started_at: Option<UnixNanos>,
    /// Start of sending to the last byte.
    pub duration: Option<Nanos>,
    /// The same with setup, where the client cannot tell them apart.
    pub wall: Option<Nanos>,
    /// Connection setup.
    pub setup: Setup,
    /// Scheduled to started; never part of the envelope.
    pub client_queue: Option<Nanos>,
    /// Start of sending to the first response byte.
    pub headers: Option<Nanos>,
    /// Sending the request.
    pub sending: Option<Nanos>,
    /// Sent to the first response byte.
    pub waiting: Option<Nanos>,
    /// First response byte to the last.
    pub receiving: Option<Nanos>,
    /// Start of sending to the first business event.
    pub ttft: Option<Nanos>,
    /// Start of sending to the first text that a person sees.
    pub ttft_visible: Option<Nanos>,
    /// Whether the answer was streamed.
    pub streaming: Option<bool>,
    /// HTTP status; 0 where there was no answer.
    pub status: Option<i64>,
    /// How it ended.
    pub result: ResultClass,
    /// A low-cardinality class of error.
    pub error: Option<String>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// What was seen of the stream.
    pub stream: Option<StreamSummary>,
    /// The answer's own timing.
    pub response_metrics: Option<ResponseMetrics>,
    /// Whether the record ends at the answer's headers.
    pub headers_only: bool,
    /// Whether this request loaded the model first.
    pub cold_start: Option<bool>,
    /// The test run.
    pub run: Option<String>,
    /// The load scenario.
    pub scenario: Option<String>,
    /// The labels that the client gave.
    pub dimensions: Dimensions,
}

impl ClientRecord {
    /// A record that tells nothing but how its request ended.
    pub fn unmeasured(trace_id: TraceId, result: ResultClass) -> Self {
        Self {
            trace_id,
            span_id: None,
            sampled: None,
            request_id: None,
            started_at: None,
            duration: None,
            wall: None,
            setup: Setup::default(),
            client_queue: None,
            headers: None,
            sending: None,
            waiting: None,
            receiving: None,
            ttft: None,
            ttft_visible: None,
            streaming: None,
            status: None,
            result,
            error: None,
            input_tokens: None,
            output_tokens: None,
            stream: None,
            response_metrics: None,
            headers_only: false,
            cold_start: None,
            run: None,
            scenario: None,
            dimensions: Dimensions::default(),
        }
    }
}
