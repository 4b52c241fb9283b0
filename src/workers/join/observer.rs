//! Who is notified of what the worker joined.

use std::collections::{HashMap, HashSet};

use metrics::counter;

use model::{Flag, SpanId, State, TraceId, UnixNanos};

use crate::store::RequestRow;

/// Is notified of requests once they are joined. What it counts can be summed over processes: the first join of a request
/// is reported to one process, once.
pub trait JoinObserver: Send + Sync {
    /// Rows that were joined for the first time, after their commit: none that waits for its other side, and none that
    /// late data changed. `at` is the time of the claim.
    fn joined(&self, first: &[RequestRow], at: UnixNanos);
}

/// What one commit wrote: first joins and corrections, apart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Written {
    /// Rows that were joined for the first time.
    pub first: Vec<RequestRow>,
    /// How many had been joined before.
    pub corrections: u64,
}

impl Written {
    /// Of the rows that were written, less those that were only written again because their trace changed elsewhere.
    pub fn of(rows: Vec<RequestRow>, unchanged: &HashSet<(TraceId, Option<SpanId>)>) -> Self {
        let mut written = Self::default();
        for row in rows {
            let request = &row.request;
            if request.state == State::Pending || unchanged.contains(&(request.trace_id, request.client_span)) {
                continue;
            }
            if request.flags.has(Flag::Late) {
                written.corrections += 1;
            } else {
                written.first.push(row);
            }
        }
        written
    }

    /// Adds to the process's own counts, by state.
    pub fn count(&self) {
        let mut by_state: HashMap<State, u64> = HashMap::new();
        for row in &self.first {
            *by_state.entry(row.request.state).or_default() += 1;
        }
        for (state, count) in by_state {
            counter!("tracejoin_requests_joined_total", "state" => state.name()).increment(count);
        }
        counter!("tracejoin_requests_corrected_total").increment(self.corrections);
    }
}
