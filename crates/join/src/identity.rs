//! Which records of a trace are one request, which are several, and which cannot be distinguished (design, section 6).

use std::collections::{BTreeMap, HashSet};

use model::ReceivedRecord;
use model::{ClientRecord, Dimensions, Nanos, SpanId, UnixNanos};

/// The records of one identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimant {
    /// The client's span id, with the trace id the identity.
    pub span_id: Option<SpanId>,
    /// Those that differ in a measured field, by arrival: more than one is a collision.
    pub records: Vec<ClientRecord>,
    /// When the last line of a log came that may still grow.
    pub open_since: Option<UnixNanos>,
    /// Whether an event log is all there is.
    pub from_log: bool,
}

impl Claimant {
    /// The request id, where all that claim this identity tell the same.
    pub fn request_id(&self) -> Option<&str> {
        let mut ids = self.records.iter().map(|record| record.request_id.as_deref());
        let first = ids.next()??;
        ids.all(|other| other == Some(first)).then_some(first)
    }
}

/// Sorts the records of a trace by identity. Of records that measure the same the first received is kept, with its
/// labels.
pub fn claimants(mut records: Vec<ReceivedRecord>) -> Vec<Claimant> {
    records.sort_by_cached_key(|arrived| (arrived.received_at, written(&arrived.record)));
    let mut by_identity: BTreeMap<Option<SpanId>, Vec<ClientRecord>> = BTreeMap::new();
    // A trace id that a client never changes brings thousands of records that differ: none is compared with all others.
    let mut held = HashSet::new();
    for ReceivedRecord { record, .. } in records {
        if held.insert(written(&measured(&record))) {
            let record = with_duration(record);
            by_identity.entry(record.span_id).or_default().push(record);
        }
    }
    let claimant = |(span_id, records)| Claimant { span_id, records, open_since: None, from_log: false };
    by_identity.into_iter().map(claimant).collect()
}

/// A record that gives wall time and setup gives its duration by them (design, section 2).
fn with_duration(mut record: ClientRecord) -> ClientRecord {
    let sending = record.wall.zip(record.setup.total()).map(|(wall, setup)| wall - setup);
    record.duration = record.duration.or(sending.filter(|duration| *duration > Nanos::ZERO));
    record
}

/// A record as a text, which orders and tells apart what has no order of its own.
fn written(record: &ClientRecord) -> String {
    format!("{record:?}")
}

/// A record without its labels: what two uploads of one measurement share.
fn measured(record: &ClientRecord) -> ClientRecord {
    ClientRecord {
        run: None,
        scenario: None,
        dimensions: Dimensions::default(),
        started_at: None,
        request_id: None,
        error: None,
        ..record.clone()
    }
}
