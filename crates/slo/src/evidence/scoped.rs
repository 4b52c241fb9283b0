//! How far the numbers of a window speak for all of its client records.

use std::collections::BTreeSet;

use super::super::indicator::Indicator;
use super::super::objective::{ColdStarts, Objective};
use super::super::outcome::admits;
use super::question::question;
use model::{Dimension, Interval, Labels, ResultClass, State};
use stats::Contents;
use stats::cell::CellKey;
use stats::coverage::Tally;
use stats::scope::{Scope, Tellers};

/// Coverage of an objective's conditions and classes.
pub struct Scoped {
    /// Settled client records that pass every condition.
    pub client_records: u64,
    /// Those that lack a label, so that they may pass or not.
    pub unplaced: u64,
    /// Requests that are not settled.
    pub pending: u64,
    /// The share of client records that is matched.
    pub join_coverage: Option<f64>,
    /// Labels that do not filter it.
    pub not_filtered_by: Vec<Dimension>,
}

impl Scoped {
    /// Of a window's contents.
    pub fn of(objective: &Objective, window: Interval, contents: &Contents) -> Self {
        let question = question(objective, window);
        let scope = Scope::of(&question.selection);
        let tellers = Tellers::of(&contents.dictionary, &scope);
        let (mut coverage, mut client_records, mut unplaced) = (Tally::default(), 0, 0);
        for (key, cell) in &contents.cells {
            let Some(labels) = contents.dictionary.get(&key.labels) else { continue };
            let records = key.client_records(&cell.counts);
            let admitted = admits(objective, labels) && is_of_class(key, &question.selection.results);
            if admitted {
                client_records += records;
            }
            let covered = match objective.indicator {
                Indicator::JoinCoverage => admitted,
                _ => scope.covers(key, labels, &tellers) && is_warm_enough(objective, labels),
            };
            if covered {
                coverage.add(key, &cell.counts);
            }
            if covered && !admitted && may_pass(objective, key, labels) {
                unplaced += records;
            }
        }
        Self {
            client_records,
            unplaced,
            pending: coverage.pending(),
            join_coverage: coverage.join_coverage(),
            not_filtered_by: scope.not_filtered_by(&tellers),
        }
    }
}

/// A record whose class is unknown may be of any.
fn is_of_class(key: &CellKey, classes: &BTreeSet<ResultClass>) -> bool {
    key.result.is_none_or(|class| classes.contains(&class))
}

/// Cold starts that only servers tell do not filter: those that never got to tell would stay behind.
fn is_warm_enough(objective: &Objective, labels: &Labels) -> bool {
    objective.conditions.cold_starts != ColdStarts::Excluded || labels.client.get(Dimension::ColdStart) != Some("true")
}

/// Whether a request that was not admitted only lacks labels that its spans might have told.
fn may_pass(objective: &Objective, key: &CellKey, labels: &Labels) -> bool {
    let lone = matches!(key.state, State::ClientOnly | State::Excluded);
    let passes = |label: &Dimension, values: &BTreeSet<String>| {
        labels.all.get(*label).is_none_or(|value| values.contains(value))
    };
    let cold = labels.all.get(Dimension::ColdStart).map(|value| value == "true");
    let warm_enough = match objective.conditions.cold_starts {
        ColdStarts::Included => true,
        ColdStarts::Excluded => cold != Some(true),
        ColdStarts::Only => cold != Some(false),
    };
    lone && warm_enough && objective.conditions.labels.iter().all(|(label, values)| passes(label, values))
}
