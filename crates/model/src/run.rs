//! A run of a load generator: how it was set up, and what came of its plan.

use serde_json::Value;

use super::time::UnixNanos;

/// A run, by the name that its records carry as the label `run`.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// How the generator was set up, a JSON object; `None` where that was never told.
    pub configuration: Option<Value>,
    /// When that was told last.
    pub configured_at: Option<UnixNanos>,
    /// How it ended; `None` until that is told.
    pub end: Option<RunEnd>,
}

/// How a run ended. What the generator did not tell is unknown, not zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEnd {
    pub finished_at: UnixNanos,
    pub planned_iterations: Option<u64>,
    /// Those of them that it did not start, since no worker was free.
    pub dropped_iterations: Option<u64>,
    /// Iterations a second that it planned.
    pub planned_rate: Option<f64>,
    /// Iterations a second that it reached.
    pub real_rate: Option<f64>,
}

/// The iterations of finished runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Iterations {
    /// Runs that told what they planned and what they dropped.
    pub runs: u64,
    /// Runs that did not, so that they count nowhere.
    pub untold: u64,
    /// Iterations that were started, planned less dropped.
    pub started: u64,
    /// Iterations that were not.
    pub dropped: u64,
}
