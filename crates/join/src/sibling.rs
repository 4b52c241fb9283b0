//! Engines and observers whose spans are siblings of the entry span, since a proxy forwarded the client's context
//! (design, section 3, rule 6).

use super::server_time::{ClientTime, server_time};
use super::tree::{Forest, Place};
use model::reading::Role;
use model::{Flags, Interval, Nanos, ServerPhase, SpanKind};

/// Hangs the engine's and observer's spans that are siblings of the entry where they lie on its clock, else under the
/// one call that can hold them, else under the entry.
pub fn place_engines(forest: &mut Forest, entry: Place, client: Option<ClientTime>) {
    let parent = forest.node(entry).span.parent;
    let sibling = |forest: &Forest, place: Place| {
        let node = forest.node(place);
        place != entry
            && node.interval.is_some()
            && node.parent == forest.node(entry).parent
            && node.span.parent == parent
            && matches!(node.reading.role, Role::Engine | Role::Observer)
    };
    let engines: Vec<Place> = forest.places().filter(|place| sibling(forest, *place)).collect();
    if engines.is_empty() {
        return;
    }
    // Where calls end decides which of them can hold an engine; placing one may move the server's end afterwards.
    let server = server_time(forest, entry, client, &mut Flags::default());
    let homes: Vec<(Place, Place)> = engines
        .into_iter()
        .map(|engine| {
            let length = forest.node(engine).interval.map_or(Nanos::ZERO, Interval::length);
            let by_time = forest.innermost_around(engine, entry);
            (engine, by_time.or_else(|| the_one_call(forest, entry, server, length)).unwrap_or(entry))
        })
        .collect();
    for (engine, home) in homes {
        forest.attach(engine, home);
    }
}

/// The one call that has no child on another clock and is long enough; `None` where there is not exactly one.
pub fn the_one_call(forest: &Forest, entry: Place, server: Option<Interval>, length: Nanos) -> Option<Place> {
    let fits = |place: &Place| {
        let node = forest.node(*place);
        let foreign = node.children.iter().any(|child| forest.crosses_clocks(*child, *place));
        is_call(forest, *place)
            && !forest.shown_beside(*place)
            && !foreign
            && forest.bounded(*place, entry, server).is_some_and(|at| at.length() >= length)
    };
    let mut calls = forest.subtree(entry).into_iter().filter(fits);
    calls.next().filter(|_| calls.next().is_none())
}

/// A span classed generation or provider, of kind CLIENT or a GenAI client span.
pub fn is_call(forest: &Forest, place: Place) -> bool {
    let node = forest.node(place);
    let reading = &node.reading;
    let classed = matches!(reading.phase, Some(ServerPhase::Generation | ServerPhase::Provider));
    // A proxy's attempt is classed provider as long as nothing lies inside it.
    let opaque_attempt = forest.holds_nothing_known(place);
    (classed || opaque_attempt) && (node.span.kind == SpanKind::Client || reading.genai_client)
}

/// By how much what lies inside may be longer than what holds it and still be cut to fit: max(1 ms, 1 %) (rule 5).
pub fn overhang(holder: Nanos) -> Nanos {
    const MILLISECOND: i64 = 1_000_000;
    Nanos(MILLISECOND.max(holder.0 / 100))
}
