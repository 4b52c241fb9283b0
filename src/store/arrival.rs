//! What arrives, on its way into the database and back out of it.

use bytes::Bytes;

use super::BUCKETS;
use super::copy::CopyRows;
use super::encode::{self, DecodeError};
use model::{
    Alias, ClientRecord, EventKind, EventLog, Fragment, Key, ReceivedLog, ReceivedRecord, StreamEvent, TraceArrivals,
    TraceId, UnixNanos,
};

/// What an arrival's body holds. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum ArrivalKind {
    /// The spans of one trace in one upload.
    Spans = 0,
    /// A client record.
    Record = 1,
    /// Lines of an event log.
    Events = 2,
    /// Under the digest of a request id, the trace that one side of the request has.
    Alias = 3,
}

/// One row to be.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// What it is found by.
    pub key: Key,
    /// What the body holds.
    pub kind: ArrivalKind,
    /// Tells whether the same has arrived before: for a client record a digest of what it measured, for lines and
    /// aliases one of the body; for spans 0.
    pub identity: i64,
    /// The earliest time that the content speaks of: tells how far back the joiner looks for the other side. A wrong
    /// clock costs a wider search at most.
    pub since: Option<UnixNanos>,
    /// The encoded content.
    pub body: Bytes,
    /// How many client records it holds; of lines, whether they begin a request.
    pub records: u32,
}

impl Arrival {
    /// The spans of one trace that came together.
    pub fn spans(trace_id: TraceId, fragment: &Fragment) -> Self {
        Self {
            key: *trace_id.as_bytes(),
            kind: ArrivalKind::Spans,
            identity: 0,
            since: fragment.spans.iter().map(|span| span.start).min(),
            body: encode::encode_fragment(fragment).into(),
            records: 0,
        }
    }

    pub fn record(record: &ClientRecord) -> Self {
        Self {
            key: *record.trace_id.as_bytes(),
            kind: ArrivalKind::Record,
            identity: encode::record_identity(record),
            since: record.started_at,
            body: encode::encode_record(record).into(),
            records: 1,
        }
    }

    /// Lines of one request's event log.
    pub fn events(log: &EventLog) -> Self {
        let body = encode::encode_events(log);
        Self {
            key: *log.trace_id.as_bytes(),
            kind: ArrivalKind::Events,
            identity: encode::digest(&body),
            since: log.lines.iter().filter_map(StreamEvent::calendar_time).min(),
            body: body.into(),
            // The line that begins a request stands for it; the others are sent after it, one by one perhaps.
            records: u32::from(log.lines.iter().any(|line| line.kind == EventKind::Connect)),
        }
    }

    /// Where one side of a request is kept, under its request id. `since` is the earliest time that the content there
    /// speaks of.
    pub fn alias(request_id: &str, alias: Alias, since: Option<UnixNanos>) -> Self {
        let body = encode::encode_alias(alias);
        Self {
            key: *TraceId::of_request_id(request_id).as_bytes(),
            kind: ArrivalKind::Alias,
            identity: encode::digest(&body),
            since,
            body: body.into(),
            records: 0,
        }
    }
}

/// Appends what [`encode`] makes.
pub(super) const COPY_ARRIVALS: &str =
    "copy arrival (received_at, identity, key, kind, body) from stdin (format binary)";

/// Arrivals as rows of [`COPY_ARRIVALS`].
pub(super) fn encode(arrivals: &[&Arrival], received_at: UnixNanos) -> CopyRows {
    let bytes = arrivals.iter().map(|arrival| arrival.body.len() + 64).sum();
    let mut rows = CopyRows::with_capacity(bytes);
    for arrival in arrivals {
        rows.row(5);
        rows.timestamp(received_at.0);
        rows.int8((arrival.identity != 0).then_some(arrival.identity));
        rows.field(&arrival.key);
        rows.int2(Some(arrival.kind as i16));
        rows.field(&arrival.body);
    }
    rows
}

/// The bucket that a key's joining belongs to.
pub(super) fn bucket_of(key: &Key) -> i16 {
    i16::from(key[0]) % BUCKETS
}

/// One stored row.
pub(super) struct StoredArrival {
    pub(super) key: Key,
    pub(super) received_at: UnixNanos,
    pub(super) kind: i16,
    /// Absent where it lies beyond [`MAX_TRACE_BYTES`].
    pub(super) body: Option<Vec<u8>>,
}

/// How much of one trace is loaded, in bytes of stored bodies.
pub(super) const MAX_TRACE_BYTES: usize = 16 << 20;

/// How many lines of event logs are loaded of one trace: a line takes fewer bytes stored than in memory.
const MAX_TRACE_LINES: usize = 100_000;

/// Adds one row; a body that was left out is told by `truncated`, one that cannot be decoded is counted.
pub(super) fn add(trace: &mut TraceArrivals, row: &StoredArrival) {
    date(trace, row);
    let Some(body) = &row.body else {
        trace.truncated = true;
        return;
    };
    trace.stored_bytes += body.len();
    if let Err(error) = decode(trace, row, body) {
        trace.unreadable += 1;
        tracing::error!(key = %hex::encode(row.key), kind = row.kind, %error, "a stored arrival cannot be read");
    }
}

fn date(trace: &mut TraceArrivals, row: &StoredArrival) {
    if row.kind == ArrivalKind::Alias as i16 {
        return;
    }
    if !std::mem::replace(&mut trace.has_content, true) {
        trace.first_arrival = row.received_at;
        trace.last_arrival = row.received_at;
    }
    trace.first_arrival = trace.first_arrival.min(row.received_at);
    trace.last_arrival = trace.last_arrival.max(row.received_at);
}

fn decode(trace: &mut TraceArrivals, row: &StoredArrival, body: &[u8]) -> Result<(), DecodeError> {
    let received_at = row.received_at;
    let trace_id = || TraceId::from_bytes(row.key).map_err(|error| DecodeError::Damaged(error.to_string()));
    match row.kind {
        kind if kind == ArrivalKind::Spans as i16 => trace.fragments.push(encode::decode_fragment(body)?),
        kind if kind == ArrivalKind::Record as i16 => {
            let record = encode::decode_record(trace_id()?, body)?;
            trace.records.push(ReceivedRecord { received_at, record });
        }
        kind if kind == ArrivalKind::Events as i16 => {
            let log = encode::decode_events(trace_id()?, body)?;
            trace.event_lines += log.lines.len();
            if trace.event_lines > MAX_TRACE_LINES {
                trace.truncated = true;
                return Ok(());
            }
            trace.logs.push(ReceivedLog { received_at, log });
        }
        kind if kind == ArrivalKind::Alias as i16 => {
            let alias = encode::decode_alias(body)?;
            if !trace.aliases.contains(&alias) {
                trace.aliases.push(alias);
            }
        }
        kind => return Err(DecodeError::Damaged(format!("kind {kind} is unknown"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    #[test]
    fn of_a_log_without_end_a_bounded_part_is_loaded() {
        let trace_id = TraceId::of_request_id("r");
        let mut held = TraceArrivals::starting(UnixNanos(0));
        for part in 0..3 {
            let lines = (0..40_000).map(|n| StreamEvent {
                kind: EventKind::Business,
                client_time: Some(Nanos(part * 40_000 + n)),
                seq: None,
                service_time: None,
                tokens: None,
                batched: None,
            });
            let log = EventLog { trace_id, request_id: None, lines: lines.collect() };
            let row = Arrival::events(&log);
            let body = Some(row.body.to_vec());
            add(&mut held, &StoredArrival { key: row.key, received_at: UnixNanos(part), kind: row.kind as i16, body });
        }
        assert_eq!(held.logs.iter().map(|arrived| arrived.log.lines.len()).collect::<Vec<_>>(), [40_000, 40_000]);
        assert!(held.truncated);
    }
}
