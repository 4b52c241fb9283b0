//! Engines and observers whose spans are siblings of the entry span, since a proxy forwarded the client's context
//! (design, section 3, rule 6); and the engine that only the answer's own timing tells (section 5).

use super::tree::{Forest, Node, Place};
use crate::model::{ClockDomain, Interval, Nanos, ResponseMetrics, ServerPhase, SpanKind};
use crate::normalise::dialect::{Anchor, Laid, Reading, Role, SubPhase};

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
fn the_one_call(forest: &Forest, entry: Place, length: Nanos) -> Option<Place> {
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

/// Whether a span below a call tells its queue or its generation.
fn tells_inside(forest: &Forest, call: Place) -> bool {
    let inner = |phase: ServerPhase| matches!(phase, ServerPhase::GpuQueue | ServerPhase::Generation);
    forest.subtree(call).into_iter().skip(1).any(|place| {
        let reading = &forest.node(place).reading;
        reading.phase.is_some_and(inner) || reading.laid.iter().any(|laid| inner(laid.phase))
    })
}

/// A span classed generation or provider, of kind CLIENT or a GenAI client span.
pub fn is_call(node: &Node) -> bool {
    let reading = &node.reading;
    let classed = matches!(reading.phase, Some(ServerPhase::Generation | ServerPhase::Provider));
    // A proxy's attempt is classed provider as long as nothing lies inside it.
    let opaque_attempt = reading.role == Role::ProxyAttempt && node.children.is_empty();
    (classed || opaque_attempt) && (node.span.kind == SpanKind::Client || reading.genai_client)
}

/// What became of the answer's own timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metrics {
    /// It was laid into a call.
    Placed,
    /// Spans tell the inside already.
    Told,
    /// There is not exactly one call that can hold it.
    Unplaced,
}

/// Treats the answer's own timing as an engine's child of that length under the one call.
pub fn place_metrics(forest: &mut Forest, entry: Place, metrics: &ResponseMetrics) -> Metrics {
    let calls: Vec<Place> = forest.subtree(entry).into_iter().filter(|place| is_call(forest.node(*place))).collect();
    let engine = |place: &Place| forest.node(*place).is_engine();
    let told = forest.subtree(entry).iter().any(engine) || calls.iter().any(|call| tells_inside(forest, *call));
    if told {
        return Metrics::Told;
    }
    let parts = [
        (metrics.decode, ServerPhase::Generation, Some(SubPhase::Decode)),
        (metrics.prefill, ServerPhase::Generation, Some(SubPhase::Prefill)),
        (metrics.queue, ServerPhase::GpuQueue, None),
    ];
    let laid: Vec<Laid> = parts
        .into_iter()
        .filter_map(|(length, phase, sub)| Some(Laid { phase, sub, length: length?, anchor: Anchor::End }))
        .collect();
    let length: Nanos = laid.iter().map(|laid| laid.length).sum();
    let Some(call) = the_one_call(forest, entry, length).filter(|_| !laid.is_empty()) else {
        return Metrics::Unplaced;
    };
    let host = forest.node(call);
    let mut span = host.span.clone();
    span.kind = SpanKind::Server;
    let reading = Reading {
        dialect: "response_metrics".into(),
        rule: "the answer's own timing".into(),
        role: Role::Engine,
        laid,
        first_token: metrics.prefill.map(|prefill| crate::normalise::dialect::FirstToken {
            offset: metrics.queue.unwrap_or_default() + prefill,
            source: crate::normalise::dialect::FirstTokenSource::Attribute,
        }),
        ..Reading::default()
    };
    let interval = host.interval.map(|at| Interval { start: at.start, end: at.start + length });
    let domain = ClockDomain(format!("response_metrics/{}", host.span.span_id));
    forest.graft(Node { span, reading, interval, domain, parent: None, children: Vec::new() }, call);
    Metrics::Placed
}
