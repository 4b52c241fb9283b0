//! What else is stored that belongs to a trace by a request id (design, section 4).
//!
//! Under the digest of a request id lies its hub: event lines and records that tell no trace id, and aliases that say
//! under which traces the sides of the request are kept. Every question is answered from what is stored alone, so that
//! whoever asks, client's side or server's, gets the same answer.

use std::collections::{BTreeSet, HashMap};

use super::event_log;
use super::inputs::{Partner, TraceInputs};
use super::rules::{JoinRules, ReadSpan, nanos};
use super::tree;
use crate::model::{Alias, Side, TraceId, UnixNanos};
use crate::store::{Claim, Key, ReceivedLog, ReceivedRecord, Store, StoreError, TraceArrivals};

/// Server traces of one request id that are looked at. More are not one request's, whatever they hold.
const MAX_SERVERS: usize = 4;

/// Traces that are joined again because of one hub.
const MAX_RELATED: usize = 64;

/// Where arrivals are loaded from.
pub trait Arrivals {
    /// Loads what arrived under some keys.
    fn load(&mut self, keys: &[Key]) -> impl Future<Output = Result<HashMap<Key, TraceArrivals>, StoreError>> + Send;
}

impl Arrivals for Claim {
    async fn load(&mut self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        self.others(keys).await
    }
}

impl Arrivals for Store {
    async fn load(&mut self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        self.arrivals(keys).await
    }
}

/// Who is joined by a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// No one: a side is missing, or the client's trace has spans of its own.
    None,
    /// No one: a side is there several times.
    Ambiguous,
    /// These two.
    Pair {
        /// The trace of the client's record.
        client: TraceId,
        /// The trace of the server's spans.
        server: TraceId,
    },
}

/// Hubs, and the traces that they name, as far as a question needs them.
#[derive(Debug, Default)]
pub struct Kin {
    held: HashMap<TraceId, TraceArrivals>,
}

impl Kin {
    /// Loads all that may belong to traces that tell these request ids.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn gather(source: &mut impl Arrivals, request_ids: &BTreeSet<String>) -> Result<Self, StoreError> {
        let mut kin = Self::default();
        let hubs: BTreeSet<TraceId> = request_ids.iter().map(|id| TraceId::of_request_id(id)).collect();
        kin.add(source, &hubs).await?;
        let traces: BTreeSet<TraceId> = hubs.iter().flat_map(|hub| kin.sides_to_look_at(*hub)).collect();
        kin.add(source, &traces.difference(&hubs).copied().collect()).await?;
        Ok(kin)
    }

    async fn add(&mut self, source: &mut impl Arrivals, traces: &BTreeSet<TraceId>) -> Result<(), StoreError> {
        if traces.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = traces.iter().map(|trace| *trace.as_bytes()).collect();
        for (key, arrivals) in source.load(&keys).await? {
            if let Ok(trace_id) = TraceId::from_bytes(key) {
                self.held.insert(trace_id, arrivals);
            }
        }
        Ok(())
    }

    /// The traces that decide about a pairing: none where a side is missing or is there too often.
    fn sides_to_look_at(&self, hub: TraceId) -> Vec<TraceId> {
        let Some(arrivals) = self.held.get(&hub) else { return Vec::new() };
        let servers = sides(arrivals, Side::Server);
        let clients = clients(hub, arrivals);
        if clients.is_empty() || servers.len() > MAX_SERVERS {
            return Vec::new();
        }
        let client = if clients.len() == 1 { clients } else { Vec::new() };
        if servers.is_empty() { Vec::new() } else { servers.into_iter().chain(client).collect() }
    }

    /// Who is joined by a request id.
    pub fn pairing(&self, request_id: &str, read: &ReadSpan) -> Pairing {
        let hub = TraceId::of_request_id(request_id);
        let Some(arrivals) = self.held.get(&hub) else { return Pairing::None };
        let clients = clients(hub, arrivals);
        let named = sides(arrivals, Side::Server);
        let servers: Vec<TraceId> = if named.len() > MAX_SERVERS {
            named
        } else {
            named.into_iter().filter(|server| self.is_lone_server(*server)).collect()
        };
        match (clients.as_slice(), servers.as_slice()) {
            ([], _) | (_, []) => Pairing::None,
            ([client], [server]) if self.is_lone_client(*client, request_id, read) => {
                Pairing::Pair { client: *client, server: *server }
            }
            ([_], [_]) => Pairing::None,
            _ => Pairing::Ambiguous,
        }
    }

    /// Whether no client told of a trace by its trace id, which goes before any request id.
    fn is_lone_server(&self, trace_id: TraceId) -> bool {
        self.held.get(&trace_id).is_some_and(|arrivals| arrivals.records.is_empty() && arrivals.logs.is_empty())
    }

    /// Whether a trace has one client's record of a request id, and no server span.
    fn is_lone_client(&self, trace_id: TraceId, request_id: &str, read: &ReadSpan) -> bool {
        let Some(arrivals) = self.held.get(&trace_id) else { return false };
        let mut spans = arrivals.fragments.iter().flat_map(|fragment| &fragment.spans);
        if spans.any(|span| tree::is_server(span, &read(span))) {
            return false;
        }
        let lines = self.lines_for(trace_id, request_id).chain(&arrivals.logs).cloned().collect();
        let claimants = event_log::claimants(arrivals.records.clone(), lines, trace_id, UnixNanos(i64::MAX));
        let mut own = claimants.iter().filter(|claimant| claimant.request_id() == Some(request_id));
        own.next().is_some_and(|claimant| claimant.records.len() == 1) && own.next().is_none()
    }

    /// Adds to a trace what belongs to it by the request ids of its client's side.
    pub fn complete(&self, inputs: &mut TraceInputs, rules: &JoinRules, now: UnixNanos) {
        for request_id in told_ids(&inputs.records, &inputs.logs) {
            inputs.logs.extend(self.lines_for(inputs.trace_id, &request_id).cloned());
            match self.pairing(&request_id, rules.read.as_ref()) {
                Pairing::Pair { client, server } if client == inputs.trace_id => {
                    let Some(arrivals) = self.held.get(&server).cloned() else { continue };
                    let settled = rules.progress(&arrivals, now).settled;
                    inputs.partners.push(Partner::new(request_id, server, arrivals, settled));
                }
                Pairing::Ambiguous => _ = inputs.ambiguous_ids.insert(request_id),
                _ => {}
            }
        }
    }

    /// The lines that lie in a request id's hub and belong to a trace.
    fn lines_for(&self, trace_id: TraceId, request_id: &str) -> impl Iterator<Item = &ReceivedLog> {
        let hub = TraceId::of_request_id(request_id);
        let arrivals = self.held.get(&hub).filter(|_| hub != trace_id);
        let owned = arrivals.filter(|arrivals| owner_of_lines(hub, arrivals) == trace_id);
        owned.into_iter().flat_map(|arrivals| &arrivals.logs)
    }

    /// The other sides that a request id's hub names.
    pub fn related(&self, request_id: &str, side: Side) -> Vec<TraceId> {
        let hub = TraceId::of_request_id(request_id);
        let Some(arrivals) = self.held.get(&hub) else { return Vec::new() };
        let mut related = match side {
            Side::Client => clients(hub, arrivals),
            Side::Server => sides(arrivals, Side::Server),
        };
        related.truncate(MAX_RELATED);
        related
    }

    /// Whether a request id's hub names a trace as a server's side.
    pub fn knows_server(&self, request_id: &str, trace_id: TraceId) -> bool {
        let hub = self.held.get(&TraceId::of_request_id(request_id));
        hub.is_some_and(|hub| hub.aliases.contains(&Alias { side: Side::Server, trace_id }))
    }
}

/// The request ids that the client's side of a trace tells: those of its records and event logs.
pub fn client_ids(arrivals: &TraceArrivals) -> BTreeSet<String> {
    told_ids(&arrivals.records, &arrivals.logs)
}

fn told_ids(records: &[ReceivedRecord], logs: &[ReceivedLog]) -> BTreeSet<String> {
    let records = records.iter().filter_map(|arrived| arrived.record.request_id.as_ref());
    let logs = logs.iter().filter_map(|arrived| arrived.log.request_id.as_ref());
    records.chain(logs).cloned().collect()
}

/// Whether a client told of a trace by the key under which this arrived.
pub fn has_client(arrivals: &TraceArrivals) -> bool {
    !arrivals.records.is_empty() || !arrivals.logs.is_empty()
}

/// Whether what belongs to a trace may lie elsewhere, so that it cannot be joined by itself.
pub fn is_linked(arrivals: &TraceArrivals) -> bool {
    let told = arrivals.records.iter().any(|arrived| arrived.record.request_id.is_some());
    told || !arrivals.aliases.is_empty() || arrivals.logs.iter().any(|arrived| arrived.log.request_id.is_some())
}

/// Whether the spans of a trace may have been joined before its client told of it, and found by a request id.
pub fn client_came_late(arrivals: &TraceArrivals, rules: &JoinRules) -> bool {
    let records = arrivals.records.iter().map(|arrived| arrived.received_at);
    let first = records.chain(arrivals.logs.iter().map(|arrived| arrived.received_at)).min();
    first.is_some_and(|first| arrivals.first_arrival + nanos(rules.settle) <= first)
}

/// The traces to join again when something came to a hub.
pub fn touched_by(hub: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let (named, servers) = (sides(arrivals, Side::Client), sides(arrivals, Side::Server));
    let clients = clients(hub, arrivals);
    let lines_go_elsewhere = !arrivals.logs.is_empty() && !named.is_empty();
    if !lines_go_elsewhere && (clients.is_empty() || servers.is_empty()) {
        return Vec::new();
    }
    // Where the hub is a client itself, its own change brings the servers back.
    let servers = if clients.contains(&hub) { Vec::new() } else { servers };
    named.into_iter().chain(servers).take(MAX_RELATED).collect()
}

/// Whose the lines are that lie in a hub: the only trace that has a record or log of the request, unless the hub has a
/// record itself.
pub fn owner_of_lines(hub: TraceId, arrivals: &TraceArrivals) -> TraceId {
    let named = sides(arrivals, Side::Client);
    match named.as_slice() {
        [only] if arrivals.records.is_empty() => *only,
        _ => hub,
    }
}

/// The client's sides of a request id: those named, and the hub where it keeps a record, or lines that are nobody else's.
fn clients(hub: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let mut clients = sides(arrivals, Side::Client);
    let own_lines = !arrivals.logs.is_empty() && owner_of_lines(hub, arrivals) == hub;
    if !arrivals.records.is_empty() || own_lines {
        clients.push(hub);
    }
    clients
}

fn sides(arrivals: &TraceArrivals, side: Side) -> Vec<TraceId> {
    arrivals.aliases.iter().filter(|alias| alias.side == side).map(|alias| alias.trace_id).collect()
}
