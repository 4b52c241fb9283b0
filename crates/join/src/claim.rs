//! Who claims which server's part of a trace (design, section 6).

use std::collections::HashMap;

use super::caller;
use super::entry::{Entry, Servers};
use super::identity::Claimant;
use super::tree::{Forest, Place};
use model::{ClientRecord, ResultClass, SpanId, TraceId, UnixNanos};

/// A client record, or none, and the entry span that it found.
pub struct Claim {
    /// What the client measured.
    pub record: Option<ClientRecord>,
    /// The client's own span.
    pub span_id: Option<SpanId>,
    /// What answers it.
    pub entry: Entry,
    /// Whether it cannot be distinguished from another.
    pub collides: bool,
    /// Whether the record was made of the caller's own span.
    pub from_span: bool,
    /// When the last line of an event log of it came that may still grow.
    pub open_since: Option<UnixNanos>,
    /// Whether an event log is all that the client sent.
    pub from_log: bool,
}

impl Claim {
    /// A server's part that no client tells of.
    pub fn unclaimed(entry: Entry) -> Self {
        Self {
            record: None,
            span_id: None,
            entry,
            collides: false,
            from_span: false,
            open_since: None,
            from_log: false,
        }
    }

    /// The caller's span in the place of a record.
    fn of_span(observation: caller::Observation) -> Self {
        let caller::Observation { record, entry } = observation;
        Self { span_id: record.span_id, record: Some(record), from_span: true, ..Self::unclaimed(entry) }
    }

    /// How the client says that it ended, as far as it has.
    pub fn result(&self) -> Option<ResultClass> {
        let unknown_yet = self.open_since.is_some() && self.from_log;
        self.record.as_ref().filter(|_| !unknown_yet).map(|record| record.result)
    }

    /// The entry span to measure and the record to measure it against; a collision has no phases.
    pub fn measured(&self) -> Option<(Place, Option<&ClientRecord>)> {
        match self.entry {
            Entry::Span(entry) if !self.collides => Some((entry, self.record.as_ref())),
            _ => None,
        }
    }
}

/// Who claims which entry span. Records that share one collide, and so do records of one identity that differ.
pub fn claims(forest: &Forest, claimants: Vec<Claimant>, trace_id: TraceId) -> Vec<Claim> {
    let servers = Servers::of(forest);
    if claimants.is_empty() {
        return claims_without_records(forest, &servers, trace_id);
    }
    let mut claims = Vec::new();
    let mut sharing: HashMap<Place, usize> = HashMap::new();
    for claimant in claimants {
        let entry = servers.entry(claimant.span_id);
        if let Entry::Span(place) = entry {
            *sharing.entry(place).or_default() += 1;
        }
        let Claimant { span_id, records, open_since, from_log } = claimant;
        let collides = records.len() > 1;
        for record in records {
            let record = Some(record);
            claims.push(Claim { record, span_id, entry, collides, open_since, from_log, from_span: false });
        }
    }
    for claim in &mut claims {
        if let Entry::Span(place) = claim.entry {
            claim.collides |= sharing[&place] > 1;
        }
    }
    claims
}

/// Where no record came, the caller's own spans may tell its side; else the outermost server span stands alone.
fn claims_without_records(forest: &Forest, servers: &Servers, trace_id: TraceId) -> Vec<Claim> {
    let observed = caller::observations(forest, servers, trace_id);
    if !observed.is_empty() {
        return observed.into_iter().map(Claim::of_span).collect();
    }
    match servers.entry(None) {
        Entry::Missing => Vec::new(),
        entry => vec![Claim::unclaimed(entry)],
    }
}
