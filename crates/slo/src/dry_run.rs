//! An objective replayed over requests that are there: how often it would have told somebody, and how early.
//!
//! The rules are those of the evaluator. What differs is hindsight: a request counts at the time of its window even if it
//! came late.

mod history;
mod noticed;
mod replay;
#[cfg(test)]
mod tests;

use super::alert::Trouble;
use super::burn::BurnState;
use super::objective::Objective;
use super::verdict::{Status, Verdict};
use model::{Interval, Nanos, UnixNanos};

pub use history::History;
pub use noticed::{Noticed, noticed};
pub use replay::replay;

/// The longest stretch that is replayed: 7 days.
pub const MAX_LENGTH: Nanos = Nanos(7 * 86_400_000_000_000);

/// The most requests that are read for it, those before its start included that its first windows look back to.
pub const MAX_ROWS: u64 = 1_000_000;

/// The most evaluations.
pub const MAX_STEPS: u64 = 50_000;

/// What is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRunQuestion {
    /// The objective.
    pub objective: Objective,
    /// From its first evaluation to its last.
    pub window: Interval,
    /// How far apart they are.
    pub every: Nanos,
    /// When people noticed.
    pub noticed: Vec<UnixNanos>,
}

/// Why a question is refused before anything is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DryRunRefusal {
    /// The stretch is too long.
    #[error(
        "the stretch is {} h long, more than the 168 h (7 days) that are replayed at once; give a later --from or an \
         earlier --to", .0.0 / 3_600_000_000_000
    )]
    TooLong(Nanos),
    /// Too many evaluations.
    #[error("{0} evaluations are more than the {MAX_STEPS} that are replayed at once; give a longer --every")]
    TooManySteps(u64),
    /// Its events are no requests.
    #[error("dropped iterations are reported by finished runs and not over time: there is nothing to replay")]
    NotOverTime,
}

impl DryRunQuestion {
    /// How many evaluations it takes.
    pub fn steps(&self) -> u64 {
        let (length, every) = (self.window.length().0.max(0), self.every.0.max(1));
        (length / every).unsigned_abs() + 1
    }

    /// Refuses what would cost too much.
    ///
    /// # Errors
    /// All of [`DryRunRefusal`].
    pub fn check(&self) -> Result<(), DryRunRefusal> {
        if self.objective.indicator == super::Indicator::DroppedIterations {
            return Err(DryRunRefusal::NotOverTime);
        }
        if self.window.length() > MAX_LENGTH {
            return Err(DryRunRefusal::TooLong(self.window.length()));
        }
        match self.steps() {
            steps if steps > MAX_STEPS => Err(DryRunRefusal::TooManySteps(steps)),
            _ => Ok(()),
        }
    }

    /// How far the first evaluation looks back.
    pub fn look_back(&self) -> Nanos {
        let burn = self.objective.burn.windows.iter().map(|pair| pair.long.max(pair.short)).max();
        burn.unwrap_or_default().max(self.objective.window)
    }
}

/// One alert that would have been told.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// Of what.
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
    /// It held, surely.
    pub ok: u64,
    /// It held, though its interval straddled the threshold.
    pub at_risk: u64,
    /// It was broken.
    pub broken: u64,
    /// Nobody could tell.
    pub no_verdict: u64,
}

impl Verdicts {
    fn add(&mut self, status: &Status) {
        match status {
            Status::Ok { at_risk: false } => self.ok += 1,
            Status::Ok { at_risk: true } => self.at_risk += 1,
            Status::Broken => self.broken += 1,
            Status::NoVerdict(_) => self.no_verdict += 1,
        }
    }

    /// All evaluations.
    pub const fn all(&self) -> u64 {
        self.ok + self.at_risk + self.broken + self.no_verdict
    }

    /// The part of them at which nobody could tell; `None` without any.
    pub fn no_verdict_share(&self) -> Option<f64> {
        (self.all() > 0).then(|| self.no_verdict as f64 / self.all() as f64)
    }
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replayed {
    /// The verdicts.
    pub verdicts: Verdicts,
    /// The alerts, in the order of their start.
    pub firings: Vec<Firing>,
}
