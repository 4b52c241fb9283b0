//! What a window says about an objective.

mod counted;
mod decisive;
mod question;
mod readings;
mod scoped;

use super::indicator::Indicator;
use super::objective::Objective;
use super::tally::Tally;
use model::Interval;
use readings::Readings;
use scoped::Scoped;
use stats::Contents;

pub use counted::{Evidence, smaller};
pub use question::question;

impl Evidence {
    /// From what a window holds.
    pub fn of(objective: &Objective, window: Interval, contents: &Contents, filled: Option<f64>) -> Self {
        let scope = Scoped::of(objective, window, contents);
        let start = |tally| Self { unplaced: scope.unplaced, ..Self::of_tally(window, tally) };
        let evidence = match objective.indicator {
            Indicator::Metric(metric) => Readings::of(objective, metric, contents).evidence(objective, start),
            Indicator::ResultShare(_) | Indicator::JoinCoverage => {
                start(readings::tally_of_counts(objective, contents)).with_share(objective)
            }
            Indicator::UnattributedShare => readings::pooled(objective, contents, start),
            Indicator::DroppedIterations => start(Tally::default()),
        };
        Self {
            client_records: scope.client_records,
            pending: scope.pending,
            join_coverage: scope.join_coverage,
            not_filtered_by: scope.not_filtered_by,
            filled,
            ..evidence
        }
    }
}
