//! What is asked of a dry run, and how much it may cost.

use crate::indicator::Indicator;
use crate::objective::Objective;
use model::{Interval, Nanos, UnixNanos};

/// The longest stretch that is replayed: 7 days.
pub const MAX_LENGTH: Nanos = Nanos(7 * 86_400_000_000_000);

/// The most requests that are read for it, those before its start included that its first windows look back to.
pub const MAX_ROWS: u64 = 1_000_000;

/// The most evaluations of one dry run.
pub const MAX_STEPS: u64 = 50_000;

/// What is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRunQuestion {
    pub objective: Objective,
    /// From its first evaluation to its last.
    pub window: Interval,
    /// How far apart they are.
    pub every: Nanos,
    /// When people noticed an incident, to compare the alerts with.
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
    /// More than [`MAX_STEPS`] evaluations.
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
        if self.objective.indicator == Indicator::DroppedIterations {
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
