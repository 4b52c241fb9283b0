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

/// The entry span of the client that names itself by `client_span`. `others` are the span ids of the trace's other
/// records: a server span that names one of them as its parent answers that one.
pub fn find(forest: &Forest, client_span: Option<SpanId>, others: &BTreeSet<SpanId>) -> Entry {
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
    let answers_another = |place: &Place| {
        let mut line = std::iter::once(*place).chain(forest.ancestors(*place));
        line.any(|at| forest.node(at).span.parent.is_some_and(|parent| others.contains(&parent)))
    };
    outermost(forest, servers.into_iter().filter(|place| !answers_another(place)).collect())
}

/// The single one that no other lies around; an engine's yields to a gateway's.
fn outermost(forest: &Forest, candidates: Vec<Place>) -> Entry {
    let among: BTreeSet<Place> = candidates.iter().copied().collect();
    let outer: Vec<Place> =
        candidates.into_iter().filter(|place| !forest.ancestors(*place).any(|up| among.contains(&up))).collect();
    let gateways: Vec<Place> = outer.iter().copied().filter(|place| !forest.node(*place).is_engine()).collect();
    let standing = if gateways.is_empty() { outer } else { gateways };
    match standing.as_slice() {
        [] => Entry::Missing,
        [one] => Entry::Span(*one),
        _ => Entry::Ambiguous,
    }
}
