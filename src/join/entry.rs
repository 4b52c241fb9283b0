//! Which server span answers a client (design, section 3, rule 2).

use std::collections::BTreeSet;

use super::tree::{Forest, Place};
use crate::model::SpanId;

/// What looking for an entry span found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// This span.
    Span(Place),
    /// Several that neither nest nor yield.
    Ambiguous,
    /// No server span.
    Missing,
}

/// The entry span of the client that names itself by `client_span`: the server span that has it as its parent, else the
/// outermost server span, whichever client that one names.
pub fn find(forest: &Forest, client_span: Option<SpanId>) -> Entry {
    let servers: Vec<Place> = forest.places().filter(|place| forest.node(*place).is_server()).collect();
    let Some(client) = client_span else { return outermost(forest, servers) };
    let named = |place: &Place| forest.node(*place).span.parent == Some(client);
    let children: Vec<Place> = servers.iter().copied().filter(named).collect();
    if !children.is_empty() {
        return outermost(forest, children);
    }
    if let Some(own) = forest.place_of(client) {
        let below: Vec<Place> =
            servers.iter().copied().filter(|place| forest.ancestors(*place).any(|up| up == own)).collect();
        if !below.is_empty() {
            return outermost(forest, below);
        }
    }
    outermost(forest, servers)
}

/// The single one that no other lies around; an engine's yields to a gateway's, and one whose own clock is invalid to
/// any other.
fn outermost(forest: &Forest, candidates: Vec<Place>) -> Entry {
    let among: BTreeSet<Place> = candidates.iter().copied().collect();
    let outer: Vec<Place> =
        candidates.into_iter().filter(|place| !forest.ancestors(*place).any(|up| among.contains(&up))).collect();
    let gateways = prefer(outer, |place| !forest.node(place).is_engine());
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
