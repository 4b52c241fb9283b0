//! Which traces hold the two sides of a request, by what lies under the digest of its request id (design, section 4).

use model::{Side, TraceArrivals, TraceId};

/// The trace that owns the lines which arrived under a request id: the only one that has a record or log of the request,
/// unless a record arrived under the request id itself.
pub fn owner_of_lines(key: TraceId, arrivals: &TraceArrivals) -> TraceId {
    let named = sides(arrivals, Side::Client);
    match named.as_slice() {
        [only] if arrivals.records.is_empty() => *only,
        _ => key,
    }
}

/// The client's sides of a request id: those named, and the key itself where a record arrived under it, or lines that
/// belong to no other trace.
pub fn clients(key: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let mut clients = sides(arrivals, Side::Client);
    let own_lines = !arrivals.logs.is_empty() && owner_of_lines(key, arrivals) == key;
    if !arrivals.records.is_empty() || own_lines {
        clients.push(key);
    }
    clients
}

/// The traces that aliases name as this side.
pub fn sides(arrivals: &TraceArrivals, side: Side) -> Vec<TraceId> {
    arrivals.aliases.iter().filter(|alias| alias.side == side).map(|alias| alias.trace_id).collect()
}
