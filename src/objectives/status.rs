//! How an objective stands, as its status is asked for.

use crate::store::StoredAlert;
use slo::burn::NoMinutes;
use slo::{BudgetState, BurnState, Verdict};

/// How an objective stands.
#[derive(Debug, Clone)]
pub struct ObjectiveStatus {
    /// Over its window that has just settled.
    pub verdict: Verdict,
    /// How its budget burns, or why it has none.
    pub burning: Result<Burning, NoMinutes>,
    /// The alerts of it that fire.
    pub alerts: Vec<StoredAlert>,
}

/// How a budget burns.
#[derive(Debug, Clone, PartialEq)]
pub struct Burning {
    /// Each pair of windows.
    pub windows: Vec<BurnState>,
    /// What is left of the last period.
    pub budget: BudgetState,
}
