//! What arrives, on its way into the database and back out of it.

use bytes::Bytes;

use super::encode::{self, DecodeError};
use crate::model::{ClientRecord, Fragment, TraceId, UnixNanos};

/// What an arrival is found by: its trace id.
pub type Key = [u8; 16];

/// What an arrival's body holds. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum ArrivalKind {
    /// The spans of one trace in one upload.
    Spans = 0,
    /// A client record.
    Record = 1,
}

/// One row to be.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// What it is found by.
    pub key: Key,
    /// What the body holds.
    pub kind: ArrivalKind,
    /// For a client record the digest that [`super::record_identity`] computes; else 0.
    pub identity: i64,
    /// The earliest time that the content speaks of: tells how far back the joiner looks for the other side. A wrong
    /// clock costs a wider search at most.
    pub since: Option<UnixNanos>,
    /// The encoded content.
    pub body: Bytes,
    /// How many client records it holds.
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

    /// A client record.
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
}

/// A client record and when it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedRecord {
    /// When it came, by our clock.
    pub received_at: UnixNanos,
    /// The record.
    pub record: ClientRecord,
}

/// Everything that arrived under one key, in the order of its arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceArrivals {
    /// When the first came, by our clock.
    pub first_arrival: UnixNanos,
    /// When the newest came, by our clock.
    pub last_arrival: UnixNanos,
    /// Spans.
    pub fragments: Vec<Fragment>,
    /// Client records.
    pub records: Vec<ReceivedRecord>,
    /// Whether more arrived than is loaded of one trace.
    pub truncated: bool,
    /// Bodies that could not be read.
    pub unreadable: u32,
    bytes: usize,
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

impl TraceArrivals {
    /// Nothing yet but a time.
    pub(super) fn starting(at: UnixNanos) -> Self {
        Self {
            first_arrival: at,
            last_arrival: at,
            fragments: Vec::new(),
            records: Vec::new(),
            truncated: false,
            unreadable: 0,
            bytes: 0,
        }
    }

    /// Stored bytes of all that was read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds one row; a body that was left out is told by `truncated`, one that cannot be read is counted.
    pub(super) fn add(&mut self, row: &StoredArrival) {
        self.first_arrival = self.first_arrival.min(row.received_at);
        self.last_arrival = self.last_arrival.max(row.received_at);
        let Some(body) = &row.body else {
            self.truncated = true;
            return;
        };
        self.bytes += body.len();
        if let Err(error) = self.read(row, body) {
            self.unreadable += 1;
            tracing::error!(key = %hex::encode(row.key), kind = row.kind, %error, "a stored arrival cannot be read");
        }
    }

    fn read(&mut self, row: &StoredArrival, body: &[u8]) -> Result<(), DecodeError> {
        match row.kind {
            kind if kind == ArrivalKind::Spans as i16 => self.fragments.push(encode::decode_fragment(body)?),
            kind if kind == ArrivalKind::Record as i16 => {
                let trace_id = TraceId::from_bytes(row.key).map_err(|error| DecodeError::Damaged(error.to_string()))?;
                let record = encode::decode_record(trace_id, body)?;
                self.records.push(ReceivedRecord { received_at: row.received_at, record });
            }
            kind => return Err(DecodeError::Damaged(format!("kind {kind} is unknown"))),
        }
        Ok(())
    }
}
