//! Which phase a window's time went to, and which one moved against another window.
//!
//! Percentiles do not add up, so nothing here subtracts one from another. What is compared are means per request over the
//! requests that tell the whole decomposition: of these the parts add up to the whole, and differences of parts to the
//! difference of the wholes.

mod collect;
mod split;

use super::indicator::Indicator;
use super::objective::ObjectiveId;
use model::Metric;
use stats::Quantile;

pub use collect::Collector;
pub use split::{PARTS, Pair, Split, Splits, Unread};

/// The half width of a 95 % interval in standard errors, where many values make a mean nearly normal.
const NORMAL_95: f64 = 1.96;

/// Means per request, which add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    /// How many requests they are of.
    pub n: u64,
    /// The mean of the whole, in nanoseconds.
    pub whole: f64,
    /// Its parts, in the order of a request's way.
    pub parts: [PartMean; PARTS],
}

/// The mean of one part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartMean {
    pub metric: Metric,
    /// Over all requests, in nanoseconds; the unknown counted as none, as the whole counts them.
    pub mean: f64,
    /// The variance of that mean.
    variance: f64,
    /// How many requests tell it.
    pub known: u64,
}

impl Means {
    /// Of some requests; `None` without any.
    pub fn of<'a>(pair: Pair, splits: impl IntoIterator<Item = &'a Split>) -> Option<Self> {
        let mut sums = Sums::default();
        for split in splits {
            sums.add(split);
        }
        sums.means(pair)
    }

    /// The part with the largest mean.
    pub fn largest(&self) -> &PartMean {
        self.parts.iter().fold(&self.parts[0], |largest, part| if part.mean > largest.mean { part } else { largest })
    }
}

#[derive(Default)]
struct Sums {
    n: u64,
    whole: f64,
    parts: [PartSum; PARTS],
}

/// Deviations are summed as they come (Welford, Technometrics 4, 1962): a sum of squares would lose them.
#[derive(Clone, Copy, Default)]
struct PartSum {
    known: u64,
    sum: f64,
    mean: f64,
    deviations: f64,
}

impl Sums {
    fn add(&mut self, split: &Split) {
        self.n += 1;
        self.whole += split.whole;
        for (sum, part) in self.parts.iter_mut().zip(split.parts) {
            sum.known += u64::from(part.is_some());
            let time = part.unwrap_or(0.0);
            sum.sum += time;
            let off = time - sum.mean;
            sum.mean += off / self.n as f64;
            sum.deviations += off * (time - sum.mean);
        }
    }

    fn means(&self, pair: Pair) -> Option<Means> {
        if self.n == 0 {
            return None;
        }
        let n = self.n as f64;
        let variance = |sum: &PartSum| sum.deviations / (n - 1.0).max(1.0) / n;
        let metrics = pair.parts();
        let parts = std::array::from_fn(|at| {
            let sum = &self.parts[at];
            PartMean { metric: metrics[at], mean: sum.sum / n, variance: variance(sum), known: sum.known }
        });
        Some(Means { n: self.n, whole: self.whole / n, parts })
    }
}

/// How far one part moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    pub metric: Metric,
    /// Its mean before, in nanoseconds.
    pub before: f64,
    /// Its mean now, in nanoseconds.
    pub now: f64,
    /// Half the width of the 95 % interval of the difference, for independent requests.
    pub give_or_take: f64,
}

impl Moved {
    /// Now less before, in nanoseconds: above 0 where it grew.
    pub const fn by(&self) -> f64 {
        self.now - self.before
    }

    /// Whether chance alone seldom explains it.
    pub fn is_clear(&self) -> bool {
        self.by().abs() > self.give_or_take
    }
}

/// The parts by how far they moved, the farthest first.
pub fn moved(before: &Means, now: &Means) -> Vec<Moved> {
    let differences = before.parts.iter().zip(&now.parts).map(|(before, now)| Moved {
        metric: now.metric,
        before: before.mean,
        now: now.mean,
        give_or_take: NORMAL_95 * (before.variance + now.variance).sqrt(),
    });
    let mut moved: Vec<Moved> = differences.collect();
    moved.sort_by(|one, other| other.by().abs().total_cmp(&one.by().abs()));
    moved
}

/// The slow requests of a window beside the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// The 0.95-quantile of the whole, in nanoseconds: the slow ones lie past it.
    pub past: f64,
    /// The means of the slow requests.
    pub slow: Means,
    /// The means of the others.
    pub rest: Means,
}

impl Slow {
    /// Of some requests; `None` where none lies past the quantile.
    pub fn of(pair: Pair, splits: &[Split]) -> Option<Self> {
        let mut wholes: Vec<f64> = splits.iter().map(|split| split.whole).collect();
        let rank = usize::try_from(Quantile::P95.rank(wholes.len() as u64).checked_sub(1)?).ok()?;
        let (_, past, _) = wholes.select_nth_unstable_by(rank, f64::total_cmp);
        let past = *past;
        let slow = Means::of(pair, splits.iter().filter(|split| split.whole > past))?;
        let rest = Means::of(pair, splits.iter().filter(|split| split.whole <= past))?;
        Some(Self { past, slow, rest })
    }
}

/// A broken objective and where the time of the requests past its threshold went.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    pub objective: ObjectiveId,
    /// What it limits: the phase that broke.
    pub indicator: Indicator,
    /// The means of the requests past its threshold; `None` where none of them tells its decomposition.
    pub means: Option<Means>,
}

/// What a window is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The run, where it is one.
    pub run: Option<String>,
    /// The requests of the baseline.
    pub splits: Splits,
}

/// Where the time of a window went, for objectives with the same conditions and the same pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The objectives that are explained together.
    pub objectives: Vec<ObjectiveId>,
    /// The decomposition that all of them look at.
    pub pair: Pair,
    /// Those that are broken, in their order.
    pub broken: Vec<Past>,
    /// The requests of the window.
    pub now: Splits,
    /// What they are compared with; `None` where there is nothing.
    pub baseline: Option<Baseline>,
}

#[cfg(test)]
mod tests;
