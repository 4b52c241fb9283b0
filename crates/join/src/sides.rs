//! Which traces hold the two sides of a request, by what lies under the digest of its request id (design, section 4).

use model::{Side, TraceArrivals, TraceId};

/// The trace that event lines under the digest of a request id belong to: the only trace that has a record or log of the
/// request, else the digest itself, as where it has a record too.
pub fn owner_of_lines(digest: TraceId, arrivals: &TraceArrivals) -> TraceId {
    let named = sides(arrivals, Side::Client);
    match named.as_slice() {
        [only] if arrivals.records.is_empty() => *only,
        _ => digest,
    }
}

/// The client's sides of a request id: the traces that aliases name, and the digest itself where it keeps a record, or
/// lines that belong to no other trace.
pub fn clients(digest: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let mut clients = sides(arrivals, Side::Client);
    let own_lines = !arrivals.logs.is_empty() && owner_of_lines(digest, arrivals) == digest;
    if !arrivals.records.is_empty() || own_lines {
        clients.push(digest);
    }
    clients
}

/// The traces that aliases name as this side.
pub fn sides(arrivals: &TraceArrivals, side: Side) -> Vec<TraceId> {
    arrivals.aliases.iter().filter(|alias| alias.side == side).map(|alias| alias.trace_id).collect()
}
