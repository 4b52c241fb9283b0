//! Whether an objective held over one window, and what decided it.

use std::fmt;

use super::evidence::Evidence;
use super::objective::{Objective, Straddling};
use stats::Quantile;

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gap {
    /// Fewer requests decide than the objective asks for.
    TooFew {
        /// The number of requests that decide.
        n: u64,
        /// How many are asked for.
        min_n: u64,
    },
    /// Less of the client records is matched, or tells a value, than the objective asks for.
    LowCoverage {
        /// The smaller of the two shares; `None` without client records.
        coverage: Option<f64>,
        /// The least coverage that the objective asks for.
        min_coverage: f64,
    },
    /// The window does not hold steady traffic yet, or no longer.
    WindowNotFull {
        /// The part of its tenths with traffic.
        filled: f64,
    },
    /// What is missing could turn the verdict, and the objective requires that it cannot.
    BoundsStraddle,
}

impl Gap {
    /// The name in the API and in labels.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooFew { .. } => "too_few",
            Self::LowCoverage { .. } => "low_coverage",
            Self::WindowNotFull { .. } => "window_not_full",
            Self::BoundsStraddle => "bounds_straddle",
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { n, min_n } => write!(f, "{n} requests decide, and {min_n} are asked for"),
            Self::LowCoverage { coverage: Some(coverage), min_coverage } => {
                let (coverage, min_coverage) = (100.0 * coverage, 100.0 * min_coverage);
                write!(f, "the coverage is {coverage:.1} %, and {min_coverage:.1} % is asked for")
            }
            Self::LowCoverage { coverage: None, .. } => {
                f.write_str("no client record is in the window, so nothing tells the coverage")
            }
            Self::WindowNotFull { filled } => {
                let (filled, steady) = (100.0 * filled, 100.0 * STEADY);
                write!(f, "only {filled:.0} % of the window has traffic, and {steady:.0} % is steady")
            }
            Self::BoundsStraddle => f.write_str("the requests that are missing could turn the verdict"),
        }
    }
}

/// A verdict in a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The objective held.
    Ok {
        /// Whether the interval straddles the threshold, so that it may not have.
        at_risk: bool,
    },
    /// The objective did not hold.
    Broken,
    /// The evidence does not decide, for at least one reason.
    NoVerdict(Vec<Gap>),
}

impl Status {
    /// The name in the API, on the command line and in labels.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ok { .. } => "ok",
            Self::Broken => "broken",
            Self::NoVerdict(_) => "no_verdict",
        }
    }
}

/// A verdict with what decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The decision.
    pub status: Status,
    /// Whether the whole interval lies past the threshold, so that chance alone seldom explains it.
    pub confirmed: bool,
    /// The numbers behind the decision.
    pub evidence: Evidence,
}

/// The least part of the tenths of a live window that must hold traffic.
const STEADY: f64 = 0.8;

impl Verdict {
    /// What an objective's evidence amounts to.
    pub fn of(objective: &Objective, evidence: Evidence) -> Self {
        let gaps = gaps(objective, &evidence);
        let confirmed = evidence.is_past(objective);
        let broken = match objective.straddling {
            Straddling::PointEstimate => evidence.is_broken(objective),
            Straddling::Interval => confirmed,
        };
        let status = if !gaps.is_empty() {
            Status::NoVerdict(gaps)
        } else if broken {
            Status::Broken
        } else {
            Status::Ok { at_risk: !evidence.is_within(objective) }
        };
        Self { confirmed: confirmed && status == Status::Broken, status, evidence }
    }
}

fn gaps(objective: &Objective, evidence: &Evidence) -> Vec<Gap> {
    let mut gaps = Vec::new();
    // From nothing nothing follows, whatever was asked for.
    let min_n = objective.min_n.max(1);
    if evidence.n < min_n {
        gaps.push(Gap::TooFew { n: evidence.n, min_n });
    }
    let (coverage, min_coverage) = (evidence.coverage(), objective.min_coverage);
    if min_coverage > 0.0 && coverage.is_none_or(|coverage| coverage < min_coverage) {
        gaps.push(Gap::LowCoverage { coverage, min_coverage });
    }
    if let Some(filled) = evidence.filled.filter(|filled| *filled < STEADY) {
        gaps.push(Gap::WindowNotFull { filled });
    }
    if objective.require_bounds && !evidence.is_sure(objective) {
        gaps.push(Gap::BoundsStraddle);
    }
    gaps
}

impl Evidence {
    /// Whether the value is past the threshold: fewer requests are good than the target asks for.
    pub fn is_broken(&self, objective: &Objective) -> bool {
        match objective.goal.target() {
            Some(target) => self.tally.good < target.rank(self.n),
            None => self.value.is_some_and(|value| !objective.is_good(value)),
        }
    }

    /// Whether the whole interval is past the threshold. A pooled share has none: it is no estimate from single requests.
    fn is_past(&self, objective: &Objective) -> bool {
        match objective.goal.target() {
            Some(_) => self.ranks.lower.is_some_and(|lower| self.tally.good < lower),
            None => self.is_broken(objective),
        }
    }

    /// Whether the whole interval is within the threshold.
    fn is_within(&self, objective: &Objective) -> bool {
        match objective.goal.target() {
            Some(_) => self.ranks.upper.is_some_and(|upper| self.tally.good >= upper),
            None => !self.is_broken(objective),
        }
    }

    /// Whether the verdict is the same whatever the missing requests were.
    fn is_sure(&self, objective: &Objective) -> bool {
        match objective.goal.target() {
            Some(target) => self.is_surely_ok(target) || self.is_surely_broken(target),
            None => self.missing() == 0,
        }
    }

    /// Even if all of the missing were bad.
    fn is_surely_ok(&self, target: Quantile) -> bool {
        let needed = target.rank(self.n + self.missing());
        self.tally.good.saturating_sub(self.rank_error) >= needed
    }

    /// Even if all of the missing were good.
    fn is_surely_broken(&self, target: Quantile) -> bool {
        let needed = target.rank(self.n + self.missing());
        self.tally.good + self.rank_error + self.missing() < needed
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
