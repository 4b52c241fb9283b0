//! How fast a budget is spent: several windows at several rates.
//!
//! An objective with the target q allows a share of 1 − q to be bad. A burn rate says how many times that share it is,
//! so that at a rate of 1 the budget lasts exactly its period. A pair of windows fires when both burn at its factor: the
//! long one shows that it matters, the short one that it goes on (Google SRE Workbook, chapter 5, "Multiwindow,
//! Multi-Burn-Rate Alerts").

use super::indicator::Indicator;
use super::objective::{Burn, BurnWindow, Objective};
use super::tally::Tally;
use model::{Interval, Nanos};
use stats::Quantile;

/// The requests of a window, as far back as they are counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The window that was asked for, in whole minutes.
    pub window: Interval,
    /// The part of it that is there: it begins with the first request ever counted, or where counting begins.
    pub there: Interval,
    /// The requests in that part.
    pub tally: Tally,
}

impl Part {
    /// Of a window of which nothing is there.
    pub fn nothing(window: &Interval) -> Self {
        let there = Interval { start: window.end, end: window.end };
        Self { window: *window, there, tally: Tally::default() }
    }

    /// How much of the window is there, as a share.
    pub fn filled(&self) -> f64 {
        let whole = self.window.length().0;
        if whole == 0 { 0.0 } else { self.there.length().0 as f64 / whole as f64 }
    }
}

/// What one pair of windows says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurnState {
    /// How many times faster than even over the period both windows have to burn.
    pub factor: f64,
    /// The length of the long window.
    pub long: Nanos,
    /// The length of the short window.
    pub short: Nanos,
    /// The burn rate of the part of the long window that is there; `None` where nothing in it decides.
    pub long_rate: Option<f64>,
    /// The burn rate of the part of the short window that is there; `None` where nothing in it decides.
    pub short_rate: Option<f64>,
    /// How much of the long window is there, as a share.
    pub filled_long: f64,
    /// How much of the short window is there, as a share.
    pub filled_short: f64,
    /// Requests that decide in the long window.
    pub n: u64,
    /// The bad requests among them.
    pub bad: u64,
    /// Whether both burn too fast, on enough requests.
    pub fires: bool,
}

impl BurnState {
    /// Of one pair of windows of an objective with this `target`.
    ///
    /// The rates are those of what is there: a share needs no scaling for what is not. But until the part of the long
    /// window is as long as the short one the two are the same requests, and nothing shows that it matters.
    pub fn of(pair: &BurnWindow, burn: &Burn, target: Quantile, long: &Part, short: &Part) -> Self {
        let rate = |tally: &Tally| target.times_the_rest(tally.bad, tally.n());
        let (long_rate, short_rate) = (rate(&long.tally), rate(&short.tally));
        let too_fast = |rate: Option<f64>| rate.is_some_and(|rate| rate >= pair.factor);
        let enough = long.tally.n() >= burn.min_traffic && long.tally.bad >= burn.min_bad;
        let matters = long.there.length() >= pair.short;
        Self {
            factor: pair.factor,
            long: pair.long,
            short: pair.short,
            long_rate,
            short_rate,
            filled_long: long.filled(),
            filled_short: short.filled(),
            n: long.tally.n(),
            bad: long.tally.bad,
            fires: matters && enough && too_fast(long_rate) && too_fast(short_rate),
        }
    }
}

/// What is left of the budget of the last period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetState {
    /// The period, and what of it is there.
    pub part: Part,
    /// Requests that may be bad among those that decide; not rounded.
    pub allowed: f64,
    /// The share of it that is spent: above 1 where more are bad than may be; `None` where nothing decides.
    pub spent: Option<f64>,
    /// The share that is left, negative where it is overspent; `None` where nothing decides.
    pub left: Option<f64>,
}

impl BudgetState {
    /// Of an objective with this `target`, from the requests of its period that are there.
    pub fn of(target: Quantile, part: Part) -> Self {
        let spent = target.times_the_rest(part.tally.bad, part.tally.n());
        let allowed = part.tally.n() as f64 * target.rest();
        Self { part, allowed, spent, left: spent.map(|spent| 1.0 - spent) }
    }
}

/// Why the requests of an objective are not counted by minute, so that nothing tells a burn rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMinutes {
    /// Its goal is a share of time, which has no good and bad requests.
    #[error("a share of time has no good and bad requests: give a `quantile` or a `ratio` to have a budget")]
    Pooled,
    /// It counts iterations of finished runs, which have no minute.
    #[error("dropped iterations are those of a finished run and have no time of their own: leave `burn` out")]
    DroppedIterations,
}

/// The target of an objective whose requests are counted by minute.
///
/// # Errors
/// [`NoMinutes`] where there is nothing to count.
pub fn counted_target(objective: &Objective) -> Result<Quantile, NoMinutes> {
    if objective.indicator == Indicator::DroppedIterations {
        return Err(NoMinutes::DroppedIterations);
    }
    objective.goal.target().ok_or(NoMinutes::Pooled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::UnixNanos;

    const MINUTE: i64 = 60_000_000_000;
    const FAST: BurnWindow = BurnWindow { factor: 14.4, long: Nanos(60 * MINUTE), short: Nanos(5 * MINUTE) };

    fn burn() -> Burn {
        Burn { windows: vec![FAST], min_traffic: 50, min_bad: 5 }
    }

    /// The last `there` of `minutes`, in which `bad` of `n` are bad.
    fn part(minutes: i64, there: i64, bad: u64, n: u64) -> Part {
        let last = |minutes: i64| Interval { start: UnixNanos(-minutes * MINUTE), end: UnixNanos(0) };
        Part { window: last(minutes), there: last(there), tally: Tally { good: n - bad, bad, ..Tally::default() } }
    }

    fn fires(long: &Part, short: &Part) -> bool {
        BurnState::of(&FAST, &burn(), Quantile::P99, long, short).fires
    }

    #[test]
    fn both_windows_must_burn_at_the_factor_itself_or_faster() {
        let (long, short) = (part(60, 60, 144, 1000), part(5, 5, 12, 83));
        let state = BurnState::of(&FAST, &burn(), Quantile::P99, &long, &short);
        assert_eq!((state.long_rate, state.n, state.bad, state.fires), (Some(14.4), 1000, 144, true));
        assert!(!fires(&part(60, 60, 143, 1000), &short), "the long window is below the factor");
        assert!(!fires(&long, &part(5, 5, 11, 83)), "the short window is below the factor");
        assert!(!fires(&long, &part(5, 5, 0, 0)), "it may be over: nothing tells that it goes on");
    }

    #[test]
    fn little_traffic_and_few_bad_ones_do_not_fire() {
        let short = part(5, 5, 2, 2);
        assert!(fires(&part(60, 60, 8, 50), &short));
        assert!(!fires(&part(60, 60, 8, 49), &short), "49 requests");
        assert!(!fires(&part(60, 60, 4, 25), &short), "4 bad ones");
        let many_allowed = Burn { min_traffic: 25, ..burn() };
        let four = BurnState::of(&FAST, &many_allowed, Quantile::P99, &part(60, 60, 4, 25), &short);
        assert!(!four.fires, "4 bad ones are too few even where 25 requests are enough");
    }

    #[test]
    fn a_window_that_is_not_full_is_judged_by_what_is_there_and_says_so() {
        let short = part(5, 5, 10, 50);
        let state = BurnState::of(&FAST, &burn(), Quantile::P99, &part(60, 15, 30, 150), &short);
        assert_eq!((state.filled_long, state.filled_short, state.fires), (0.25, 1.0, true));
        assert_eq!(state.long_rate, Some(20.0));
        assert!(!fires(&part(60, 4, 10, 50), &part(5, 4, 10, 50)), "both are the same four minutes");
        let nothing = BurnState::of(&FAST, &burn(), Quantile::P99, &part(60, 0, 0, 0), &part(5, 0, 0, 0));
        assert_eq!((nothing.filled_long, nothing.long_rate, nothing.fires), (0.0, None, false));
    }

    #[test]
    fn a_budget_may_be_overspent() {
        let half = BudgetState::of(Quantile::P99, part(10, 5, 5, 1000));
        assert_eq!((half.spent, half.left, half.allowed), (Some(0.5), Some(0.5), 10.0));
        assert_eq!(half.part.filled(), 0.5);
        let over = BudgetState::of(Quantile::P99, part(10, 10, 30, 1000));
        assert_eq!((over.spent, over.left), (Some(3.0), Some(-2.0)));
        assert_eq!(BudgetState::of(Quantile::P99, part(10, 0, 0, 0)).spent, None);
    }
}
