//! What must be read to judge an objective.

use std::collections::BTreeSet;

use crate::indicator::Indicator;
use crate::objective::{ColdStarts, Objective};
use crate::outcome::classes;
use model::{Dimension, Interval, Selection};
use stats::Question;
use stats::scope::CLIENTS_OWN;

/// What must be read of a window, so that [`Evidence::of`](super::Evidence::of) can tell.
pub fn question(objective: &Objective, window: Interval) -> Question {
    let mut filters = objective.conditions.labels.clone();
    if objective.conditions.cold_starts == ColdStarts::Only {
        filters.insert(Dimension::ColdStart, BTreeSet::from(["true".to_owned()]));
    }
    if objective.indicator == Indicator::JoinCoverage {
        // Every client decides for itself which of the others it tells.
        filters.retain(|label, _| CLIENTS_OWN.contains(label));
    }
    let selection = Selection { window, filters, results: classes(objective.indicator) };
    Question { selection, group_by: Vec::new(), quantiles: Vec::new() }
}
