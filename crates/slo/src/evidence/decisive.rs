//! The values that decide an objective of a metric, in one order.

use super::super::indicator::Direction;
use super::super::objective::Objective;
use stats::interval::Ranks;
use stats::sample::{Method, Sample};

/// The values of whole answers, and of those that were cut off the values past the threshold.
///
/// Ranks are by goodness here: 1 is the best value, and the first `good` ranks are within the threshold.
pub struct Decisive<'a> {
    whole: &'a Sample,
    cut_off: &'a Sample,
    direction: Direction,
    /// Whole answers within the threshold.
    pub good: u64,
    /// Whole answers past it, and those that were cut off past it.
    pub bad: u64,
    /// Those that were cut off within it.
    pub left_out: u64,
}

impl<'a> Decisive<'a> {
    /// Of the values of whole answers and of those that were cut off.
    pub fn of(objective: &Objective, whole: &'a Sample, cut_off: &'a Sample) -> Self {
        let within = |sample: &Sample| match objective.indicator.direction() {
            Direction::AtMost => sample.count_at_most(objective.threshold),
            Direction::AtLeast => sample.n() - sample.count_below(objective.threshold),
        };
        let (good, left_out) = (within(whole), within(cut_off));
        let bad = whole.n() - good + cut_off.n() - left_out;
        Self { whole, cut_off, direction: objective.indicator.direction(), good, bad, left_out }
    }

    /// How many values decide.
    pub const fn n(&self) -> u64 {
        self.good + self.bad
    }

    /// How they were counted.
    pub fn method(&self) -> Method {
        match (self.whole.method(), self.cut_off.method()) {
            (Method::Exact, Method::Exact) => Method::Exact,
            _ => Method::Digest,
        }
    }

    /// The value of a rank; `None` outside 1 to n.
    ///
    /// Of the first `rank` values some are whole answers' and the rest are cut off: as few whole ones as leave the next
    /// of them behind all of the rest.
    pub fn value_at(&self, rank: u64) -> Option<f64> {
        if !(1..=self.n()).contains(&rank) {
            return None;
        }
        let late = self.cut_off.n() - self.left_out;
        let (mut from, mut to) = (rank.saturating_sub(late), rank.min(self.whole.n()));
        while from < to {
            let middle = from + (to - from) / 2;
            if self.comes_after(self.whole_at(middle + 1), self.cut_off_at(rank - middle)) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        match (self.whole_at(from), self.cut_off_at(rank - from)) {
            (Some(whole), Some(cut_off)) => Some(self.worse(whole, cut_off)),
            (whole, cut_off) => whole.or(cut_off),
        }
    }

    /// How many ranks the value of a rank may be off.
    pub fn rank_error(&self, rank: u64) -> u64 {
        let at = |sample: &Sample, rank: u64| {
            if sample.n() == 0 { 0 } else { sample.rank_error(self.place(sample, rank.clamp(1, sample.n()))) }
        };
        at(self.whole, rank) + at(self.cut_off, self.left_out)
    }

    /// The ranks of an interval, moved outwards by their error. The values at both ends are exact.
    pub fn widened(&self, ranks: Ranks) -> Ranks {
        Ranks {
            lower: ranks.lower.map(|rank| rank.saturating_sub(self.rank_error(rank)).max(1)),
            upper: ranks.upper.map(|rank| (rank + self.rank_error(rank)).min(self.n())),
        }
    }

    /// The smaller and the larger of the values at a better and a worse rank.
    pub fn ends(&self, better: Option<u64>, worse: Option<u64>) -> (Option<f64>, Option<f64>) {
        let at = |rank: Option<u64>| rank.and_then(|rank| self.value_at(rank));
        self.in_order(at(better), at(worse))
    }

    /// What belongs to the better end and to the worse, as what belongs to the lower and to the upper.
    pub fn in_order<T>(&self, better: T, worse: T) -> (T, T) {
        match self.direction {
            Direction::AtMost => (better, worse),
            Direction::AtLeast => (worse, better),
        }
    }

    fn whole_at(&self, rank: u64) -> Option<f64> {
        self.at(self.whole, rank)
    }

    fn cut_off_at(&self, rank: u64) -> Option<f64> {
        if rank == 0 { None } else { self.at(self.cut_off, self.left_out + rank) }
    }

    fn at(&self, sample: &Sample, rank: u64) -> Option<f64> {
        if (1..=sample.n()).contains(&rank) { sample.value_at(self.place(sample, rank)) } else { None }
    }

    /// The rank in ascending order.
    fn place(&self, sample: &Sample, rank: u64) -> u64 {
        match self.direction {
            Direction::AtMost => rank,
            Direction::AtLeast => sample.n() + 1 - rank,
        }
    }

    fn comes_after(&self, whole: Option<f64>, cut_off: Option<f64>) -> bool {
        match (whole, cut_off) {
            (Some(whole), Some(cut_off)) => self.worse(whole, cut_off) == whole,
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    fn worse(&self, one: f64, other: f64) -> f64 {
        match self.direction {
            Direction::AtMost => one.max(other),
            Direction::AtLeast => one.min(other),
        }
    }
}
