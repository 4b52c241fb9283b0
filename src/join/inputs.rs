//! What arrived of a trace, in the form in which it is joined.

use super::identity::ArrivedRecord;
use crate::model::{Fragment, TraceId, UnixNanos};
use crate::store::TraceArrivals;

/// Everything that arrived of a trace.
#[derive(Debug, Clone)]
pub struct TraceInputs {
    /// The trace.
    pub trace_id: TraceId,
    /// Its spans, as they arrived.
    pub fragments: Vec<Fragment>,
    /// Its client records, as they arrived.
    pub records: Vec<ArrivedRecord>,
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
        let records = arrivals.records.into_iter();
        Self {
            trace_id,
            fragments: arrivals.fragments,
            records: records.map(|held| ArrivedRecord { record: held.record, received_at: held.received_at }).collect(),
            first_arrival: arrivals.first_arrival,
            oversized: arrivals.truncated,
            span_limit,
        }
    }
}
