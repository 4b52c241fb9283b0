//! Which server span answers a client (design, section 3, rule 2).

use std::collections::{BTreeSet, HashMap};

use super::tree::{Forest, Place};
use model::SpanId;

/// What looking for an entry span found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Span(Place),
    /// Several that neither nest nor yield.
    Ambiguous,
    /// No server span.
    Missing,
}

/// The server spans of a trace, arranged so that one search does not walk the whole trace: a trace may hold thousands of
/// spans and be claimed by thousands of records.
pub struct Servers<'a> {
    forest: &'a Forest,
    /// By the span id that they name as their parent.
    children: HashMap<SpanId, Vec<Place>>,
    /// The answer to a client that no span tells of: the outermost.
    outermost: Entry,
}

impl<'a> Servers<'a> {
    /// Of a trace.
    pub fn of(forest: &'a Forest) -> Self {
        let mut children: HashMap<SpanId, Vec<Place>> = HashMap::new();
        let mut tops = Vec::new();
        for place in forest.places().filter(|place| forest.node(*place).is_server()) {
            if let Some(parent) = forest.node(place).span.parent {
                children.entry(parent).or_default().push(place);
            }
            if !forest.ancestors(place).any(|up| forest.node(up).is_server()) {
                tops.push(place);
            }
        }
        Self { forest, children, outermost: standing(forest, tops) }
    }

    /// The entry span of the client that names itself by `client_span`: the server span that has it as its parent, else
    /// the outermost server span, whichever client that one names.
    pub fn entry(&self, client_span: Option<SpanId>) -> Entry {
        match client_span.map_or(Entry::Missing, |client| self.answering(client)) {
            Entry::Missing => self.outermost,
            found => found,
        }
    }

    /// The server span that has a client's span as its parent, or that lies below it where it is held.
    pub fn answering(&self, client: SpanId) -> Entry {
        if let Some(children) = self.children.get(&client) {
            return standing(self.forest, self.outermost_of(children));
        }
        let below = self.forest.place_of(client).map(|own| self.first_below(own));
        standing(self.forest, below.unwrap_or_default())
    }

    /// Those that no other of them lies around.
    fn outermost_of(&self, places: &[Place]) -> Vec<Place> {
        let among: BTreeSet<Place> = places.iter().copied().collect();
        let is_inner = |place: Place| self.forest.ancestors(place).any(|up| among.contains(&up));
        places.iter().copied().filter(|place| !is_inner(*place)).collect()
    }

    /// The server spans below a span that no other server span below it lies around.
    fn first_below(&self, own: Place) -> Vec<Place> {
        let mut found = Vec::new();
        let mut open = self.forest.node(own).children.clone();
        while let Some(place) = open.pop() {
            let node = self.forest.node(place);
            if node.is_server() {
                found.push(place);
            } else {
                open.extend(&node.children);
            }
        }
        found
    }
}

/// The single one of the outermost. An engine's yields to a gateway's, an observer's to the proxy's, a prefill server's to
/// the one that decodes, and one whose own clock is invalid to any other.
fn standing(forest: &Forest, outer: Vec<Place>) -> Entry {
    let gateways = prefer(outer, |place| !forest.node(place).yields());
    let gateways = prefer(gateways, |place| !forest.node(place).only_prefills());
    match prefer(gateways, |place| forest.node(place).interval.is_some()).as_slice() {
        [] => Entry::Missing,
        [one] => Entry::Span(*one),
        _ => Entry::Ambiguous,
    }
}

/// Those that have a quality, or all where none has it.
fn prefer(places: Vec<Place>, has: impl Fn(Place) -> bool) -> Vec<Place> {
    let with: Vec<Place> = places.iter().copied().filter(|place| has(*place)).collect();
    if with.is_empty() { places } else { with }
}
