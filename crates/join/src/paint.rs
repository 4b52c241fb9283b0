//! Painting: how a server's spans become phases (design, section 3, rules 4 to 9).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::sibling::{is_call, overhang};
use super::timeline::{Paint, Timeline, union};
use super::tree::{Forest, Place};
use model::reading::{Anchor, Role, SubPhase};
use model::{Flag, Flags, Interval, Nanos, ServerPhase, ServerPhases, SpanKind, UnixNanos};

/// A painted request.
pub struct Painting {
    /// Who owns what, on the entry span's clock, uncut.
    timeline: Timeline,
    /// What spans and attributes claim, whether or not another claim hides it.
    claims: Vec<Claim>,
    /// Phases that a system leaves out where they took no time, and whose system it is.
    zero_when_absent: Vec<(ServerPhase, Place)>,
    /// By how much each painted span is moved to lie on the entry span's clock.
    shifts: HashMap<Place, Nanos>,
}

/// What a span says of a stretch of time.
#[derive(Debug, Clone, Copy)]
struct Claim {
    at: Interval,
    paint: Paint,
    by: Place,
}

impl Claim {
    /// A claim wholly outside the server's time tells nothing (rule 10). To share no more than an instant is to lie
    /// outside, unless the claim is no longer than that.
    fn counts_in(&self, whole: Interval) -> bool {
        match self.at.intersection(whole) {
            Some(shared) => shared.length() > Nanos::ZERO || self.at.length() == Nanos::ZERO,
            None => false,
        }
    }
}

impl Painting {
    /// By how much a span is moved to lie on the entry span's clock; `None` where it is not painted.
    pub fn shift(&self, place: Place) -> Option<Nanos> {
        self.shifts.get(&place).copied()
    }

    /// The places that are painted, in order.
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.shifts.keys().copied().collect();
        places.sort_unstable();
        places
    }

    /// The phases of a stretch of the server's time `whole`. What is known of the whole is known of each stretch of it.
    pub fn phases(&self, stretch: Interval, whole: Interval) -> ServerPhases {
        let cut = self.timeline.clipped(stretch);
        let known = |phase: ServerPhase| {
            self.zero_when_absent.iter().any(|(silent, _)| *silent == phase)
                || self.claimed(whole, |paint| paint.phase == phase)
        };
        let known_total = |phase: ServerPhase| known(phase).then(|| cut.total(phase));
        let part = |sub: SubPhase| self.claimed(whole, |paint| paint.sub() == Some(sub)).then(|| cut.total_sub(sub));
        let painted: Nanos = ServerPhase::ALL.into_iter().map(|phase| cut.total(phase)).sum();
        ServerPhases {
            gateway: known_total(ServerPhase::Gateway),
            gpu_queue: known_total(ServerPhase::GpuQueue),
            generation: known_total(ServerPhase::Generation),
            prefill: part(SubPhase::Prefill),
            decode: part(SubPhase::Decode),
            provider: cut.total(ServerPhase::Provider),
            upstream_envelope: cut.total(ServerPhase::UpstreamEnvelope),
            unattributed: cut.total(ServerPhase::Unattributed) + (stretch.length() - painted),
        }
    }

    fn claimed(&self, whole: Interval, matches: impl Fn(Paint) -> bool) -> bool {
        self.claims.iter().any(|claim| matches(claim.paint) && claim.counts_in(whole))
    }

    /// Who tells each phase of the server's time `whole`.
    pub fn sources(&self, whole: Interval) -> BTreeSet<(ServerPhase, Place)> {
        let counted = self.claims.iter().filter(|claim| claim.counts_in(whole));
        counted.map(|claim| (claim.paint.phase, claim.by)).collect()
    }

    /// Who leaves out a phase where it took no time.
    pub fn silent(&self) -> &[(ServerPhase, Place)] {
        &self.zero_when_absent
    }
}

/// Paints the subtree of an entry span. `server` is the server's time: where that ends after the entry span does, the
/// entry's own phase lasts as long.
pub fn paint(forest: &Forest, entry: Place, server: Option<Interval>, flags: &mut Flags) -> Painting {
    let shifts = HashMap::from([(entry, Nanos::ZERO)]);
    let mut painter = Painter { forest, entry, server, shifts, painted: HashMap::new(), overhanging: HashSet::new() };
    let order = painter.lay_out(entry, flags);
    let mut claims = Vec::new();
    let mut zero_when_absent = Vec::new();
    let mut subtrees: HashMap<Place, Subtree> = HashMap::new();
    for place in order.into_iter().rev() {
        let children: Vec<(Place, Subtree)> = painter
            .children(place)
            .iter()
            .filter_map(|child| subtrees.remove(child).map(|subtree| (*child, subtree)))
            .collect();
        zero_when_absent.extend(forest.node(place).reading.absent_is_zero.iter().map(|phase| (*phase, place)));
        let subtree = painter.paint_one(place, children, &mut claims, flags);
        subtrees.insert(place, subtree);
    }
    let timeline = subtrees.remove(&entry).map(|subtree| subtree.timeline).unwrap_or_default();
    Painting { timeline, claims, zero_when_absent, shifts: painter.shifts }
}

/// What a span and all below it show.
struct Subtree {
    timeline: Timeline,
    tells_generation: bool,
    /// What spans of an engine in it tell.
    stages: Vec<Stage>,
}

/// What a span of an engine tells, and whether that engine's own request span holds it: then it is that request's, and
/// says nothing of a request around it.
type Stage = (Paint, bool);

struct Painter<'a> {
    forest: &'a Forest,
    entry: Place,
    server: Option<Interval>,
    shifts: HashMap<Place, Nanos>,
    /// The children of each place that are painted under it.
    painted: HashMap<Place, Vec<Place>>,
    /// Those that are a little longer than their parent and are cut to it.
    overhanging: HashSet<Place>,
}

impl Painter<'_> {
    fn children(&self, place: Place) -> &[Place] {
        self.painted.get(&place).map_or(&[], Vec::as_slice)
    }

    fn interval(&self, place: Place) -> Option<Interval> {
        Some(self.forest.bounded(place, self.entry, self.server)?.shifted(*self.shifts.get(&place)?))
    }

    /// Moves every span onto the entry span's clock, parents first.
    fn lay_out(&mut self, entry: Place, flags: &mut Flags) -> Vec<Place> {
        let mut order = vec![entry];
        let mut next = 0;
        while next < order.len() {
            let parent = order[next];
            let mut children = self.forest.node(parent).children.clone();
            children.sort_unstable();
            let kept = self.place_children(parent, children, flags);
            order.extend(&kept);
            self.painted.insert(parent, kept);
            next += 1;
        }
        order
    }

    /// Children on the parent's clock stay where they are; those that share another clock are centred as a group, the
    /// odd nanosecond at the end (rule 5).
    fn place_children(&mut self, parent: Place, children: Vec<Place>, flags: &mut Flags) -> Vec<Place> {
        let shift = self.shifts[&parent];
        let mut kept = Vec::new();
        let mut groups: BTreeMap<_, Vec<Place>> = BTreeMap::new();
        for child in children {
            if self.forest.crosses_clocks(child, parent) {
                groups.entry(self.forest.node(child).domain.clone()).or_default().push(child);
            } else {
                self.shifts.insert(child, shift);
                kept.push(child);
            }
        }
        let Some(around) = self.forest.bounded(parent, self.entry, self.server) else { return kept };
        for group in groups.into_values() {
            let Some(extent) = self.extent(&group) else { continue };
            let spare = around.length() - extent.length();
            if spare + overhang(around.length()) < Nanos::ZERO {
                flags.set(Flag::NegativeUpstream);
                continue;
            }
            if spare < Nanos::ZERO {
                self.overhanging.extend(&group);
            }
            let start = around.start + Nanos(spare.0 / 2);
            let moved = shift + (start - extent.start);
            for child in group {
                self.shifts.insert(child, moved);
                kept.push(child);
            }
        }
        kept.sort_unstable();
        kept
    }

    fn extent(&self, group: &[Place]) -> Option<Interval> {
        let intervals = group.iter().filter_map(|place| self.forest.node(*place).interval);
        intervals.reduce(|a, b| Interval { start: a.start.min(b.start), end: a.end.max(b.end) })
    }

    fn paint_one(
        &self,
        place: Place,
        children: Vec<(Place, Subtree)>,
        claims: &mut Vec<Claim>,
        flags: &mut Flags,
    ) -> Subtree {
        let claims_before = claims.len();
        let mut stages: Vec<Stage> = Vec::new();
        for (_, subtree) in &children {
            stages.extend(&subtree.stages);
        }
        let request = self.forest.node(place).reading.role == Role::Engine;
        let of_this = stages.iter().filter(|(_, of_another)| !(request && *of_another));
        let own = self.own_layer(place, &of_this.map(|(paint, _)| *paint).collect::<Vec<_>>(), claims, flags);
        if self.forest.node(place).is_engine() {
            stages.extend(claims[claims_before..].iter().map(|claim| (claim.paint, false)));
        }
        if request {
            stages.iter_mut().for_each(|(_, of_another)| *of_another = true);
        }
        stages.sort_unstable();
        stages.dedup();
        let generates = |claim: &Claim| claim.paint.phase == ServerPhase::Generation;
        let mut tells_generation = claims[claims_before..].iter().any(generates);
        let mut layers = Vec::with_capacity(children.len());
        for (child, subtree) in children {
            tells_generation |= subtree.tells_generation;
            layers.push(if self.forest.crosses_clocks(child, place) {
                let timeline = self.across_the_border(child, subtree);
                match self.interval(place).filter(|_| self.overhanging.contains(&child)) {
                    Some(at) => timeline.clipped(at),
                    None => timeline,
                }
            } else {
                subtree.timeline
            });
        }
        Subtree { timeline: Timeline::merge(layers).over(&own), tells_generation, stages }
    }

    /// What a foreign subtree does not tell keeps the parent's phase, unless it tells generation: then it is
    /// unattributed.
    fn across_the_border(&self, child: Place, subtree: Subtree) -> Timeline {
        if !subtree.tells_generation {
            return subtree.timeline.without(ServerPhase::Unattributed);
        }
        match self.interval(child) {
            Some(at) => subtree.timeline.over(&Timeline::of(at, ServerPhase::Unattributed)),
            None => subtree.timeline,
        }
    }

    /// The stretch that the span's own phase covers.
    fn reach(&self, place: Place, at: Interval) -> Interval {
        match self.server.filter(|_| place == self.entry) {
            Some(server) => Interval { end: at.end.max(server.end), ..at },
            None => at,
        }
    }

    /// What the span itself paints: its phase, the envelope of an inner hop around foreign children, and durations that
    /// it tells of its inside.
    fn own_layer(&self, place: Place, stages: &[Paint], claims: &mut Vec<Claim>, flags: &mut Flags) -> Timeline {
        let Some(at) = self.interval(place) else { return Timeline::default() };
        let node = self.forest.node(place);
        let base = self.base_paint(place, flags);
        let reach = self.reach(place, at);
        let mut layer = base.map(|paint| Timeline::of(reach, paint)).unwrap_or_default();
        if let Some(paint) = base.filter(|paint| paint.phase != ServerPhase::Unattributed) {
            claims.push(Claim { at: reach, paint, by: place });
        }
        if node.span.kind == SpanKind::Client || is_call(self.forest, place) {
            let foreign = self.children(place).iter().filter(|child| self.forest.crosses_clocks(**child, place));
            let inside = union(foreign.filter_map(|child| self.interval(*child)).collect());
            if !inside.is_empty() {
                let margins = Timeline::of(at, ServerPhase::UpstreamEnvelope).outside(inside.into_iter());
                layer = margins.over(&layer);
            }
        }
        let mut laid_layer = Timeline::default();
        for (part, paint) in self.laid_out(place, at, stages, flags) {
            claims.push(Claim { at: part, paint, by: place });
            laid_layer = laid_layer.over(&Timeline::of(part, paint));
        }
        laid_layer.over(&layer)
    }

    /// Where the durations that a span tells of its inside lie. One without a position that a stage's own span tells
    /// better only takes up its room: nothing is counted twice.
    fn laid_out(&self, place: Place, at: Interval, stages: &[Paint], flags: &mut Flags) -> Vec<(Interval, Paint)> {
        let (mut front, mut back) = (at.start, at.end);
        let mut out = Vec::new();
        for laid in &self.forest.node(place).reading.laid {
            let paint = Paint::new(laid.phase, laid.sub);
            let (part, whole) = match laid.anchor {
                Anchor::Start => (take_front(&mut front, back, laid.length), laid.length),
                Anchor::End => (take_back(front, &mut back, laid.length), laid.length),
                Anchor::At(offset) => (inside(at, at.start + offset, laid.length), laid.length),
                Anchor::UntilChild(offset) => {
                    let length = self.until_child(place, at.start + offset, laid.length);
                    (inside(at, at.start + offset, length), length)
                }
            };
            let positioned = matches!(laid.anchor, Anchor::At(_) | Anchor::UntilChild(_));
            if !positioned && stages.iter().any(|stage| tells_same(*stage, paint)) {
                continue;
            }
            flags.set_if(part.length() < whole, Flag::AttributesExceedSpan);
            out.push((part, paint));
        }
        out
    }

    /// From an instant until the first classified span inside begins on the same clock, at most so long.
    fn until_child(&self, place: Place, from: UnixNanos, most: Nanos) -> Nanos {
        let is_stage = |child: &Place| {
            let node = self.forest.node(*child);
            let is_classified = node.reading.phase.is_some() || !node.reading.laid.is_empty() || node.is_engine();
            is_classified && !self.forest.crosses_clocks(*child, place)
        };
        let local = self.children(place).iter().filter(|child| is_stage(child));
        let first = local.filter_map(|child| self.interval(*child)).map(|child| child.start).min();
        first.map_or(most, |first| (first - from).max(Nanos::ZERO).min(most))
    }

    fn holds_attempts(&self, place: Place) -> bool {
        let attempt = |child: &Place| self.forest.node(*child).reading.role == Role::ProxyAttempt;
        self.children(place).iter().any(|child| attempt(child) && !self.forest.crosses_clocks(*child, place))
    }

    fn base_paint(&self, place: Place, flags: &mut Flags) -> Option<Paint> {
        let reading = &self.forest.node(place).reading;
        if self.forest.shown_beside(place) {
            return None;
        }
        if let Some(phase) = reading.phase {
            return Some(Paint::new(phase, reading.sub));
        }
        match reading.role {
            Role::ProxyServer => Some(ServerPhase::Gateway.into()),
            Role::ProxyAttempt if self.forest.is_opaque_attempt(place, |at| self.children(at)) => {
                flags.set(Flag::UpstreamOpaque);
                Some(ServerPhase::Provider.into())
            }
            // An attempt that holds attempts is the proxy's own span around them.
            Role::ProxyAttempt if self.holds_attempts(place) => Some(ServerPhase::Gateway.into()),
            Role::ProxyAttempt => Some(ServerPhase::Unattributed.into()),
            // What an engine's attributes do not report of its inside is unattributed.
            Role::Engine | Role::EngineStage if !reading.laid.is_empty() => Some(ServerPhase::Unattributed.into()),
            _ => None,
        }
    }
}

/// Whether a stage's span tells the duration, or the generation that it is a part of, or a part of it.
fn tells_same(stage: Paint, laid: Paint) -> bool {
    stage.phase == laid.phase && (stage.sub() == laid.sub() || stage.sub().is_none() || laid.sub().is_none())
}

/// So long from an instant, cut to the span.
fn inside(span: Interval, from: UnixNanos, length: Nanos) -> Interval {
    let start = from.max(span.start).min(span.end);
    Interval { start, end: (from + length).max(start).min(span.end) }
}

fn take_front(front: &mut UnixNanos, back: UnixNanos, length: Nanos) -> Interval {
    let end = (*front + length).min(back);
    let part = Interval { start: *front, end };
    *front = end;
    part
}

fn take_back(front: UnixNanos, back: &mut UnixNanos, length: Nanos) -> Interval {
    let start = (*back - length).max(front);
    let part = Interval { start, end: *back };
    *back = start;
    part
}
