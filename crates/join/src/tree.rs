//! The spans of a trace as a forest: parent links over the spans held, and time within one clock where a parent is
//! unknown (design, section 3, rules 2 and 10).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use model::reading::{Laid, Reading, Role, SubPhase};
use model::{ClockDomain, Flag, Flags, Interval, Nanos, Span, SpanId, SpanKind};

/// A span's place in a [`Forest`].
pub type Place = usize;

/// A span with its reading and its neighbours.
#[derive(Debug, Clone)]
pub struct Node {
    pub span: Span,
    /// What its dialect reads.
    pub reading: Reading,
    /// Its stretch of its own clock; `None` where that is invalid, and then it is never painted.
    pub interval: Option<Interval>,
    pub domain: ClockDomain,
    /// The span it hangs under.
    pub parent: Option<Place>,
    /// The spans that hang under it.
    pub children: Vec<Place>,
}

impl Node {
    /// Whether it may be a server's entry: of kind SERVER, or a root that a dialect knows.
    pub fn is_server(&self) -> bool {
        is_server(&self.span, &self.reading)
    }

    /// Whether it is an engine's own span.
    pub fn is_engine(&self) -> bool {
        matches!(self.reading.role, Role::Engine | Role::EngineStage)
    }

    /// Whether it is a server that prefills for another, which decodes and answers.
    pub fn only_prefills(&self) -> bool {
        self.reading.role == Role::Engine && self.reading.sub == Some(SubPhase::Prefill)
    }

    /// Whether it yields to another server's span as the entry: an engine's to a gateway's, an observer's to a proxy's.
    pub fn yields(&self) -> bool {
        self.is_engine() || self.reading.role == Role::Observer
    }
}

/// Whether a span may be a server's entry: of kind SERVER, or a root that a dialect knows.
pub fn is_server(span: &Span, reading: &Reading) -> bool {
    match reading.role {
        Role::Noise | Role::AsgiSend { .. } => false,
        _ => span.kind == SpanKind::Server || reading.root,
    }
}

/// One body part that an ASGI server wrote.
#[derive(Debug, Clone, Copy)]
struct BodySend {
    /// The server span of the request that it answers.
    server: Place,
    at: Interval,
}

/// The tops that places hang under. A search shortens the way for those that follow (union-find with path halving), so
/// that deep chains stay cheap.
struct Roots {
    up: Vec<Place>,
}

impl Roots {
    fn of(nodes: &[Node]) -> Self {
        Self { up: nodes.iter().enumerate().map(|(place, node)| node.parent.unwrap_or(place)).collect() }
    }

    fn find(&mut self, mut place: Place) -> Place {
        while self.up[place] != place {
            self.up[place] = self.up[self.up[place]];
            place = self.up[place];
        }
        place
    }

    fn attach(&mut self, top: Place, parent: Place) {
        self.up[top] = parent;
    }
}

/// All spans of a trace, each once.
#[derive(Debug, Clone, Default)]
pub struct Forest {
    nodes: Vec<Node>,
    by_id: HashMap<SpanId, Place>,
    has_observers: bool,
    body_sends: Vec<BodySend>,
    /// What building it showed.
    pub flags: Flags,
}

impl Forest {
    /// Reads every span and hangs it under its parent. `client_spans` are the span ids of the client's records: server
    /// spans that name different ones are different requests, however they lie in time.
    pub fn grow(spans: Vec<Span>, read: &dyn Fn(&Span) -> Reading, client_spans: &BTreeSet<SpanId>) -> Self {
        let mut forest = Self::default();
        let mut skipped: HashMap<SpanId, Option<SpanId>> = HashMap::new();
        let mut sends = Vec::new();
        for span in spans {
            let reading = read(&span);
            match reading.role {
                Role::Noise => {
                    skipped.insert(span.span_id, span.parent);
                }
                Role::AsgiSend { body } => {
                    skipped.insert(span.span_id, span.parent);
                    if body {
                        sends.push(span);
                    }
                }
                _ => forest.add(span, reading),
            }
        }
        forest.link(&skipped);
        forest.cut_cycles();
        forest.pass_over_invalid();
        forest.nest_by_time(client_spans);
        forest.nest_siblings();
        forest.place_body_sends(&sends, &skipped);
        for place in 0..forest.nodes.len() {
            let node = &forest.nodes[place];
            // What has no valid clock counts nowhere, so it is no child either (rule 10).
            if let Some(parent) = node.parent.filter(|_| node.interval.is_some()) {
                forest.nodes[parent].children.push(place);
            }
        }
        forest
    }

    fn add(&mut self, span: Span, reading: Reading) {
        let interval = span.interval();
        self.has_observers |= reading.role == Role::Observer;
        match interval {
            Some(_) => self.flags.extend(reading.flags),
            None => self.flags.set(Flag::ClockInvalid),
        }
        self.by_id.insert(span.span_id, self.nodes.len());
        let domain = span.resource.clock_domain();
        self.nodes.push(Node { span, reading, interval, domain, parent: None, children: Vec::new() });
    }

    fn link(&mut self, skipped: &HashMap<SpanId, Option<SpanId>>) {
        for place in 0..self.nodes.len() {
            let parent = self.nodes[place].span.parent;
            self.nodes[place].parent = self.working_above(parent, skipped).filter(|up| *up != place);
        }
    }

    /// The span of that id, or the nearest one above it where that hands its work on.
    fn working_above(&self, wanted: Option<SpanId>, skipped: &HashMap<SpanId, Option<SpanId>>) -> Option<Place> {
        let mut found = self.held_above(wanted, skipped)?;
        // A ring of such spans ends the search after as many steps as there are spans.
        for _ in 0..self.nodes.len() {
            let node = &self.nodes[found];
            match self.held_above(node.span.parent, skipped).filter(|_| node.reading.hands_on) {
                Some(above) => found = above,
                None => break,
            }
        }
        Some(found)
    }

    /// The span of that id, or the nearest one above it where that is noise.
    fn held_above(&self, mut wanted: Option<SpanId>, skipped: &HashMap<SpanId, Option<SpanId>>) -> Option<Place> {
        // Noise may hang under noise; a ring of it ends the search after as many steps as there is noise.
        for _ in 0..=skipped.len() {
            match wanted.and_then(|id| skipped.get(&id)) {
                Some(above) => wanted = *above,
                None => break,
            }
        }
        wanted.and_then(|id| self.by_id.get(&id).copied())
    }

    /// Finds the server span of each body part. Its own parent may be any span that the application left open while it
    /// handed the part out, such as that of the generation.
    fn place_body_sends(&mut self, sends: &[Span], skipped: &HashMap<SpanId, Option<SpanId>>) {
        for send in sends {
            let (Some(at), Some(parent)) = (send.interval(), self.held_above(send.parent, skipped)) else { continue };
            let domain = send.resource.clock_domain();
            let up = std::iter::once(parent).chain(self.ancestors(parent));
            let server = up.take_while(|up| self.nodes[*up].domain == domain).find(|up| self.nodes[*up].is_server());
            if let Some(server) = server {
                self.body_sends.push(BodySend { server, at });
            }
        }
    }

    /// Parent links that run in a ring are cut above the ring's smallest span id.
    fn cut_cycles(&mut self) {
        const UNSEEN: usize = usize::MAX;
        let mut seen_in = vec![UNSEEN; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut at = start;
            while seen_in[at] == UNSEEN {
                seen_in[at] = start;
                match self.nodes[at].parent {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            if seen_in[at] == start && self.nodes[at].parent.is_some() && self.reaches_itself(at) {
                let smallest = self.ring(at).into_iter().min_by_key(|place| self.nodes[*place].span.span_id);
                if let Some(smallest) = smallest {
                    self.nodes[smallest].parent = None;
                }
            }
        }
    }

    fn reaches_itself(&self, place: Place) -> bool {
        self.ring(place).last().and_then(|last| self.nodes[*last].parent) == Some(place)
    }

    /// From a place upward until a top or the place itself.
    fn ring(&self, place: Place) -> Vec<Place> {
        let mut ring = vec![place];
        let mut at = place;
        while let Some(parent) = self.nodes[at].parent {
            if parent == place || ring.len() > self.nodes.len() {
                break;
            }
            ring.push(parent);
            at = parent;
        }
        ring
    }

    /// Moves the children of spans without a valid clock up to the next valid span (rule 10). Below a server span that is
    /// the only one which could be the entry they stay: that request is excluded, not measured from a span inside it.
    fn pass_over_invalid(&mut self) {
        let invalid = |place: Place| self.nodes[place].interval.is_none();
        if !self.places().any(invalid) {
            return;
        }
        let mut roots = Roots::of(&self.nodes);
        let is_dead_entry =
            |place: Place| invalid(place) && self.nodes[place].parent.is_none() && self.nodes[place].is_server();
        let mut valid_servers = self.places().filter(|place| !invalid(*place) && self.nodes[*place].is_server());
        let has_other_entry = valid_servers.any(|place| !is_dead_entry(roots.find(place)));
        let parents: Vec<Option<Place>> = self
            .places()
            .map(|place| {
                let up = self.ancestors(place);
                let mut valid = up.skip_while(|up| invalid(*up) && (has_other_entry || !is_dead_entry(*up)));
                valid.next()
            })
            .collect();
        for (node, parent) in self.nodes.iter_mut().zip(parents) {
            node.parent = parent;
        }
    }

    /// Hangs each top under the smallest span of its clock that it lies inside of.
    fn nest_by_time(&mut self, client_spans: &BTreeSet<SpanId>) {
        let size = |place: &Place| self.nodes[*place].interval.map(Interval::length);
        let id = |place: &Place| self.nodes[*place].span.span_id;
        let mut by_size: Vec<Place> = self.places().collect();
        by_size.sort_by_key(|place| self.nesting(*place));
        let mut tops: Vec<Place> = self.places().filter(|place| self.nodes[*place].parent.is_none()).collect();
        tops.sort_by_key(|place| (Reverse(size(place)), id(place)));
        let mut holders: HashMap<ClockDomain, Vec<Place>> = HashMap::new();
        for place in by_size {
            holders.entry(self.nodes[place].domain.clone()).or_default().push(place);
        }
        let mut roots = Roots::of(&self.nodes);
        for top in tops {
            let own_claim = self.claim(top, client_spans);
            let holders = holders.get(&self.nodes[top].domain).into_iter().flatten().copied();
            let mut around = holders.filter(|place| self.holds(*place, top)).filter_map(|place| {
                let root = roots.find(place);
                let claim = self.claim(root, client_spans);
                (root != top && (own_claim.is_none() || claim == own_claim)).then_some((place, claim))
            });
            let Some((parent, claim)) = around.next() else { continue };
            // Enclosed by several requests it belongs to none of them.
            let is_ambiguous = client_spans.len() > 1
                && own_claim.is_none()
                && around.any(|(_, other)| other.is_some() && claim.is_some() && other != claim);
            if !is_ambiguous {
                self.nodes[top].parent = Some(parent);
                roots.attach(top, parent);
            }
        }
    }

    /// Hangs what lies beside a span that holds its siblings, and inside it in time, under it.
    fn nest_siblings(&mut self) {
        let mut holders: HashMap<Place, Vec<Place>> = HashMap::new();
        for place in self.places().filter(|place| self.nodes[*place].reading.holds_siblings) {
            if let Some(parent) = self.nodes[place].parent {
                holders.entry(parent).or_default().push(place);
            }
        }
        for place in self.places() {
            let node = &self.nodes[place];
            let beside = node.parent.filter(|_| !node.reading.holds_siblings).and_then(|parent| holders.get(&parent));
            let holds = |holder: &&Place| self.nodes[**holder].domain == node.domain && self.holds(**holder, place);
            if let Some(holder) = beside.and_then(|beside| beside.iter().find(holds)) {
                self.nodes[place].parent = Some(*holder);
            }
        }
    }

    /// The client's span that a span names as its parent.
    fn claim(&self, place: Place, client_spans: &BTreeSet<SpanId>) -> Option<SpanId> {
        self.nodes[place].span.parent.filter(|id| client_spans.contains(id))
    }

    /// Whether `inner` lies inside `outer` in time; of two equal intervals the smaller span id is the outer.
    fn holds(&self, outer: Place, inner: Place) -> bool {
        let (a, b) = (&self.nodes[outer], &self.nodes[inner]);
        let (Some(around), Some(within)) = (a.interval, b.interval) else { return false };
        outer != inner && around.contains(within) && (around != within || a.span.span_id < b.span.span_id)
    }

    /// Sorts spans of one clock that lie around the same span, the innermost first.
    fn nesting(&self, place: Place) -> (Option<Nanos>, Reverse<SpanId>) {
        let node = &self.nodes[place];
        (node.interval.map(Interval::length), Reverse(node.span.span_id))
    }

    /// The innermost span at or below `top` that lies around a span on the same clock; `None` where `top` does not.
    pub fn innermost_around(&self, inner: Place, top: Place) -> Option<Place> {
        let domain = &self.nodes[inner].domain;
        let around = |place: &Place| self.nodes[*place].domain == *domain && self.holds(*place, inner);
        let below = || self.subtree(top).into_iter().filter(around);
        below().next().filter(|first| *first == top).and_then(|_| below().min_by_key(|place| self.nesting(*place)))
    }

    pub fn node(&self, place: Place) -> &Node {
        &self.nodes[place]
    }

    /// Every place, by span id.
    pub fn places(&self) -> std::ops::Range<Place> {
        0..self.nodes.len()
    }

    /// Where a span id is held.
    pub fn place_of(&self, id: SpanId) -> Option<Place> {
        self.by_id.get(&id).copied()
    }

    /// Hangs a top under another node.
    pub fn attach(&mut self, top: Place, parent: Place) {
        self.nodes[top].parent = Some(parent);
        self.nodes[parent].children.push(top);
    }

    /// Lays a duration that the span itself does not tell, at a place among those that it tells.
    pub fn lay(&mut self, place: Place, at: usize, laid: Laid) {
        self.nodes[place].reading.laid.insert(at, laid);
    }

    /// Adds a node that no span tells, such as an engine known from the answer's own timing.
    pub fn graft(&mut self, mut node: Node, parent: Place) {
        node.parent = Some(parent);
        self.nodes.push(node);
        let place = self.nodes.len() - 1;
        self.nodes[parent].children.push(place);
    }

    /// The nodes from `top` downward, parents before children.
    pub fn subtree(&self, top: Place) -> Vec<Place> {
        let mut found = vec![top];
        let mut next = 0;
        while next < found.len() {
            found.extend(&self.nodes[found[next]].children);
            next += 1;
        }
        found
    }

    /// Whether a proxy's attempt shows nothing of its upstream: no span of another process lies inside it, and none of its
    /// own process that is classified (rule 9). `children` are those to look at.
    pub fn is_opaque_attempt<'a>(&'a self, place: Place, children: impl Fn(Place) -> &'a [Place]) -> bool {
        if self.nodes[place].reading.role != Role::ProxyAttempt {
            return false;
        }
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            for child in children(at).iter().copied() {
                let reading = &self.nodes[child].reading;
                let is_plain = reading.role == Role::Plain && reading.phase.is_none() && reading.laid.is_empty();
                if !is_plain || self.crosses_clocks(child, at) {
                    return false;
                }
                open.push(child);
            }
        }
        true
    }

    /// The same, of all that hangs under it.
    pub fn holds_nothing_known(&self, place: Place) -> bool {
        self.is_opaque_attempt(place, |at| &self.nodes[at].children)
    }

    /// Where a span lies on its clock, a call cut at the end of its own process's server span, which for the entry is the
    /// end of the server's time: a connection pool may hold a call open long after its answer (rule 5).
    pub fn bounded(&self, place: Place, entry: Place, server: Option<Interval>) -> Option<Interval> {
        let node = &self.nodes[place];
        let at = node.interval?;
        let is_call = node.span.kind == SpanKind::Client || node.reading.genai_client;
        if place == entry || !is_call {
            return Some(at);
        }
        let mut below = place;
        for up in self.ancestors(place) {
            if self.crosses_clocks(below, up) {
                break;
            }
            let end =
                if up == entry { server.map(|server| server.end) } else { self.nodes[up].interval.map(|at| at.end) };
            if up == entry || self.nodes[up].is_server() {
                let cut = end.filter(|end| at.start < *end && *end < at.end);
                return Some(Interval { end: cut.unwrap_or(at.end), ..at });
            }
            below = up;
        }
        Some(at)
    }

    /// Whether a span's times are readings of the entry span's clock.
    pub fn is_on_clock_of(&self, entry: Place, place: Place) -> bool {
        let mut below = place;
        for up in self.ancestors(place) {
            if below == entry {
                break;
            }
            if self.crosses_clocks(below, up) {
                return false;
            }
            below = up;
        }
        true
    }

    /// Whether what a span without anything inside it saw is shown by a span beside it. An observer of a proxy's stream
    /// and the proxy's own attempt are one call seen twice, and a server's own span tells more than either.
    pub fn shown_beside(&self, place: Place) -> bool {
        let node = &self.nodes[place];
        let alone = self.has_observers && node.children.is_empty();
        let Some(parent) = node.parent.filter(|_| alone) else { return false };
        let mut beside =
            self.nodes[parent].children.iter().filter(|other| **other != place).map(|other| &self.nodes[*other]);
        match node.reading.role {
            Role::Observer => beside.any(|other| {
                let server = other.span.kind == SpanKind::Server && other.reading.role != Role::Observer;
                server || other.is_engine() || other.reading.role == Role::ProxyAttempt
            }),
            Role::ProxyAttempt => {
                beside.any(|other| other.reading.role == Role::Observer && !other.children.is_empty())
            }
            _ => false,
        }
    }

    /// The nodes above a place, nearest first.
    pub fn ancestors(&self, place: Place) -> impl Iterator<Item = Place> {
        std::iter::successors(self.nodes[place].parent, |at| self.nodes[*at].parent)
    }

    /// Whether a child's readings are of another clock than its parent's (design, section 3, rule 5).
    pub fn crosses_clocks(&self, child: Place, parent: Place) -> bool {
        let (inner, outer) = (&self.nodes[child], &self.nodes[parent]);
        if inner.domain != outer.domain {
            return true;
        }
        let outside = match (outer.interval, inner.interval) {
            (Some(around), Some(within)) => !around.contains(within),
            _ => false,
        };
        inner.is_server() && outer.span.kind == SpanKind::Client && outside
    }

    /// Start of the first body part and end of the last that a server span's application wrote.
    pub fn body_sends(&self, server: Place) -> Option<Interval> {
        let mine = self.body_sends.iter().filter(|send| send.server == server);
        mine.map(|send| send.at).reduce(|a, b| Interval { start: a.start.min(b.start), end: a.end.max(b.end) })
    }
}
