//! The answer's own timing: laid where no span tells the inside of a call, compared where spans do (design, section 5).

use super::sibling::{is_call, the_one_call};
use super::tree::{Forest, Node, Place};
use model::reading::{Anchor, FirstToken, FirstTokenSource, Laid, Reading, Role, SubPhase};
use model::{ClockDomain, Interval, Nanos, ResponseMetrics, ServerPhase, ServerPhases, SpanKind};

/// The dialect under which what it tells is shown.
const DIALECT: &str = "response_metrics";

/// How many times the client's duration a timing must be before its unit is in doubt.
const SUSPECT_FACTOR: i64 = 20;

/// What became of the answer's own timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Laid where no span reported the same.
    Painted,
    /// Spans tell the inside already: it is compared with them.
    Compared,
    /// There is not exactly one call that can hold it.
    Unplaced,
    /// Far longer than the request, so it is in another unit.
    UnitSuspect,
}

/// The answer's own timing, and what became of it.
#[derive(Debug, Clone)]
pub struct OwnTiming {
    /// What the answer reported.
    pub metrics: ResponseMetrics,
    /// What became of it.
    pub placement: Placement,
    /// Phases that only the answer reported, on a span that reported others.
    pub added: Vec<ServerPhase>,
}

impl OwnTiming {
    /// How its source is shown.
    pub fn source(&self) -> String {
        format!("{DIALECT}: {}", self.metrics.kind.name())
    }

    /// Whether it tells a phase that neither a span nor it could be laid for.
    pub fn is_left_over(&self, phases: &ServerPhases) -> bool {
        let missing = |reported: Option<Nanos>, painted: Option<Nanos>| reported.is_some() && painted.is_none();
        missing(self.metrics.queue, phases.gpu_queue)
            || missing(self.metrics.generation(), phases.generation)
            || missing(self.metrics.gateway, phases.gateway)
    }

    /// Whether it and the spans tell another queue or generation, by more than 1 ms and 5 %.
    pub fn disagrees(&self, phases: &ServerPhases) -> bool {
        let apart = |reported: Option<Nanos>, painted: Option<Nanos>| {
            reported.zip(painted).is_some_and(|(reported, painted)| {
                let tolerance = 1_000_000.max(reported.max(painted).0 / 20);
                (reported - painted).0.abs() > tolerance
            })
        };
        let queue = self.metrics.queue.filter(|_| !self.added.contains(&ServerPhase::GpuQueue));
        self.placement == Placement::Compared
            && (apart(queue, phases.gpu_queue) || apart(self.metrics.generation(), phases.generation))
    }
}

/// Lays what it tells and no span does. `client` is how long the request took by the client's clock.
pub fn place(
    forest: &mut Forest,
    entry: Place,
    server: Option<Interval>,
    metrics: ResponseMetrics,
    client: Option<Nanos>,
) -> OwnTiming {
    let mut timing = OwnTiming { metrics, placement: Placement::Compared, added: Vec::new() };
    if longest(&metrics).zip(client).is_some_and(|(longest, client)| longest.0 / SUSPECT_FACTOR > client.0.max(1)) {
        timing.placement = Placement::UnitSuspect;
        return timing;
    }
    if add_gateway(forest, entry, &metrics) {
        timing.added.push(ServerPhase::Gateway);
    }
    if tells_inside(forest, entry) {
        if add_queue(forest, entry, &metrics) {
            timing.added.push(ServerPhase::GpuQueue);
        }
    } else if let Some(placement) = fill_call(forest, entry, server, &metrics, &mut timing.added) {
        timing.placement = placement;
    } else if !timing.added.is_empty() {
        timing.placement = Placement::Painted;
    }
    timing
}

fn longest(metrics: &ResponseMetrics) -> Option<Nanos> {
    let ResponseMetrics { kind: _, total, gateway, queue, prefill, decode, inference } = *metrics;
    [total, gateway, queue, prefill, decode, inference].into_iter().flatten().max()
}

/// Lays what it tells of an engine into the one call; `None` where it tells nothing of an engine.
fn fill_call(
    forest: &mut Forest,
    entry: Place,
    server: Option<Interval>,
    metrics: &ResponseMetrics,
    added: &mut Vec<ServerPhase>,
) -> Option<Placement> {
    let laid = laid(metrics);
    let painted = if laid.iter().any(|laid| laid.phase == ServerPhase::Generation) || metrics.total.is_some() {
        graft(forest, entry, server, metrics, laid)
    } else if let Some(length) = metrics.queue {
        // How long the engine took is not known, so the rest of the call stays what it is.
        let call = the_one_call(forest, entry, server, length);
        if let Some(call) = call {
            let laid = Laid { phase: ServerPhase::GpuQueue, sub: None, length, anchor: Anchor::Start };
            forest.lay(call, 0, laid);
            added.push(ServerPhase::GpuQueue);
        }
        call.is_some()
    } else if metrics.prefill.is_some() || metrics.decode.is_some() {
        false
    } else {
        return None;
    };
    Some(if painted { Placement::Painted } else { Placement::Unplaced })
}

/// What it tells of the engine's inside, the last first. One half of a generation whose whole is not known is left out:
/// it would pass for the whole.
fn laid(metrics: &ResponseMetrics) -> Vec<Laid> {
    let rest = |half: Option<Nanos>| metrics.inference.zip(half).map(|(whole, half)| (whole - half).max(Nanos::ZERO));
    let prefill = metrics.prefill.or(rest(metrics.decode));
    let decode = metrics.decode.or(rest(metrics.prefill));
    let halves = prefill.zip(decode);
    let parts = [
        (metrics.inference.filter(|_| halves.is_none()), ServerPhase::Generation, None),
        (halves.map(|(_, decode)| decode), ServerPhase::Generation, Some(SubPhase::Decode)),
        (halves.map(|(prefill, _)| prefill), ServerPhase::Generation, Some(SubPhase::Prefill)),
        (metrics.queue, ServerPhase::GpuQueue, None),
    ];
    let laid =
        |(length, phase, sub): (Option<Nanos>, _, _)| Some(Laid { phase, sub, length: length?, anchor: Anchor::End });
    parts.into_iter().filter_map(laid).collect()
}

/// Whether a span tells a phase, by its interval or by durations.
fn tells(reading: &Reading, phase: ServerPhase) -> bool {
    reading.phase == Some(phase) || reading.laid.iter().any(|laid| laid.phase == phase)
}

/// Whether spans tell the queue or the generation inside of the server's calls; where it makes no call, its own inside.
fn tells_inside(forest: &Forest, entry: Place) -> bool {
    let spans = forest.subtree(entry);
    if spans.iter().any(|place| forest.node(*place).is_engine()) {
        return true;
    }
    let inner = |place: &Place| {
        let reading = &forest.node(*place).reading;
        tells(reading, ServerPhase::GpuQueue) || tells(reading, ServerPhase::Generation)
    };
    let calls = |place: &&Place| is_call(forest, **place) && !forest.shown_beside(**place);
    let mut calls = spans.iter().filter(calls).peekable();
    if calls.peek().is_none() {
        return spans.iter().any(inner);
    }
    calls.any(|call| forest.subtree(*call).iter().skip(1).any(inner))
}

/// A gateway's own time lies at the start of the entry span, where no span tells a gateway's.
fn add_gateway(forest: &mut Forest, entry: Place, metrics: &ResponseMetrics) -> bool {
    let Some(length) = metrics.gateway else { return false };
    let is_reported = |place: Place| {
        let reading = &forest.node(place).reading;
        tells(reading, ServerPhase::Gateway) || reading.role == Role::ProxyServer
    };
    if forest.node(entry).reading.phase.is_some() || forest.subtree(entry).into_iter().any(is_reported) {
        return false;
    }
    let laid = Laid { phase: ServerPhase::Gateway, sub: None, length, anchor: Anchor::Start };
    forest.lay(entry, 0, laid);
    true
}

/// The queue of the one engine that tells its generation as durations and not its queue lies before them.
fn add_queue(forest: &mut Forest, entry: Place, metrics: &ResponseMetrics) -> bool {
    let Some(length) = metrics.queue else { return false };
    let spans = forest.subtree(entry);
    if spans.iter().any(|place| tells(&forest.node(*place).reading, ServerPhase::GpuQueue)) {
        return false;
    }
    let generates = |place: &Place| {
        let reading = &forest.node(*place).reading;
        reading.role == Role::Engine && reading.laid.iter().any(|laid| laid.phase == ServerPhase::Generation)
    };
    let mut engines = spans.into_iter().filter(generates);
    let (Some(engine), None) = (engines.next(), engines.next()) else { return false };
    let last = forest.node(engine).reading.laid.len();
    forest.lay(engine, last, Laid { phase: ServerPhase::GpuQueue, sub: None, length, anchor: Anchor::End });
    true
}

/// Hangs an engine of that length under the one call that can hold it. Of an engine's whole time that is reported and does
/// not fit, what its parts tell may fit.
fn graft(
    forest: &mut Forest,
    entry: Place,
    server: Option<Interval>,
    metrics: &ResponseMetrics,
    laid: Vec<Laid>,
) -> bool {
    let parts: Nanos = laid.iter().map(|laid| laid.length).sum();
    let whole = metrics.total.map_or(parts, |total| total.max(parts));
    let home =
        [whole, parts].into_iter().find_map(|length| Some((the_one_call(forest, entry, server, length)?, length)));
    let Some((call, length)) = home else { return false };
    let host = forest.node(call);
    let mut span = host.span.clone();
    span.kind = SpanKind::Server;
    let decode = laid.iter().find(|laid| laid.sub == Some(SubPhase::Decode)).map(|laid| laid.length);
    let reading = Reading {
        dialect: DIALECT.into(),
        rule: metrics.kind.name().into(),
        role: Role::Engine,
        first_token: decode.map(|decode| FirstToken { offset: length - decode, source: FirstTokenSource::Attribute }),
        laid,
        ..Reading::default()
    };
    let interval = host.interval.map(|at| Interval { start: at.start, end: at.start + length });
    let domain = ClockDomain(format!("{DIALECT}/{}", host.span.span_id));
    forest.graft(Node { span, reading, interval, domain, parent: None, children: Vec::new() }, call);
    true
}
