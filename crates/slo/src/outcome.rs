//! What one request is to an objective (design, section 5).
//!
//! An error is no latency at all, so it never improves one. What was cut off counts as bad once it was past the threshold,
//! and in neither direction before.

use std::collections::BTreeSet;

use super::indicator::Indicator;
use super::objective::{ColdStarts, Objective};
use super::tally::Outcome;
use model::{Dimension, Dimensions, Labels, Metric, Observation, ResultClass, State};
use stats::cell;
use stats::scope::CLIENTS_OWN;

/// What a request is to an objective. Requests that are not settled, and those without a client record, are outside, as
/// is every request of an objective whose goal is not counted in requests.
pub fn outcome(objective: &Objective, observation: &Observation, labels: &Labels) -> Outcome {
    if !is_settled_record(observation) || !admits(objective, labels) {
        return Outcome::Outside;
    }
    match objective.indicator {
        Indicator::Metric(metric) => of_metric(objective, metric, observation),
        Indicator::ResultShare(class) => match observation.result {
            Some(result) if result == class => Outcome::Bad,
            Some(_) => Outcome::Good,
            None => Outcome::Missing,
        },
        Indicator::JoinCoverage if observation.state == State::Matched => Outcome::Good,
        Indicator::JoinCoverage => Outcome::Bad,
        Indicator::UnattributedShare | Indicator::DroppedIterations => Outcome::Outside,
    }
}

/// Whether it is a client record that has settled: one of those that a coverage counts.
pub(super) fn is_settled_record(observation: &Observation) -> bool {
    let settled = matches!(observation.state, State::Matched | State::ClientOnly | State::Excluded);
    settled && cell::has_record(observation)
}

fn of_metric(objective: &Objective, metric: Metric, observation: &Observation) -> Outcome {
    match observation.result {
        Some(ResultClass::Error) => Outcome::Outside,
        Some(ResultClass::Ok) => match cell::told(metric, observation) {
            Some(value) if objective.is_good(value) => Outcome::Good,
            Some(_) => Outcome::Bad,
            None => Outcome::Missing,
        },
        Some(ResultClass::Timeout | ResultClass::Cancelled | ResultClass::Truncated) => {
            of_cut_off(objective, metric, observation)
        }
        None => Outcome::Missing,
    }
}

fn of_cut_off(objective: &Objective, metric: Metric, observation: &Observation) -> Outcome {
    match cell::told_by_then(metric, observation) {
        Some(value) if objective.is_good(value) => Outcome::LeftOut,
        Some(_) => Outcome::Bad,
        // What lasted no longer than the threshold as a whole has no part that did.
        None if cell::lasted(metric, observation).is_some_and(|time| objective.is_good(time)) => Outcome::LeftOut,
        None => Outcome::Missing,
    }
}

/// Whether requests with these labels are among those that an objective is about. An unknown label passes no condition,
/// but a request is taken for a warm one until its cold start is known.
///
/// For the join coverage what the client told decides alone, and what it did not tell does not filter: else requests
/// whose spans never came would drop out for the lack of the labels that these spans bring.
pub fn admits(objective: &Objective, labels: &Labels) -> bool {
    let lenient = objective.indicator == Indicator::JoinCoverage;
    let told = if lenient { &labels.client } else { &labels.all };
    let passes = |label: Dimension, values: &BTreeSet<String>| match told.get(label) {
        Some(value) => values.contains(value),
        None => lenient && !CLIENTS_OWN.contains(&label),
    };
    objective.conditions.labels.iter().all(|(label, values)| passes(*label, values))
        && admits_cold_start(objective.conditions.cold_starts, told, lenient)
}

/// Whether a request with these labels counts by whether it loaded the model first; where only cold starts do, one that
/// does not tell counts if `lenient`.
pub fn admits_cold_start(wanted: ColdStarts, told: &Dimensions, lenient: bool) -> bool {
    let cold = told.get(Dimension::ColdStart).map(|value| value == "true");
    match wanted {
        ColdStarts::Included => true,
        ColdStarts::Excluded => cold != Some(true),
        ColdStarts::Only => cold.unwrap_or(lenient),
    }
}

/// The classes of result among which an objective's requests are.
pub fn classes(indicator: Indicator) -> BTreeSet<ResultClass> {
    match indicator {
        Indicator::Metric(_) => ResultClass::ALL.into_iter().filter(|class| *class != ResultClass::Error).collect(),
        Indicator::UnattributedShare => BTreeSet::from([ResultClass::Ok]),
        Indicator::ResultShare(_) | Indicator::JoinCoverage | Indicator::DroppedIterations => {
            BTreeSet::from(ResultClass::ALL)
        }
    }
}
