//! Objectives: what was promised, whether it holds, and who is alerted when it does not.
//!
//! An [`Objective`] sorts requests into [`Outcome`]s. Their [`Tally`] decides a verdict and burns a budget; alerts follow
//! from both. All of that is pure: windows, counts and the time of day are arguments.

pub mod alert;
pub mod burn;
pub mod document;
pub mod dry_run;
pub mod evidence;
pub mod explain;
#[cfg(test)]
mod false_alerts;
/// Objectives and verdicts for tests of other packages.
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod gate;
pub mod indicator;
pub mod live;
pub mod objective;
pub mod outcome;
pub mod tally;
pub mod verdict;

pub use burn::{BudgetState, BurnState, Part};
pub use evidence::Evidence;
pub use indicator::Indicator;
pub use objective::{Objective, ObjectiveId};
pub use outcome::outcome;
pub use tally::{Outcome, Tally};
pub use verdict::{Gap, Status, Verdict};
