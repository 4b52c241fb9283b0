//! What arrived of one request or trace, as the store hands it to the join.

use crate::{Alias, ClientRecord, EventLog, Fragment, UnixNanos};

/// What an arrival is found by: its trace id, or [`crate::TraceId::of_request_id`].
pub type Key = [u8; 16];

/// A client record and when it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedRecord {
    /// By the clock of the instance that received it.
    pub received_at: UnixNanos,
    /// What the client measured.
    pub record: ClientRecord,
}

/// Lines of an event log and when they came.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedLog {
    /// By the clock of the instance that received them.
    pub received_at: UnixNanos,
    /// The lines of one upload.
    pub log: EventLog,
}

/// Everything that arrived under one key, in the order of its arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceArrivals {
    /// When the first came, by our clock. Aliases count only where there is nothing else.
    pub first_arrival: UnixNanos,
    /// When the newest came, by our clock. Aliases count only where there is nothing else.
    pub last_arrival: UnixNanos,
    /// Spans, one fragment for each upload.
    pub fragments: Vec<Fragment>,
    /// Client records, copies included.
    pub records: Vec<ReceivedRecord>,
    /// Event logs, one for each upload.
    pub logs: Vec<ReceivedLog>,
    /// Under the digest of a request id: the traces of the request's sides, each once, in the order of their arrival.
    pub aliases: Vec<Alias>,
    /// Whether more arrived than is loaded of one trace.
    pub truncated: bool,
    /// Bodies that could not be decoded.
    pub unreadable: u32,
    /// Whether anything but aliases arrived.
    pub has_content: bool,
    /// Bytes of the stored bodies.
    pub stored_bytes: usize,
    /// Lines of event logs, those past what is loaded included.
    pub event_lines: usize,
}

impl TraceArrivals {
    /// Nothing yet but a time.
    pub const fn starting(at: UnixNanos) -> Self {
        Self {
            first_arrival: at,
            last_arrival: at,
            fragments: Vec::new(),
            records: Vec::new(),
            logs: Vec::new(),
            aliases: Vec::new(),
            truncated: false,
            unreadable: 0,
            has_content: false,
            stored_bytes: 0,
            event_lines: 0,
        }
    }
}
