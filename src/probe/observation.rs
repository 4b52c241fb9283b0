//! What was measured of one request.

use super::failure::Failure;
use super::watch::Seen;
use model::{Nanos, ResultClass, Setup, SpanId, TraceId, UnixNanos};

/// One request as it was measured. Times without a note are since the start of sending; `None` is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The trace that its traceparent named.
    pub trace_id: TraceId,
    /// The span that its traceparent named; each redirect has one of its own.
    pub span_id: SpanId,
    /// When it started, by the wall clock.
    pub started_at: UnixNanos,
    /// Getting the connection. `blocked` is what no other part accounts for: redirects, HTTP/2's preface.
    pub setup: Setup,
    /// Redirects that were followed before this request.
    pub redirects: u32,
    /// How long the redirects took; a part of `setup.blocked`.
    pub redirected: Nanos,
    /// HTTP status; 0 without an answer.
    pub status: u16,
    /// `HTTP/1.1` or `HTTP/2`, where there was an answer.
    pub protocol: Option<&'static str>,
    /// Until the whole request was on its way.
    pub sending: Option<Nanos>,
    /// Until the answer's head.
    pub headers: Option<Nanos>,
    /// Whether the answer was a stream of events.
    pub streaming: Option<bool>,
    /// What was seen of the stream.
    pub seen: Seen,
    /// Whether an end marker was to be expected.
    pub expect_done: bool,
    /// Until the answer's end was seen; without it the server kept the connection open after its end marker.
    pub closed: Option<Nanos>,
    /// Until the last byte, or until it was given up. `None` where nothing was sent.
    pub duration: Option<Nanos>,
    /// From the start, setup and redirects included.
    pub wall: Nanos,
    /// What went wrong.
    pub failure: Option<Failure>,
}

impl Observation {
    /// How it ended.
    pub fn result(&self) -> ResultClass {
        if let Some(failure) = &self.failure {
            return failure.result(!self.seen.tokens.is_empty());
        }
        match ResultClass::from_status(self.status.into()) {
            ResultClass::Ok if self.done_received() == Some(false) => ResultClass::Truncated,
            class => class,
        }
    }

    /// Whether the end marker came; `None` where none was to be expected.
    pub fn done_received(&self) -> Option<bool> {
        let expected = self.streaming == Some(true) && self.expect_done;
        expected.then_some(self.seen.done.is_some())
    }

    /// Until the first token of any kind.
    pub fn ttft(&self) -> Option<Nanos> {
        self.seen.tokens.first().copied()
    }
}
