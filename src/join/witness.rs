//! Who hears what the worker joined.

use std::collections::{HashMap, HashSet};

use metrics::counter;

use crate::model::{Flag, SpanId, State, TraceId, UnixNanos};
use crate::store::RequestRow;

/// Hears of requests once they are joined. What it counts can be summed over processes: each request is told as joined
/// for the first time to one of them, and once.
pub trait Witness: Send + Sync {
    /// Rows that were joined for the first time, after their commit: none that waits for its other side, and none that
    /// late data changed. `at` is the time of the claim.
    fn joined(&self, first: &[RequestRow], at: UnixNanos);
}

/// What one commit wrote: first joins and corrections, apart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct News {
    /// Rows that were joined for the first time.
    pub first: Vec<RequestRow>,
    /// How many had been joined before.
    pub corrections: u64,
}

impl News {
    /// Of the rows that were written, less those that were only written again because their trace changed elsewhere.
    pub fn of(rows: Vec<RequestRow>, unchanged: &HashSet<(TraceId, Option<SpanId>)>) -> Self {
        let mut news = Self::default();
        for row in rows {
            let request = &row.request;
            if request.state == State::Pending || unchanged.contains(&(request.trace_id, request.client_span)) {
                continue;
            }
            if request.flags.has(Flag::Late) {
                news.corrections += 1;
            } else {
                news.first.push(row);
            }
        }
        news
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
