//! What arrived of a trace, in the form in which it is joined.

use crate::model::{Fragment, TraceId, UnixNanos};
use crate::store::{ReceivedRecord, TraceArrivals};

/// Everything that arrived of a trace.
#[derive(Debug, Clone)]
pub struct TraceInputs {
    /// The trace.
    pub trace_id: TraceId,
    /// Its spans, as they arrived.
    pub fragments: Vec<Fragment>,
    /// Its client records, as they arrived.
    pub records: Vec<ReceivedRecord>,
    /// When the first of all that arrived.
    pub first_arrival: UnixNanos,
    /// Whether more arrived than is kept.
    pub oversized: bool,
    /// How many spans are looked at.
    pub span_limit: usize,
}

impl TraceInputs {
    /// From what the store holds.
    pub fn from_arrivals(trace_id: TraceId, arrivals: TraceArrivals, span_limit: usize) -> Self {
        Self {
            trace_id,
            fragments: arrivals.fragments,
            records: arrivals.records,
            first_arrival: arrivals.first_arrival,
            oversized: arrivals.truncated,
            span_limit,
        }
    }
}
