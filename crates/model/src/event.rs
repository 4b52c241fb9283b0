//! A streaming event log: what a client wrote down line by line while an answer arrived.

use super::id::TraceId;
use super::time::{Nanos, UnixNanos};

/// What a line of the log reports. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// The request was sent.
    Connect = 0,
    /// Content came.
    Business = 1,
    /// A sign of life without content.
    Heartbeat = 2,
    /// The end marker came.
    Done = 3,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Connect, Self::Business, Self::Heartbeat, Self::Done];

    /// The name in the API and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Business => "business",
            Self::Heartbeat => "heartbeat",
            Self::Done => "done",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// From the stored number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// One line. The order is by the client's clock, which says which of two copies of a line counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamEvent {
    /// The client's clock when it came, from a zero of the client's choice: read only against other lines of the log.
    pub client_time: Option<Nanos>,
    /// Its place in the stream.
    pub seq: Option<i64>,
    pub kind: EventKind,
    pub tokens: Option<i64>,
    /// Whether it came together with another.
    pub batched: Option<bool>,
    /// The server's clock when it was written. Kept so that metrics can be recomputed; never set against `client_time`.
    pub service_time: Option<Nanos>,
}

impl StreamEvent {
    /// The client's clock as a calendar time, where it cannot be anything else: its zero is then the Unix epoch.
    pub fn calendar_time(&self) -> Option<UnixNanos> {
        /// In the year 2001; a machine would have to be up for as long to count so far by itself.
        const FIRST: Nanos = Nanos(1_000_000_000_000_000_000);
        self.client_time.filter(|time| *time >= FIRST).map(|time| UnixNanos(time.0))
    }
}

/// Lines of one request that came together.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLog {
    /// The trace, or [`TraceId::of_request_id`] where no line tells it.
    pub trace_id: TraceId,
    pub request_id: Option<String>,
    /// The lines, in no order.
    pub lines: Vec<StreamEvent>,
}
