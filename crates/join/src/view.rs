//! The spans of a request as a person looks at them.

use std::collections::{BTreeMap, BTreeSet};

use super::response_metrics::Placement;
use super::server_side::ServerPart;
use super::tree::{Forest, Node, Place};
use model::{ClientRecord, Interval, Nanos, ResponseMetrics, ServerPhase, SpanId, SpanKind};

/// One span of an explained request.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedSpan {
    pub span_id: SpanId,
    /// Its parent's id, as it was sent.
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    /// The service that emitted it.
    pub service: String,
    /// Entry start to its own start, after it was moved onto the entry span's clock; `None` where it has no place there.
    pub start_offset: Option<Nanos>,
    /// Its length; `None` where its end is missing or lies before its start.
    pub duration: Option<Nanos>,
    /// Whose time it is; `None` is transparent.
    pub phase: Option<ServerPhase>,
    /// Which dialect and rule decided.
    pub rule: String,
    pub clock_domain: String,
    /// Whether it was painted.
    pub painted: bool,
}

/// The rules that decided each phase of a request. What is left between and around spans has none.
pub type PhaseSources = BTreeMap<ServerPhase, BTreeSet<String>>;

/// The answer's own timing, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExplainedTiming {
    /// What the answer reported.
    pub metrics: ResponseMetrics,
    /// What became of it; `None` where there was no server's time to lay it into.
    pub placement: Option<Placement>,
}

/// The answer's own timing, where the client's record has it.
pub fn timing(record: Option<&ClientRecord>, server: Option<&ServerPart>) -> Option<ExplainedTiming> {
    let metrics = record?.response_metrics?;
    let own = server.filter(|server| server.at.is_some()).and_then(|server| server.own_timing.as_ref());
    Some(ExplainedTiming { metrics, placement: own.map(|own| own.placement) })
}

/// Which rules decided the phases of a request.
pub fn sources(forest: &Forest, server: &ServerPart) -> PhaseSources {
    let mut sources = PhaseSources::new();
    let Some(at) = server.at else { return sources };
    let own = server.own_timing.as_ref();
    for (phase, place) in server.painting.sources(at) {
        let source = match own.filter(|own| own.added.contains(&phase)) {
            Some(own) => own.source(),
            None => rule(forest.node(place)),
        };
        sources.entry(phase).or_default().insert(source);
    }
    for (phase, place) in server.painting.silent() {
        let rules = sources.entry(*phase).or_default();
        if rules.is_empty() {
            rules.insert(format!("{}, which leaves it out where it is 0", rule(forest.node(*place))));
        }
    }
    sources
}

/// The spans at the given places, those with a place on the entry span's clock first and by time.
pub fn spans(forest: &Forest, places: impl Iterator<Item = Place>, server: Option<&ServerPart>) -> Vec<ExplainedSpan> {
    let mut spans: Vec<ExplainedSpan> = places.map(|place| span(forest, place, server)).collect();
    spans.sort_by_key(|span| (span.start_offset.is_none(), span.start_offset, span.span_id));
    spans
}

fn span(forest: &Forest, place: Place, server: Option<&ServerPart>) -> ExplainedSpan {
    let node = forest.node(place);
    let shift = server.and_then(|server| server.painting.shift(place));
    let offset = |at: Interval| {
        let server = server?;
        Some(at.start + shift? - server.at?.start)
    };
    let shown_beside = forest.shown_beside(place);
    let opaque = forest.holds_nothing_known(place);
    ExplainedSpan {
        span_id: node.span.span_id,
        parent: node.span.parent,
        name: node.span.name.clone(),
        kind: node.span.kind,
        service: node.span.resource.service().into_owned(),
        start_offset: node.interval.and_then(offset),
        duration: node.interval.map(Interval::length),
        phase: node
            .reading
            .phase
            .or(opaque.then_some(ServerPhase::Provider))
            .filter(|_| node.interval.is_some() && !shown_beside),
        rule: rule(node),
        clock_domain: node.domain.0.clone(),
        painted: shift.is_some(),
    }
}

/// Which dialect and rule decided what a span is.
fn rule(node: &Node) -> String {
    match (node.interval, node.reading.dialect.as_ref()) {
        (None, _) => "clock_invalid: ignored".to_owned(),
        (_, "") => "no rule: transparent".to_owned(),
        (_, dialect) => format!("{dialect}: {}", node.reading.rule),
    }
}
