//! Evidence from counts, and the share of good or bad events in it.

use crate::indicator::Direction;
use crate::objective::{Goal, Objective};
use crate::tally::Tally;
use model::{Dimension, Interval};
use stats::interval::Ranks;
use stats::sample::Method;
use stats::summary::{Absence, Ends};
use stats::{Quantile, interval};

/// What a window says about an objective. Values are in the unit in which the indicator is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The window that was read.
    pub window: Interval,
    /// How many requests the value rests on.
    pub n: u64,
    /// The requests by their outcome; exact, unless `method` says that they are from digests. Of a pooled goal only those
    /// are here whose part is missing.
    pub tally: Tally,
    /// Client records that may be among them or not: no spans came that would tell a label of the conditions.
    pub unplaced: u64,
    /// Requests that are not settled, in no other count.
    pub pending: u64,
    /// Client records that are settled, among the requests that the objective is about.
    pub client_records: u64,
    /// How many of these were matched, as a share; `None` without any. Labels that only servers tell do not filter it.
    pub join_coverage: Option<f64>,
    /// The labels of the conditions that do not filter the join coverage.
    pub not_filtered_by: Vec<Dimension>,
    /// The part of the client records that tells a value; `None` without any.
    pub phase_coverage: Option<f64>,
    /// The part of the window's tenths in which there is traffic; `None` where the window is whole by definition, as that
    /// of a finished run.
    pub filled: Option<f64>,
    /// The quantile, or the share of a ratio or a share; `None` where nothing tells it.
    pub value: Option<f64>,
    /// Its 95 % interval.
    pub interval: Ends,
    /// The ranks of its ends by goodness, the best request being 1, widened by their error.
    pub ranks: Ranks,
    /// The probability with which such an interval encloses the truth, if requests are independent.
    pub interval_coverage: Option<f64>,
    /// How far the missing could move the value.
    pub bounds: Ends,
    /// How many requests the count of good ones may be off.
    pub rank_error: u64,
    /// How the value was found.
    pub method: Method,
}

impl Evidence {
    /// From exact counts of events that are not client records, such as iterations of finished runs.
    pub fn counted(objective: &Objective, window: Interval, tally: Tally) -> Self {
        Self::of_tally(window, tally).with_share(objective)
    }

    /// With the counts of requests and nothing else.
    pub fn of_tally(window: Interval, tally: Tally) -> Self {
        Self {
            window,
            n: tally.n(),
            tally,
            unplaced: 0,
            pending: 0,
            client_records: 0,
            join_coverage: None,
            not_filtered_by: Vec::new(),
            phase_coverage: tally.coverage(),
            filled: None,
            value: None,
            interval: NO_VALUES,
            ranks: Ranks { lower: None, upper: None },
            interval_coverage: None,
            bounds: NO_VALUES,
            rank_error: 0,
            method: Method::Exact,
        }
    }

    /// The requests that could have been among those that decide, and are not.
    pub const fn missing(&self) -> u64 {
        self.tally.missing + self.unplaced
    }

    /// The smaller of the two coverages; `None` where neither is known.
    pub fn coverage(&self) -> Option<f64> {
        smaller(self.join_coverage, self.phase_coverage)
    }

    /// With the share of good events, all of them counted exactly.
    pub(super) fn with_share(mut self, objective: &Objective) -> Self {
        if let Some(target) = objective.goal.target() {
            self.ranks = interval::ranks(self.n, target);
            self.add_share(objective, target);
        }
        self
    }

    /// The share of good requests, or of bad ones, with its exact interval, the ends of which are as far widened as the
    /// ranks are, and its worst cases.
    pub(super) fn add_share(&mut self, objective: &Objective, target: Quantile) {
        let (n, good, missing) = (self.n, self.tally.good, self.missing());
        let ranks = interval::ranks(n, target);
        let off = |exact: Option<u64>, widened: Option<u64>| match (exact, widened) {
            (Some(exact), Some(widened)) => exact.abs_diff(widened),
            _ => self.rank_error,
        };
        let fewest = good.saturating_sub(off(ranks.upper, self.ranks.upper));
        let most = (good + off(ranks.lower, self.ranks.lower)).min(n);
        let shown = Shown::of(objective);
        self.value = match shown {
            Shown::Good => share_of(good, n),
            Shown::Bad => share_of(self.tally.bad, n),
        };
        if let (Some((lower, _)), Some((_, upper))) = (interval::share(fewest, n), interval::share(most, n)) {
            self.interval = shown.ends(lower, upper);
            self.interval_coverage = Some(interval::coverage(n, target));
        }
        let [fewest, most] = [good.saturating_sub(self.rank_error), (good + self.rank_error).min(n) + missing];
        if let (Some(lower), Some(upper)) = (share_of(fewest, n + missing), share_of(most, n + missing)) {
            self.bounds = shown.ends(lower, upper);
        }
    }
}

/// The smaller of two coverages: the one that an objective's minimum is compared with. One that is not known does not
/// count.
pub fn smaller(join: Option<f64>, phase: Option<f64>) -> Option<f64> {
    match (join, phase) {
        (Some(join), Some(phase)) => Some(join.min(phase)),
        (join, phase) => join.or(phase),
    }
}

/// Which share is shown.
#[derive(Clone, Copy)]
enum Shown {
    Good,
    Bad,
}

impl Shown {
    fn of(objective: &Objective) -> Self {
        let limits_bad = matches!(objective.goal, Goal::Share { .. });
        if limits_bad && objective.indicator.direction() == Direction::AtMost { Self::Bad } else { Self::Good }
    }

    fn ends(self, lower: f64, upper: f64) -> Ends {
        let (lower, upper) = match self {
            Self::Good => (lower, upper),
            Self::Bad => (1.0 - upper, 1.0 - lower),
        };
        Ends { lower: Some(lower), upper: Some(upper), absence: None }
    }
}

const NO_VALUES: Ends = Ends { lower: None, upper: None, absence: Some(Absence::NoValues) };

pub(super) fn share_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
