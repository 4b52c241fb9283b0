//! What else is stored that belongs to a trace by a request id (design, section 4).
//!
//! Under the digest of a request id lie event lines and records that carry no trace id, and aliases that say
//! under which traces the sides of the request are kept. Every question is answered from what is stored alone, so that
//! whoever asks, client's side or server's, gets the same answer.

use std::collections::{BTreeSet, HashMap};

use super::event_log;
use super::inputs::{Partner, TraceInputs};
use super::rules::{JoinRules, ReadSpan};
use super::sides::{clients, owner_of_lines, sides};
use super::tree;
use model::{Key, Nanos, ReceivedLog, ReceivedRecord, Side, TraceArrivals, TraceId, UnixNanos};

/// Server traces of one request id that are looked at. More are not one request's, whatever they hold.
const MAX_SERVERS: usize = 4;

/// Servers under one request id from which on it identifies no request, however many more carry it, such as an id that a proxy
/// sets to a constant.
pub const SERVERS_ENOUGH: usize = MAX_SERVERS + 1;

/// Request ids of a server trace that are looked at.
const MAX_SERVER_IDS: usize = 16;

/// Records of a trace beyond which none of them is joined by a request id: they would have to be distinguished for each id.
const MAX_CLIENT_RECORDS: usize = 256;

/// Traces that are joined again because of one request id.
const MAX_RELATED: usize = 64;

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

/// The sides that are known under a request id.
#[derive(Debug)]
struct RequestIdSides {
    clients: Vec<TraceId>,
    servers: Vec<TraceId>,
    owner_of_lines: TraceId,
}

/// What arrived under request ids, and the traces that it names, as far as a question needs them.
#[derive(Debug, Default)]
pub struct RequestIdPairing {
    held: HashMap<TraceId, TraceArrivals>,
    sides_by_key: HashMap<TraceId, RequestIdSides>,
    /// Request ids that the spans of server traces carry.
    carried: HashMap<TraceId, BTreeSet<String>>,
}

/// Says step by step which arrivals a pairing needs. The caller loads them: this crate knows no database.
#[derive(Debug)]
pub struct Lookup {
    pairing: RequestIdPairing,
    request_ids: BTreeSet<String>,
    /// The keys of the request ids of this step, then of the next.
    keys: BTreeSet<TraceId>,
    step: Step,
}

/// What a [`Lookup`] asks for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    RequestIds,
    Sides,
    /// One server's spans carry several ids, and another record may claim them by another of these.
    OtherRequestIds,
    OtherSides,
    Done,
}

impl Lookup {
    /// For traces whose client's or server's side names these request ids.
    pub fn new(request_ids: BTreeSet<String>) -> Self {
        let keys = keys_of(&request_ids);
        Self { pairing: RequestIdPairing::default(), request_ids, keys, step: Step::RequestIds }
    }

    /// The keys whose arrivals are to be loaded and handed to [`Self::supply`]; `None` when nothing more is needed.
    pub fn next_keys(&mut self, read: &ReadSpan) -> Option<Vec<Key>> {
        while self.step != Step::Done {
            let wanted = self.advance(read);
            let keys = self.pairing.not_held(&wanted);
            if !keys.is_empty() {
                return Some(keys);
            }
        }
        None
    }

    /// Takes what was loaded; keys without arrivals are left out.
    pub fn supply(&mut self, loaded: HashMap<Key, TraceArrivals>) {
        for (key, arrivals) in loaded {
            if let Ok(trace_id) = TraceId::from_bytes(key) {
                self.pairing.held.insert(trace_id, arrivals);
            }
        }
    }

    /// The pairing, once [`Self::next_keys`] asks for nothing more.
    pub fn finish(self) -> RequestIdPairing {
        debug_assert_eq!(self.step, Step::Done, "a pairing needs everything that its lookup asks for");
        self.pairing
    }

    /// The traces that this step needs; goes on to the next step.
    fn advance(&mut self, read: &ReadSpan) -> BTreeSet<TraceId> {
        match self.step {
            Step::RequestIds => self.step = Step::Sides,
            Step::OtherRequestIds => {
                self.pairing.carried = self.pairing.read_servers(&self.request_ids, read);
                let carried = self.pairing.carried.values().flatten();
                let others = carried.filter(|id| !self.request_ids.contains(*id)).cloned().collect();
                self.keys = keys_of(&others);
                self.step = Step::OtherSides;
            }
            Step::Sides | Step::OtherSides => {
                self.pairing.read_sides(&self.keys);
                self.step = if self.step == Step::Sides { Step::OtherRequestIds } else { Step::Done };
                return self.keys.iter().flat_map(|key| self.pairing.sides_to_look_at(*key)).collect();
            }
            Step::Done => return BTreeSet::new(),
        }
        self.keys.clone()
    }
}

fn keys_of(request_ids: &BTreeSet<String>) -> BTreeSet<TraceId> {
    request_ids.iter().map(|id| TraceId::of_request_id(id)).collect()
}

impl RequestIdPairing {
    /// Reads which sides the keys name.
    fn read_sides(&mut self, keys: &BTreeSet<TraceId>) {
        for id in keys {
            let Some(arrivals) = self.held.get(id) else { continue };
            let (clients, servers) = (clients(*id, arrivals), sides(arrivals, Side::Server));
            self.sides_by_key
                .insert(*id, RequestIdSides { clients, servers, owner_of_lines: owner_of_lines(*id, arrivals) });
        }
    }

    fn not_held(&self, traces: &BTreeSet<TraceId>) -> Vec<Key> {
        let missing = traces.iter().filter(|trace| !self.held.contains_key(trace));
        missing.map(|trace| *trace.as_bytes()).collect()
    }

    /// The request ids that the spans of the server traces carry that these ids name.
    fn read_servers(&self, request_ids: &BTreeSet<String>, read: &ReadSpan) -> HashMap<TraceId, BTreeSet<String>> {
        let keys = request_ids.iter().map(|id| TraceId::of_request_id(id));
        let servers: BTreeSet<TraceId> = keys.flat_map(|key| self.servers_to_look_at(key)).copied().collect();
        let mut carried = HashMap::new();
        for server in servers {
            let Some(arrivals) = self.held.get(&server) else { continue };
            let spans = arrivals.fragments.iter().flat_map(|fragment| &fragment.spans);
            let ids: BTreeSet<String> = spans.flat_map(|span| read(span).request_ids).collect();
            carried.insert(server, ids.into_iter().take(MAX_SERVER_IDS).collect());
        }
        carried
    }

    /// The traces that decide about a pairing: none where a side is missing or is there too often.
    fn sides_to_look_at(&self, key: TraceId) -> Vec<TraceId> {
        let mut traces = self.servers_to_look_at(key).to_vec();
        if let ([client], false) = (self.clients(key), traces.is_empty()) {
            traces.push(*client);
        }
        traces
    }

    /// The server traces of a request id that a client may be joined to.
    fn servers_to_look_at(&self, key: TraceId) -> &[TraceId] {
        let servers = self.servers(key);
        if servers.len() > MAX_SERVERS || self.clients(key).is_empty() { &[] } else { servers }
    }

    fn clients(&self, key: TraceId) -> &[TraceId] {
        self.sides_by_key.get(&key).map_or(&[], |sides| &sides.clients)
    }

    fn servers(&self, key: TraceId) -> &[TraceId] {
        self.sides_by_key.get(&key).map_or(&[], |sides| &sides.servers)
    }

    /// Who is joined by a request id.
    pub fn pairing(&self, request_id: &str, read: &ReadSpan) -> Pairing {
        let key = TraceId::of_request_id(request_id);
        let named = self.servers(key);
        // Of very many it makes no difference which have a client of their own.
        let is_server = |server: &&TraceId| named.len() > MAX_SERVERS || self.is_lone_server(**server);
        let servers: Vec<&TraceId> = named.iter().filter(is_server).take(2).collect();
        match (self.clients(key), servers.as_slice()) {
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
    /// shown with no request rather than with two.
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

    /// Whether no client named a trace by its trace id, which goes before any request id.
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
        for request_id in request_ids_of(&inputs.records, &inputs.logs) {
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

    /// The lines that arrived under a request id and belong to a trace.
    fn lines_for(&self, trace_id: TraceId, request_id: &str) -> impl Iterator<Item = &ReceivedLog> {
        let key = TraceId::of_request_id(request_id);
        let owner = self.sides_by_key.get(&key).map(|sides| sides.owner_of_lines);
        let owned = self.held.get(&key).filter(|_| key != trace_id && owner == Some(trace_id));
        owned.into_iter().flat_map(|arrivals| &arrivals.logs)
    }

    /// The other sides that are known under a request id.
    pub fn related(&self, request_id: &str, side: Side) -> Vec<TraceId> {
        let key = TraceId::of_request_id(request_id);
        let related = match side {
            Side::Client => self.clients(key),
            Side::Server => self.servers(key),
        };
        related.iter().take(MAX_RELATED).copied().collect()
    }

    /// Whether a trace is known under a request id as a server's side.
    pub fn knows_server(&self, request_id: &str, trace_id: TraceId) -> bool {
        self.servers(TraceId::of_request_id(request_id)).contains(&trace_id)
    }

    /// Whether so many servers are known under a request id that one more makes no difference.
    pub fn has_servers_enough(&self, request_id: &str) -> bool {
        self.servers(TraceId::of_request_id(request_id)).len() >= SERVERS_ENOUGH
    }
}

/// The request ids that the client's side of a trace tells: those of its records and event logs.
pub fn client_ids(arrivals: &TraceArrivals) -> BTreeSet<String> {
    request_ids_of(&arrivals.records, &arrivals.logs)
}

fn request_ids_of(records: &[ReceivedRecord], logs: &[ReceivedLog]) -> BTreeSet<String> {
    let records = records.iter().filter_map(|arrived| arrived.record.request_id.as_ref());
    let logs = logs.iter().filter_map(|arrived| arrived.log.request_id.as_ref());
    records.chain(logs).cloned().collect()
}

/// Whether a client named a trace by the key under which this arrived.
pub fn has_client(arrivals: &TraceArrivals) -> bool {
    !arrivals.records.is_empty() || !arrivals.logs.is_empty()
}

/// Whether what belongs to a trace may lie elsewhere, so that it cannot be joined by itself.
pub fn is_linked(arrivals: &TraceArrivals) -> bool {
    let named = arrivals.records.iter().any(|arrived| arrived.record.request_id.is_some());
    named || !arrivals.aliases.is_empty() || arrivals.logs.iter().any(|arrived| arrived.log.request_id.is_some())
}

/// Whether the spans of a trace may have been joined before its client named it, and found by a request id.
pub fn client_came_late(arrivals: &TraceArrivals, rules: &JoinRules) -> bool {
    let records = arrivals.records.iter().map(|arrived| arrived.received_at);
    let first = records.chain(arrivals.logs.iter().map(|arrived| arrived.received_at)).min();
    first.is_some_and(|first| arrivals.first_arrival + Nanos::from(rules.settle) <= first)
}

/// The traces to join again when something arrived under a request id.
pub fn touched_by(key: TraceId, arrivals: &TraceArrivals) -> Vec<TraceId> {
    let (named, servers) = (sides(arrivals, Side::Client), sides(arrivals, Side::Server));
    let clients = clients(key, arrivals);
    let lines_go_elsewhere = !arrivals.logs.is_empty() && !named.is_empty();
    if !lines_go_elsewhere && (clients.is_empty() || servers.is_empty()) {
        return Vec::new();
    }
    // Where the key is a client itself, its own change queues the servers again. Of very many the first to come may have
    // been joined before the others made the id ambiguous.
    let servers = if clients.contains(&key) { Vec::new() } else { servers };
    servers.into_iter().take(SERVERS_ENOUGH).chain(named).take(MAX_RELATED).collect()
}
