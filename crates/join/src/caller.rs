//! The caller's own spans as its observation, where no client record came.

use super::entry::{Entry, Servers};
use super::server_time::{ClientTime, server_time};
use super::tree::{Forest, Node, Place};
use model::reading::{ClientEnd, Role};
use model::{ClientRecord, Flags, Interval, ResultClass, SpanKind, TraceId};

/// What a caller's span tells, and the server span that answered it.
#[derive(Debug)]
pub struct Observation {
    /// The span as a record: with a wall time, or with the time to the headers alone.
    pub record: ClientRecord,
    /// Its entry span.
    pub entry: Entry,
}

/// One observation for each outermost CLIENT span that a server in another process answered. Above such a span lie spans
/// of the caller's own work only: what a server calls is the server's time.
pub fn observations(forest: &Forest, servers: &Servers, trace_id: TraceId) -> Vec<Observation> {
    let mut calls = outermost_calls(forest);
    calls.sort_by_key(|call| forest.node(*call).span.span_id);
    calls.into_iter().filter_map(|call| observation(forest, servers, trace_id, call)).collect()
}

/// From the tops downward through spans of kind INTERNAL.
fn outermost_calls(forest: &Forest) -> Vec<Place> {
    let mut calls = Vec::new();
    let mut open: Vec<Place> = forest.places().filter(|place| forest.node(*place).parent.is_none()).collect();
    while let Some(place) = open.pop() {
        let node = forest.node(place);
        if node.is_server() || node.reading.role != Role::Plain {
            continue;
        }
        match node.span.kind {
            SpanKind::Client => calls.push(place),
            SpanKind::Internal | SpanKind::Unspecified => open.extend(&node.children),
            SpanKind::Server | SpanKind::Producer | SpanKind::Consumer => {}
        }
    }
    calls
}

fn observation(forest: &Forest, servers: &Servers, trace_id: TraceId, call: Place) -> Option<Observation> {
    let node = forest.node(call);
    let interval = node.interval?;
    let entry = servers.answering(node.span.span_id);
    let whole = match entry {
        Entry::Missing => return None,
        // A process that calls itself measures nothing from outside.
        Entry::Span(entry) if !forest.crosses_clocks(entry, call) => return None,
        Entry::Span(entry) => node.reading.client_end == ClientEnd::Body && outlasts(forest, interval, entry),
        Entry::Ambiguous => node.reading.client_end == ClientEnd::Body,
    };
    Some(Observation { record: record(trace_id, node, interval, whole), entry })
}

/// Whether the call lasted as long as the server did. A shorter one did not wait for the answer's end, whatever its
/// instrumentation does by default.
fn outlasts(forest: &Forest, call: Interval, entry: Place) -> bool {
    let at = server_time(forest, entry, Some(ClientTime::of_call(call.length())), &mut Flags::default());
    at.is_none_or(|at| call.length() >= at.length())
}

/// A span begins before there is a connection, so that its time is the wall time.
fn record(trace_id: TraceId, node: &Node, interval: Interval, whole: bool) -> ClientRecord {
    let reading = &node.reading;
    let failed = if node.span.error { ResultClass::Error } else { ResultClass::Ok };
    ClientRecord {
        span_id: Some(node.span.span_id),
        started_at: Some(interval.start),
        wall: whole.then(|| interval.length()),
        headers: (!whole).then(|| interval.length()),
        ttft: reading.first_token.map(|token| token.offset),
        streaming: reading.streaming,
        status: reading.http_status,
        input_tokens: reading.input_tokens,
        output_tokens: reading.output_tokens,
        headers_only: !whole,
        cold_start: reading.cold_start,
        dimensions: reading.dimensions.clone(),
        ..ClientRecord::unmeasured(trace_id, reading.http_status.map_or(failed, ResultClass::from_status))
    }
}
