//! What arrived of a trace, in the form in which it is joined.

use std::collections::BTreeSet;

use super::sides::owner_of_lines;
use model::{Fragment, TraceId, UnixNanos};
use model::{ReceivedLog, ReceivedRecord, TraceArrivals};

/// Everything that arrived of a trace.
#[derive(Debug, Clone)]
pub struct TraceInputs {
    pub trace_id: TraceId,
    /// Its spans, as they arrived.
    pub fragments: Vec<Fragment>,
    /// Its client records, as they arrived.
    pub records: Vec<ReceivedRecord>,
    /// Its event logs, as they arrived.
    pub logs: Vec<ReceivedLog>,
    /// When the first of all that arrived.
    pub first_arrival: UnixNanos,
    /// Whether more arrived than is kept.
    pub oversized: bool,
    /// How many spans are looked at.
    pub span_limit: usize,
    /// Server traces that belong to records of this one by their request ids.
    pub partners: Vec<Partner>,
    /// Request ids of this trace that several others carry too, so that none is joined by them.
    pub ambiguous_ids: BTreeSet<String>,
}

/// The spans of another trace that answer a record by its request id.
#[derive(Debug, Clone)]
pub struct Partner {
    /// The request id that both carry.
    pub request_id: String,
    /// The server's trace.
    pub trace_id: TraceId,
    /// Its spans, as they arrived.
    pub fragments: Vec<Fragment>,
    /// Whether more arrived than is kept.
    pub oversized: bool,
    /// Whether nothing arrived of it for the settling time.
    pub settled: bool,
}

impl Partner {
    /// From what the store holds of the server's trace.
    pub fn new(request_id: String, trace_id: TraceId, arrivals: TraceArrivals, settled: bool) -> Self {
        let TraceArrivals { fragments, truncated, .. } = arrivals;
        Self { request_id, trace_id, fragments, oversized: truncated, settled }
    }
}

impl TraceInputs {
    /// A trace of which nothing has arrived.
    pub fn empty(trace_id: TraceId, first_arrival: UnixNanos, span_limit: usize) -> Self {
        Self {
            trace_id,
            fragments: Vec::new(),
            records: Vec::new(),
            logs: Vec::new(),
            first_arrival,
            oversized: false,
            span_limit,
            partners: Vec::new(),
            ambiguous_ids: BTreeSet::new(),
        }
    }

    /// From what the store holds. Lines that came under a request id alone and belong to another trace are left out.
    pub fn from_arrivals(trace_id: TraceId, mut arrivals: TraceArrivals, span_limit: usize) -> Self {
        if owner_of_lines(trace_id, &arrivals) != trace_id {
            arrivals.logs.clear();
        }
        Self {
            fragments: arrivals.fragments,
            records: arrivals.records,
            logs: arrivals.logs,
            oversized: arrivals.truncated,
            ..Self::empty(trace_id, arrivals.first_arrival, span_limit)
        }
    }
}
