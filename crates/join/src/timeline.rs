//! Who owns which stretch of a clock: sorted, disjoint segments, and the two ways of putting them together.

use std::collections::{BTreeMap, VecDeque};

use model::reading::SubPhase;
use model::{Interval, Nanos, ServerPhase, UnixNanos};

/// The owner of a segment. The order is the order of strength in a merge: the smaller one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Paint {
    /// Whose time.
    pub phase: ServerPhase,
    sub: SubStrength,
}

/// Which part of a generation; a known part wins over an unknown one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum SubStrength {
    Decode,
    Prefill,
    Untold,
}

impl Paint {
    /// A phase, and which part of a generation it is.
    pub fn new(phase: ServerPhase, sub: Option<SubPhase>) -> Self {
        let sub = match sub {
            Some(SubPhase::Decode) => SubStrength::Decode,
            Some(SubPhase::Prefill) => SubStrength::Prefill,
            None => SubStrength::Untold,
        };
        Self { phase, sub }
    }

    /// Which part of a generation.
    pub fn sub(self) -> Option<SubPhase> {
        match self.sub {
            SubStrength::Decode => Some(SubPhase::Decode),
            SubStrength::Prefill => Some(SubPhase::Prefill),
            SubStrength::Untold => None,
        }
    }
}

impl From<ServerPhase> for Paint {
    fn from(phase: ServerPhase) -> Self {
        Self::new(phase, None)
    }
}

/// A painted stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub at: Interval,
    pub paint: Paint,
}

/// Disjoint segments by time; between them nothing is painted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    segments: VecDeque<Segment>,
    /// Whether some segment does not touch the one before it.
    gaps: bool,
}

impl Timeline {
    /// One segment; an empty interval paints nothing.
    pub fn of(at: Interval, paint: impl Into<Paint>) -> Self {
        let mut timeline = Self::default();
        timeline.push(at.start, at.end, paint.into());
        timeline
    }

    /// Appends behind all others, growing the last segment where the paint goes on.
    fn push(&mut self, start: UnixNanos, end: UnixNanos, paint: Paint) {
        if start >= end {
            return;
        }
        self.gaps |= self.segments.back().is_some_and(|last| last.at.end < start);
        match self.segments.back_mut() {
            Some(last) if last.at.end == start && last.paint == paint => last.at.end = end,
            _ => self.segments.push_back(Segment { at: Interval { start, end }, paint }),
        }
    }

    /// Puts one before all others, growing the first segment where it has the same paint.
    fn push_before(&mut self, start: UnixNanos, end: UnixNanos, paint: Paint) {
        if start >= end {
            return;
        }
        self.gaps |= self.segments.front().is_some_and(|first| end < first.at.start);
        match self.segments.front_mut() {
            Some(first) if first.at.start == end && first.paint == paint => first.at.start = start,
            _ => self.segments.push_front(Segment { at: Interval { start, end }, paint }),
        }
    }

    /// This one over another: what is painted here hides what lies below.
    #[must_use]
    pub fn over(mut self, below: &Self) -> Self {
        if below.segments.is_empty() {
            return self;
        }
        if let (1, Some(here)) = (below.segments.len(), self.gapless()) {
            // The common case, a child within its parent: a deep chain must not cost the square of its depth.
            let below = below.segments[0];
            self.push_before(below.at.start, below.at.end.min(here.start), below.paint);
            self.push(below.at.start.max(here.end), below.at.end, below.paint);
            return self;
        }
        let mut segments = Vec::from(below.outside(self.segments.iter().map(|segment| segment.at)).segments);
        segments.extend(self.segments);
        segments.sort_by_key(|segment| segment.at.start);
        let mut result = Self::default();
        for segment in segments {
            result.push(segment.at.start, segment.at.end, segment.paint);
        }
        result
    }

    /// From the first instant to the last where there is no gap between them; `None` where there is, or might be.
    fn gapless(&self) -> Option<Interval> {
        let (first, last) = (self.segments.front()?, self.segments.back()?);
        (!self.gaps).then_some(Interval { start: first.at.start, end: last.at.end })
    }

    /// What lies outside of the holes, which come disjoint and by time.
    #[must_use]
    pub fn outside(&self, holes: impl Iterator<Item = Interval>) -> Self {
        let mut result = Self::default();
        let mut holes = holes.peekable();
        for segment in &self.segments {
            let mut start = segment.at.start;
            while let Some(hole) = holes.peek().copied() {
                if hole.start >= segment.at.end {
                    break;
                }
                result.push(start, hole.start, segment.paint);
                start = start.max(hole.end);
                if hole.end > segment.at.end {
                    break;
                }
                holes.next();
            }
            result.push(start, segment.at.end, segment.paint);
        }
        result
    }

    /// Several side by side: at each instant the strongest paint shows.
    #[must_use]
    pub fn merge(mut timelines: Vec<Self>) -> Self {
        timelines.retain(|timeline| !timeline.segments.is_empty());
        if timelines.len() <= 1 {
            return timelines.pop().unwrap_or_default();
        }
        let mut edges: Vec<(UnixNanos, i32, Paint)> = Vec::new();
        for segment in timelines.iter().flat_map(|timeline| &timeline.segments) {
            edges.push((segment.at.start, 1, segment.paint));
            edges.push((segment.at.end, -1, segment.paint));
        }
        edges.sort_unstable_by_key(|(at, ..)| *at);
        let mut open = BTreeMap::<Paint, i32>::new();
        let mut result = Self::default();
        let mut from = edges[0].0;
        for (at, change, paint) in edges {
            if at > from {
                let strongest = open.iter().find(|(_, count)| **count > 0);
                if let Some((strongest, _)) = strongest {
                    result.push(from, at, *strongest);
                }
                from = at;
            }
            *open.entry(paint).or_default() += change;
        }
        result
    }

    /// What lies inside an interval.
    #[must_use]
    pub fn clipped(&self, to: Interval) -> Self {
        let mut result = Self::default();
        for segment in &self.segments {
            result.push(segment.at.start.max(to.start), segment.at.end.min(to.end), segment.paint);
        }
        result
    }

    /// Without the segments of one phase.
    #[must_use]
    pub fn without(&self, phase: ServerPhase) -> Self {
        let mut result = Self::default();
        for segment in self.segments.iter().filter(|segment| segment.paint.phase != phase) {
            result.push(segment.at.start, segment.at.end, segment.paint);
        }
        result
    }

    /// The time that a phase owns.
    pub fn total(&self, phase: ServerPhase) -> Nanos {
        self.segments.iter().filter(|segment| segment.paint.phase == phase).map(|segment| segment.at.length()).sum()
    }

    /// The time that a part of the generation owns.
    pub fn total_sub(&self, sub: SubPhase) -> Nanos {
        self.segments.iter().filter(|segment| segment.paint.sub() == Some(sub)).map(|segment| segment.at.length()).sum()
    }
}

/// The union of intervals: disjoint, by time.
pub fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable_by_key(|interval| interval.start);
    let mut result: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match result.last_mut() {
            Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
            _ => result.push(interval),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(start: i64, end: i64) -> Interval {
        Interval { start: UnixNanos(start), end: UnixNanos(end) }
    }

    fn shown(timeline: &Timeline, instant: i64) -> Option<Paint> {
        let instant = UnixNanos(instant);
        timeline.segments.iter().find(|s| s.at.start <= instant && instant < s.at.end).map(|s| s.paint)
    }

    fn any_timeline() -> impl Strategy<Value = Timeline> {
        proptest::collection::vec((0_i64..60, 0_i64..20, 0_usize..6), 0..8).prop_map(|parts| {
            let mut timeline = Timeline::default();
            for (start, length, phase) in parts {
                timeline = Timeline::of(at(start, start + length), ServerPhase::ALL[phase]).over(&timeline);
            }
            timeline
        })
    }

    fn assert_well_formed(timeline: &Timeline) {
        let segments: Vec<Segment> = timeline.segments.iter().copied().collect();
        for pair in segments.windows(2) {
            assert!(pair[0].at.end <= pair[1].at.start, "overlap in {timeline:?}");
            assert!(pair[0].at.end < pair[1].at.start || pair[0].paint != pair[1].paint, "unjoined in {timeline:?}");
        }
        assert!(segments.iter().all(|segment| segment.at.start < segment.at.end), "empty in {timeline:?}");
        assert_eq!(timeline.gaps, segments.windows(2).any(|pair| pair[0].at.end < pair[1].at.start));
    }

    proptest! {
        #[test]
        fn over_shows_the_upper_where_it_is_painted(upper in any_timeline(), lower in any_timeline()) {
            let both = upper.clone().over(&lower);
            assert_well_formed(&both);
            for instant in -1..90 {
                prop_assert_eq!(shown(&both, instant), shown(&upper, instant).or(shown(&lower, instant)));
            }
        }

        #[test]
        fn merge_shows_the_strongest(parts in proptest::collection::vec(any_timeline(), 0..5)) {
            let merged = Timeline::merge(parts.clone());
            assert_well_formed(&merged);
            for instant in -1..90 {
                let strongest = parts.iter().filter_map(|part| shown(part, instant)).min();
                prop_assert_eq!(shown(&merged, instant), strongest);
            }
        }

        #[test]
        fn clipping_keeps_what_is_inside(whole in any_timeline(), start in 0_i64..40, length in 0_i64..40) {
            let cut = whole.clipped(at(start, start + length));
            assert_well_formed(&cut);
            for instant in -1..90 {
                let inside = instant >= start && instant < start + length;
                prop_assert_eq!(shown(&cut, instant), shown(&whole, instant).filter(|_| inside));
            }
        }

        #[test]
        fn a_union_covers_what_its_parts_cover(parts in proptest::collection::vec((0_i64..60, 0_i64..20), 0..8)) {
            let parts: Vec<Interval> = parts.into_iter().map(|(start, length)| at(start, start + length)).collect();
            let joined = union(parts.clone());
            let covers = |set: &[Interval], t: i64| set.iter().any(|i| i.start.0 <= t && t < i.end.0);
            for instant in -1..90 {
                prop_assert_eq!(covers(&joined, instant), covers(&parts, instant));
            }
        }
    }
}
