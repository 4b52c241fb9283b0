//! A stream of xk6-sse, as its points report it while it goes on: one at its start, one an event.

use crate::cli::record_line::{Millis, RecordLine, StreamLine};
use model::{Nanos, UnixNanos};

/// What is known of a stream before its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    start: Option<UnixNanos>,
    events: Vec<UnixNanos>,
}

impl Stream {
    /// A point says when it started.
    pub fn starts(&mut self, at: UnixNanos) {
        self.start = Some(at);
    }

    /// A point says when an event came.
    pub fn receives(&mut self, at: UnixNanos) {
        self.events.push(at);
    }

    /// Writes it into a record. `start` is the start of the request where no point says it. The events have no mark of
    /// what they hold, so the first one counts as the first token and each one as content.
    pub fn write_into(mut self, start: UnixNanos, line: &mut RecordLine) {
        self.events.sort_unstable();
        let start = self.start.unwrap_or(start);
        line.streaming = Some(true);
        line.started_at = Some(start);
        let arrivals: Vec<Nanos> = self.events.iter().map(|at| (*at - start).max(Nanos::ZERO)).collect();
        let Some(first) = arrivals.first() else { return };
        line.ttft_ms = Some(Millis(*first));
        line.stream = Some(StreamLine::of_arrivals(&arrivals));
    }
}
