//! When and how traces are joined.

use std::sync::Arc;
use std::time::Duration;

use super::Progress;
use model::TraceArrivals;
use model::reading::Reading;
use model::{Nanos, Span, UnixNanos};

/// How a span is read.
pub type ReadSpan = dyn Fn(&Span) -> Reading + Send + Sync;

/// When and how traces are joined.
#[derive(Clone)]
pub struct JoinRules {
    /// Quiet time after a trace's last arrival.
    pub settle: Duration,
    /// Time after a trace's first arrival at which a lone side no longer waits.
    pub deadline: Duration,
    /// Time without a line after which an event log without its end marker is closed.
    pub stream_quiet: Duration,
    /// Pause of a stream from which it may hang.
    pub stream_hang: Duration,
    /// How many spans of a trace are looked at.
    pub span_limit: usize,
    /// How a span is read.
    pub read: Arc<ReadSpan>,
}

impl JoinRules {
    /// How far a trace has come at an instant of our clock.
    pub fn progress(&self, trace: &TraceArrivals, now: UnixNanos) -> Progress {
        Progress {
            settled: !trace.has_content || trace.last_arrival + Nanos::from(self.settle) <= now,
            deadline_passed: self.deadline_of(trace) <= now,
            quiet_since: now - Nanos::from(self.stream_quiet),
            hang: Nanos::from(self.stream_hang),
            now,
        }
    }

    /// When a lone side of a trace no longer waits.
    pub fn deadline_of(&self, trace: &TraceArrivals) -> UnixNanos {
        trace.first_arrival + Nanos::from(self.deadline)
    }
}
