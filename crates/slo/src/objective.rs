//! An objective: what must hold, for which requests, and what follows where it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::indicator::{Direction, Indicator};
use model::{Dimension, Nanos};
use stats::Quantile;

/// The name of an objective, unique in a database: lower-case letters, digits, `-`, `_` and `.`, at most 100.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectiveId(String);

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an objective's name: give 1 to 100 lower-case letters, digits, `-`, `_` or `.`, a letter first")]
pub struct BadObjectiveId(String);

impl ObjectiveId {
    /// The longest name, in bytes.
    pub const MAX_LENGTH: usize = 100;

    /// Checks a name.
    ///
    /// # Errors
    /// [`BadObjectiveId`].
    pub fn new(name: &str) -> Result<Self, BadObjectiveId> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let starts_well = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        if starts_well && name.len() <= Self::MAX_LENGTH && name.bytes().all(allowed) {
            Ok(Self(name.to_owned()))
        } else {
            Err(BadObjectiveId(name.chars().take(Self::MAX_LENGTH).collect()))
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a goal is meant and shown. Whatever its form, what decides is how many requests are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Goal {
    /// The quantile of a metric is within the threshold: at least a share of `target` of the requests is good.
    Quantile { target: Quantile },
    /// At least a share of `target` of the requests is within the threshold.
    Ratio {
        /// The share.
        target: Quantile,
    },
    /// The threshold is itself the share of requests: of the bad ones at most, or of the good ones at least.
    Share {
        /// The least share of good ones, from the threshold.
        target: Quantile,
    },
    /// A share of time: it has no good and bad requests, so no burn rate and no interval.
    Pooled,
}

impl Goal {
    /// The least share of good requests; `None` where there are none.
    pub const fn target(self) -> Option<Quantile> {
        match self {
            Self::Quantile { target } | Self::Ratio { target } | Self::Share { target } => Some(target),
            Self::Pooled => None,
        }
    }
}

/// Which requests count by whether they loaded the model first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ColdStarts {
    /// Without those known to have loaded it.
    #[default]
    Excluded,
    /// Cold starts count as the others do.
    Included,
    /// Only those known to have loaded it.
    Only,
}

/// Which requests an objective is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// For each label the values of which a request must have one. Never holds `cold_start`.
    pub labels: BTreeMap<Dimension, BTreeSet<String>>,
    /// Whether requests that loaded the model first count.
    pub cold_starts: ColdStarts,
}

/// What decides where the interval of a value straddles the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Straddling {
    /// The point estimate: over the threshold is `broken`.
    #[default]
    PointEstimate,
    /// The interval: as long as it straddles the threshold the verdict is `ok`, at risk.
    Interval,
}

/// A pair of windows over which a budget may burn too fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurnWindow {
    /// How many times faster than even over the budget period.
    pub factor: f64,
    /// The window that shows that it matters.
    pub long: Nanos,
    /// The window that shows that it goes on.
    pub short: Nanos,
}

/// When a budget burns too fast.
#[derive(Debug, Clone, PartialEq)]
pub struct Burn {
    /// The pairs of windows, fastest first; empty where none is wanted.
    pub windows: Vec<BurnWindow>,
    /// The least number of requests that decide in the long window.
    pub min_traffic: u64,
    /// The least number of bad ones among them.
    pub min_bad: u64,
}

impl Burn {
    /// The period over which a budget is spent evenly: 30 days.
    pub const PERIOD: Nanos = Nanos(30 * 86_400_000_000_000);
}

/// Which evidence an alert of a broken verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Confirm {
    /// The whole interval is past the threshold, so that chance alone seldom fires.
    #[default]
    Interval,
    /// A broken verdict fires whatever its interval.
    Verdict,
}

/// When an alert fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alerting {
    /// What a broken verdict needs to fire.
    pub confirm: Confirm,
    /// How long there may be no verdict, though there is traffic, before an alert fires; `None` for never.
    pub no_verdict_after: Option<Nanos>,
    /// How long a source that spoke may be silent before an alert fires; `None` for never.
    pub silent_after: Option<Nanos>,
}

/// What must hold of which requests, and what follows where it does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// Unique in a database; a part of a budget is named after its whole.
    pub id: ObjectiveId,
    /// Free text, shown beside the verdict.
    pub description: Option<String>,
    /// Whom an alert is for.
    pub owner: Option<String>,
    /// The budget of which it is the whole or a part.
    pub budget: Option<ObjectiveId>,
    /// The quantity that is limited.
    pub indicator: Indicator,
    /// The share of requests that must be good, and in which form it was given.
    pub goal: Goal,
    /// The limit, in the unit in which the indicator is stored: nanoseconds, tokens a second, or a share.
    pub threshold: f64,
    /// The requests that count.
    pub conditions: Conditions,
    /// The length of the window of a verdict.
    pub window: Nanos,
    /// The least number of requests that decide.
    pub min_n: u64,
    /// The least part of the client records that must be matched and tell a value.
    pub min_coverage: f64,
    /// Whether the worst case of what is missing must agree.
    pub require_bounds: bool,
    /// What decides while the interval straddles the threshold.
    pub straddling: Straddling,
    /// When its budget burns too fast.
    pub burn: Burn,
    /// When its alerts fire.
    pub alerting: Alerting,
}

impl Objective {
    /// Whether a value, in the stored unit, is within the threshold. The threshold itself is.
    pub fn is_good(&self, value: f64) -> bool {
        match self.indicator.direction() {
            Direction::AtMost => value <= self.threshold,
            Direction::AtLeast => value >= self.threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_labels_and_paths() {
        for name in ["queue-p95", "a", "m-7b.ttft_p95"] {
            assert_eq!(ObjectiveId::new(name).expect("a name").as_str(), name);
        }
        for name in ["", "Queue", "1st", "a b", "a/b", "ü", &"a".repeat(101)] {
            assert!(ObjectiveId::new(name).is_err(), "{name}");
        }
    }
}
