//! Objectives: what was promised, whether it holds, and who is told when it does not.
//!
//! An [`Objective`] sorts requests into [`Outcome`]s. Their [`Tally`] decides a verdict and burns a budget; alerts follow
//! from both. All of that is pure: windows, counts and the time of day are arguments.

pub mod burn;
pub mod document;
pub mod gate;
pub mod indicator;
pub mod objective;
pub mod tally;
pub mod verdict;

pub use burn::{BudgetState, BurnState, Part};
pub use indicator::Indicator;
pub use objective::{Objective, ObjectiveId};
pub use tally::{Outcome, Tally};
pub use verdict::{Evidence, Gap, Status, Verdict};
