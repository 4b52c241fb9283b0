//! An objective replayed over requests that are there: how often it would have alerted, and how early.
//!
//! The rules are those of the evaluator. What differs is hindsight: a request counts at the time of its window even if it
//! came late.

mod history;
mod noticed;
mod question;
mod replay;
mod replayed;
#[cfg(test)]
mod tests;

pub use history::History;
pub use noticed::{Noticed, noticed};
pub use question::{DryRunQuestion, DryRunRefusal, MAX_LENGTH, MAX_ROWS, MAX_STEPS};
pub use replay::replay;
pub use replayed::{Firing, Replayed, Verdicts};
