//! Engines and observers whose spans are siblings of the entry span, since a proxy forwarded the client's context
//! (design, section 3, rule 6).

use super::tree::{Forest, Node, Place};
use model::reading::Role;
use model::{Interval, Nanos, ServerPhase, SpanKind};

/// Hangs the engine's and observer's spans that are siblings of the entry where they lie on its clock, else under the
/// one call that can hold them, else under the entry.
pub fn place_engines(forest: &mut Forest, entry: Place) {
    let parent = forest.node(entry).span.parent;
    let sibling = |forest: &Forest, place: Place| {
        let node = forest.node(place);
        place != entry
            && node.parent == forest.node(entry).parent
            && node.span.parent == parent
            && matches!(node.reading.role, Role::Engine | Role::Observer)
    };
    let engines: Vec<Place> = forest.places().filter(|place| sibling(forest, *place)).collect();
    let homes: Vec<(Place, Place)> = engines
        .into_iter()
        .map(|engine| {
            let length = forest.node(engine).interval.map_or(Nanos::ZERO, Interval::length);
            let by_time = forest.innermost_around(engine, entry);
            (engine, by_time.or_else(|| the_one_call(forest, entry, length)).unwrap_or(entry))
        })
        .collect();
    for (engine, home) in homes {
        forest.attach(engine, home);
    }
}

/// The one call that has no child on another clock and is long enough; `None` where there is not exactly one.
pub fn the_one_call(forest: &Forest, entry: Place, length: Nanos) -> Option<Place> {
    let fits = |place: &Place| {
        let node = forest.node(*place);
        let foreign = node.children.iter().any(|child| forest.crosses_clocks(*child, *place));
        is_call(node)
            && !forest.shown_beside(*place)
            && !foreign
            && node.interval.is_some_and(|interval| interval.length() >= length)
    };
    let mut calls = forest.subtree(entry).into_iter().filter(fits);
    calls.next().filter(|_| calls.next().is_none())
}

/// A span classed generation or provider, of kind CLIENT or a GenAI client span.
pub fn is_call(node: &Node) -> bool {
    let reading = &node.reading;
    let classed = matches!(reading.phase, Some(ServerPhase::Generation | ServerPhase::Provider));
    // A proxy's attempt is classed provider as long as nothing lies inside it.
    let opaque_attempt = reading.role == Role::ProxyAttempt && node.children.is_empty();
    (classed || opaque_attempt) && (node.span.kind == SpanKind::Client || reading.genai_client)
}
