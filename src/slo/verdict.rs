//! Whether an objective held over one window, and what decided it.

use super::tally::Tally;
use crate::aggregate::sample::Method;
use crate::aggregate::summary::Ends;
use crate::model::Interval;

/// What a window says about an objective. Values are in the unit in which the indicator is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The window that was read.
    pub window: Interval,
    /// The requests by their outcome; exact, unless `method` says that they are from digests. Empty for a pooled goal.
    pub tally: Tally,
    /// Client records that are settled, among the requests that the objective is about.
    pub client_records: u64,
    /// How many of these were matched, as a share; `None` without any.
    pub join_coverage: Option<f64>,
    /// The part of the client records that tells a value; `None` without any.
    pub phase_coverage: Option<f64>,
    /// The part of the window's tenths in which there is traffic; `None` where the window is whole by definition, as that
    /// of a finished run.
    pub filled: Option<f64>,
    /// The quantile, or the share; `None` where nothing tells it.
    pub value: Option<f64>,
    /// Its 95 % interval.
    pub interval: Ends,
    /// How far the missing could move it.
    pub bounds: Ends,
    /// How the value was found.
    pub method: Method,
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gap {
    /// Fewer requests decide than the objective asks for.
    TooFew {
        /// How many do.
        n: u64,
        /// How many are asked for.
        min_n: u64,
    },
    /// Less of the client records is matched, or tells a value, than the objective asks for.
    LowCoverage {
        /// The smaller of the two shares; `None` without client records.
        coverage: Option<f64>,
        /// What is asked for.
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

/// A verdict in a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The objective held.
    Ok {
        /// Whether the interval straddles the threshold, so that it may not have.
        at_risk: bool,
    },
    /// It did not.
    Broken,
    /// Nobody can tell, for at least one reason.
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
    /// In a word.
    pub status: Status,
    /// Whether the whole interval lies past the threshold, so that chance alone seldom explains it.
    pub confirmed: bool,
    /// The numbers.
    pub evidence: Evidence,
}
