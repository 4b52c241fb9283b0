//! What a dry run found.

use crate::alert::Trouble;
use crate::burn::BurnState;
use crate::verdict::{Status, Verdict};
use model::UnixNanos;

/// One alert that would have fired.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// What the alert is about.
    pub trouble: Trouble,
    /// At which evaluation it would have fired.
    pub start: UnixNanos,
    /// At which it would have resolved; `None` where it still fired at the end.
    pub end: Option<UnixNanos>,
    /// The verdict when it fired.
    pub verdict: Verdict,
    /// The burn rates when it fired, of an alert on the budget.
    pub burn: Option<BurnState>,
}

impl Firing {
    /// Whether it fires at a time.
    pub fn is_on(&self, at: UnixNanos) -> bool {
        self.start <= at && self.end.is_none_or(|end| at < end)
    }
}

/// How many evaluations had which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdicts {
    /// It held, with its whole interval.
    pub ok: u64,
    /// It held, though its interval straddled the threshold.
    pub at_risk: u64,
    pub broken: u64,
    /// The evidence was not enough to decide.
    pub no_verdict: u64,
}

impl Verdicts {
    pub(super) fn add(&mut self, status: &Status) {
        match status {
            Status::Ok { at_risk: false } => self.ok += 1,
            Status::Ok { at_risk: true } => self.at_risk += 1,
            Status::Broken => self.broken += 1,
            Status::NoVerdict(_) => self.no_verdict += 1,
        }
    }

    /// The number of evaluations.
    pub const fn all(&self) -> u64 {
        self.ok + self.at_risk + self.broken + self.no_verdict
    }

    /// The part of them without a verdict; `None` without any.
    pub fn no_verdict_share(&self) -> Option<f64> {
        (self.all() > 0).then(|| self.no_verdict as f64 / self.all() as f64)
    }
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replayed {
    /// How often each verdict was given.
    pub verdicts: Verdicts,
    /// The alerts, in the order of their start.
    pub firings: Vec<Firing>,
}
