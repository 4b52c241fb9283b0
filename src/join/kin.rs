//! What else is stored that belongs to a trace by a request id (design, section 4).
//!
//! Under the digest of a request id lies its hub: event lines and records that tell no trace id, and aliases that say
//! under which traces the sides of the request are kept. Every question is answered from what is stored alone, so that
//! whoever asks, client's side or server's, gets the same answer.

use std::collections::{BTreeSet, HashMap};

use super::event_log;
use super::inputs::{Partner, TraceInputs};
use super::rules::{JoinRules, ReadSpan};
use super::tree;
use crate::model::{Nanos, Side, TraceId, UnixNanos};
use crate::store::{Claim, Key, ReceivedLog, ReceivedRecord, Store, StoreError, TraceArrivals};

/// Server traces of one request id that are looked at. More are not one request's, whatever they hold.
const MAX_SERVERS: usize = 4;

/// Servers under one request id from which on it is nobody's, however many more carry it, such as an id that a proxy
/// sets to a constant.
pub const SERVERS_ENOUGH: usize = MAX_SERVERS + 1;

/// Request ids of a server trace that are looked at.
const MAX_SERVER_IDS: usize = 16;

/// Records of a trace beyond which none of them is joined by a request id: they would have to be told apart for each id.
const MAX_CLIENT_RECORDS: usize = 256;

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
    /// No one: a side is there several times, under this request id or another that the server's spans carry.
    Ambiguous,
    /// These two.
    Pair {
        /// The trace of the client's record.
        client: TraceId,
        /// The trace of the server's spans.
        server: TraceId,
    },
}

/// The sides that a request id's hub names.
#[derive(Debug)]
struct Hub {
    clients: Vec<TraceId>,
    servers: Vec<TraceId>,
    owner_of_lines: TraceId,
}

/// Hubs, and the traces that they name, as far as a question needs them.
#[derive(Debug, Default)]
pub struct Kin {
    held: HashMap<TraceId, TraceArrivals>,
    hubs: HashMap<TraceId, Hub>,
    /// Request ids that the spans of server traces carry.
    carried: HashMap<TraceId, BTreeSet<String>>,
}

impl Kin {
    /// Loads all that may belong to traces that tell these request ids.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn gather(
        source: &mut impl Arrivals,
        request_ids: &BTreeSet<String>,
        read: &ReadSpan,
    ) -> Result<Self, StoreError> {
        let mut kin = Self::default();
        kin.add_hubs(source, request_ids).await?;
        kin.carried = kin.read_servers(request_ids, read);
        // One server's spans carry several ids, and another record may claim them by another of these.
        let others = kin.carried.values().flatten().filter(|id| !request_ids.contains(*id)).cloned().collect();
        kin.add_hubs(source, &others).await?;
        Ok(kin)
    }

    /// Adds the hubs of some request ids, and the traces that decide about their pairings.
    async fn add_hubs(&mut self, source: &mut impl Arrivals, ids: &BTreeSet<String>) -> Result<(), StoreError> {
        let hubs: BTreeSet<TraceId> = ids.iter().map(|id| TraceId::of_request_id(id)).collect();
        self.add(source, &hubs).await?;
        for id in &hubs {
            let Some(arrivals) = self.held.get(id) else { continue };
            let (clients, servers) = (clients(*id, arrivals), sides(arrivals, Side::Server));
            self.hubs.insert(*id, Hub { clients, servers, owner_of_lines: owner_of_lines(*id, arrivals) });
        }
        let traces: BTreeSet<TraceId> = hubs.iter().flat_map(|hub| self.sides_to_look_at(*hub)).collect();
        self.add(source, &traces).await
    }

    /// The request ids that the spans of the server traces carry that these ids name.
    fn read_servers(&self, request_ids: &BTreeSet<String>, read: &ReadSpan) -> HashMap<TraceId, BTreeSet<String>> {
        let hubs = request_ids.iter().map(|id| TraceId::of_request_id(id));
        let servers: BTreeSet<TraceId> = hubs.flat_map(|hub| self.servers_to_look_at(hub)).copied().collect();
        let mut carried = HashMap::new();
        for server in servers {
            let Some(arrivals) = self.held.get(&server) else { continue };
            let spans = arrivals.fragments.iter().flat_map(|fragment| &fragment.spans);
            let ids: BTreeSet<String> = spans.flat_map(|span| read(span).request_ids).collect();
            carried.insert(server, ids.into_iter().take(MAX_SERVER_IDS).collect());
        }
        carried
    }

    async fn add(&mut self, source: &mut impl Arrivals, traces: &BTreeSet<TraceId>) -> Result<(), StoreError> {
        let missing = traces.iter().filter(|trace| !self.held.contains_key(trace));
        let keys: Vec<Key> = missing.map(|trace| *trace.as_bytes()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        for (key, arrivals) in source.load(&keys).await? {
            if let Ok(trace_id) = TraceId::from_bytes(key) {
                self.held.insert(trace_id, arrivals);
            }
        }
        Ok(())
    }

    /// The traces that decide about a pairing: none where a side is missing or is there too often.
    fn sides_to_look_at(&self, hub: TraceId) -> Vec<TraceId> {
        let mut traces = self.servers_to_look_at(hub).to_vec();
        if let ([client], false) = (self.clients(hub), traces.is_empty()) {
            traces.push(*client);
        }
        traces
    }

    /// The server traces of a request id that a client may be joined to.
    fn servers_to_look_at(&self, hub: TraceId) -> &[TraceId] {
        let servers = self.servers(hub);
        if servers.len() > MAX_SERVERS || self.clients(hub).is_empty() { &[] } else { servers }
    }

    fn clients(&self, hub: TraceId) -> &[TraceId] {
        self.hubs.get(&hub).map_or(&[], |hub| &hub.clients)
    }

    fn servers(&self, hub: TraceId) -> &[TraceId] {
        self.hubs.get(&hub).map_or(&[], |hub| &hub.servers)
    }

    /// Who is joined by a request id.
    pub fn pairing(&self, request_id: &str, read: &ReadSpan) -> Pairing {
        let hub = TraceId::of_request_id(request_id);
        let named = self.servers(hub);
        // Of very many it makes no difference which have a client of their own.
        let is_server = |server: &&TraceId| named.len() > MAX_SERVERS || self.is_lone_server(**server);
        let servers: Vec<&TraceId> = named.iter().filter(is_server).take(2).collect();
        match (self.clients(hub), servers.as_slice()) {
            ([], _) | (_, []) => Pairing::None,
            ([client], [server]) if self.is_lone_client(*client, request_id, read) => {
                match self.is_claimed_otherwise(**server, request_id, read) {
                    true => Pairing::Ambiguous,
                    false => Pairing::Pair { client: *client, server: **server },
                }
            }
            ([_], [_]) => Pairing::None,
            _ => Pairing::Ambiguous,
        }
    }

    /// Whether another record claims a server trace by another request id that its spans carry: one server's time is
    /// nobody's rather than told twice.
    fn is_claimed_otherwise(&self, server: TraceId, request_id: &str, read: &ReadSpan) -> bool {
        let Some(carried) = self.carried.get(&server) else { return false };
        carried.iter().filter(|id| *id != request_id && self.knows_server(id, server)).any(|id| {
            match self.clients(TraceId::of_request_id(id)) {
                [] => false,
                [client] => self.is_lone_client(*client, id, read),
                _ => true,
            }
        })
    }

    /// Whether no client told of a trace by its trace id, which goes before any request id.
    fn is_lone_server(&self, trace_id: TraceId) -> bool {
        self.held.get(&trace_id).is_some_and(|arrivals| arrivals.records.is_empty() && arrivals.logs.is_empty())
    }

    /// Whether a trace has one client's record of a request id, and no server span.
    fn is_lone_client(&self, trace_id: TraceId, request_id: &str, read: &ReadSpan) -> bool {
        let Some(arrivals) = self.held.get(&trace_id) else { return false };
        if arrivals.records.len() > MAX_CLIENT_RECORDS {
            return false;
        }
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
        let owner = self.hubs.get(&hub).map(|hub| hub.owner_of_lines);
        let owned = self.held.get(&hub).filter(|_| hub != trace_id && owner == Some(trace_id));
        owned.into_iter().flat_map(|arrivals| &arrivals.logs)
    }

    /// The other sides that a request id's hub names.
    pub fn related(&self, request_id: &str, side: Side) -> Vec<TraceId> {
        let hub = TraceId::of_request_id(request_id);
        let related = match side {
            Side::Client => self.clients(hub),
            Side::Server => self.servers(hub),
        };
        related.iter().take(MAX_RELATED).copied().collect()
    }

    /// Whether a request id's hub names a trace as a server's side.
    pub fn knows_server(&self, request_id: &str, trace_id: TraceId) -> bool {
        self.servers(TraceId::of_request_id(request_id)).contains(&trace_id)
    }

    /// Whether a request id's hub names so many servers that one more makes no difference.
    pub fn has_servers_enough(&self, request_id: &str) -> bool {
        self.servers(TraceId::of_request_id(request_id)).len() >= SERVERS_ENOUGH
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
    first.is_some_and(|first| arrivals.first_arrival + Nanos::from(rules.settle) <= first)
}

/// The traces to join again when something came to a hub.
pub fn touched_by(hub: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let (named, servers) = (sides(arrivals, Side::Client), sides(arrivals, Side::Server));
    let clients = clients(hub, arrivals);
    let lines_go_elsewhere = !arrivals.logs.is_empty() && !named.is_empty();
    if !lines_go_elsewhere && (clients.is_empty() || servers.is_empty()) {
        return Vec::new();
    }
    // Where the hub is a client itself, its own change brings the servers back. Of very many the first to come may have
    // been joined before the others made the id ambiguous.
    let servers = if clients.contains(&hub) { Vec::new() } else { servers };
    servers.into_iter().take(SERVERS_ENOUGH).chain(named).take(MAX_RELATED).collect()
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
