//! Which records of a trace are one request, which are several, and which cannot be told apart (design, section 6).

use std::collections::{BTreeMap, HashSet};

use crate::model::{ClientRecord, Dimensions, SpanId};
use crate::store::ReceivedRecord;

/// The records of one identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimant {
    /// The client's span id, with the trace id the identity.
    pub span_id: Option<SpanId>,
    /// Those that differ in a measured field, by arrival: more than one is a collision.
    pub records: Vec<ClientRecord>,
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
            by_identity.entry(record.span_id).or_default().push(record);
        }
    }
    by_identity.into_iter().map(|(span_id, records)| Claimant { span_id, records }).collect()
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
