//! Objectives: exact counts of requests by their outcome, what was promised, and the newest verdicts.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::objectives::latest::LatestVerdicts;
use model::{Labels, Nanos, Observation, Unit, UnixNanos};
use slo::outcome::outcome;
use slo::{Objective, Tally};

/// Verdicts older than this are not shown: ten evaluations at the default pace.
const FRESH: Nanos = Nanos(300_000_000_000);

/// Reads one count of a tally.
type CountOf = fn(&Tally) -> u64;

/// What is counted of requests, by the label's value.
const OUTCOMES: [(&str, CountOf); 4] = [
    ("good", |tally| tally.good),
    ("bad", |tally| tally.bad),
    ("left_out", |tally| tally.left_out),
    ("missing", |tally| tally.missing),
];

/// The statuses of a verdict, by their names.
const STATUSES: [&str; 3] = ["ok", "broken", "no_verdict"];

/// Objectives as they are now.
pub type Current = dyn Fn() -> Vec<Arc<Objective>> + Send + Sync;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct OfOutcome {
    slo: String,
    phase: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct OfStatus {
    slo: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct OfPromise {
    slo: String,
    phase: &'static str,
    unit: &'static str,
}

type Number = Gauge<f64, AtomicU64>;

/// Metrics of objectives. There are as many series as objectives, which people write and clients cannot.
pub struct ObjectiveMetrics {
    current: Box<Current>,
    verdicts: Arc<LatestVerdicts>,
    requests: Family<OfOutcome, Counter>,
    thresholds: Family<OfPromise, Number>,
    targets: Family<OfPromise, Number>,
    statuses: Family<OfStatus, Gauge>,
    /// The objectives whose counters are there.
    followed: Mutex<Vec<Arc<Objective>>>,
}

impl ObjectiveMetrics {
    /// Of the objectives that `current` tells, and of the verdicts on them.
    pub fn new(current: Box<Current>, verdicts: Arc<LatestVerdicts>) -> Self {
        Self {
            current,
            verdicts,
            requests: Family::default(),
            thresholds: Family::default(),
            targets: Family::default(),
            statuses: Family::default(),
            followed: Mutex::default(),
        }
    }

    /// Puts its families into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "slo_requests",
            "Requests of objectives by their outcome, as first joined",
            self.requests.clone(),
        );
        registry.register("slo_threshold", "Thresholds of objectives, in the unit given", self.thresholds.clone());
        registry.register("slo_target", "The least share of good requests that was promised", self.targets.clone());
        registry.register(
            "slo_verdict",
            "1 for the newest verdict of this process, 0 for others",
            self.statuses.clone(),
        );
    }

    /// Counts requests, each as what it is to every objective.
    pub fn count<'a>(&self, requests: impl Iterator<Item = (&'a Observation, Labels)>) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let objectives = self.follow(&mut followed);
        if objectives.is_empty() {
            return;
        }
        let mut tallies = vec![Tally::default(); objectives.len()];
        for (observation, labels) in requests {
            for (objective, tally) in objectives.iter().zip(&mut tallies) {
                tally.add(outcome(objective, observation, &labels));
            }
        }
        for (objective, tally) in objectives.iter().zip(&tallies) {
            for (name, count) in OUTCOMES {
                self.requests.get_or_create(&of_outcome(objective, name)).inc_by(count(tally));
            }
        }
    }

    /// Brings everything but the counts up to date.
    pub fn refresh(&self, now: UnixNanos) {
        self.thresholds.clear();
        self.targets.clear();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for objective in self.follow(&mut followed) {
            self.promise(&objective);
        }
        self.statuses.clear();
        for (id, verdict) in self.verdicts.since(now, FRESH) {
            for status in STATUSES {
                let labels = OfStatus { slo: id.to_string(), status };
                self.statuses.get_or_create(&labels).set(i64::from(verdict.name() == status));
            }
        }
    }

    /// The objectives as they are now. A new one's counters begin at zero, so that its first requests are an increase;
    /// those of one that is gone end.
    fn follow(&self, followed: &mut Vec<Arc<Objective>>) -> Vec<Arc<Objective>> {
        let objectives = (self.current)();
        let is_same = |(one, other): (&Arc<Objective>, &Arc<Objective>)| Arc::ptr_eq(one, other);
        if followed.len() == objectives.len() && followed.iter().zip(&objectives).all(is_same) {
            return objectives;
        }
        let (before, wanted) = (counters(followed), counters(&objectives));
        for labels in before.difference(&wanted) {
            self.requests.remove(labels);
        }
        for labels in wanted.difference(&before) {
            let _ = self.requests.get_or_create_owned(labels);
        }
        followed.clone_from(&objectives);
        objectives
    }

    fn promise(&self, objective: &Objective) {
        let (unit, threshold) = match objective.indicator.unit() {
            Unit::Nanos => ("seconds", objective.threshold / 1e9),
            Unit::Millis => ("seconds", objective.threshold / 1e3),
            Unit::TokensPerSecond => ("tokens_per_second", objective.threshold),
            Unit::Share => ("ratio", objective.threshold),
        };
        let labels = |unit| OfPromise { slo: objective.id.to_string(), phase: objective.indicator.name(), unit };
        self.thresholds.get_or_create(&labels(unit)).set(threshold);
        if let Some(target) = objective.goal.target() {
            self.targets.get_or_create(&labels("ratio")).set(target.as_f64());
        }
    }
}

/// The counters of objectives, by their labels.
fn counters(objectives: &[Arc<Objective>]) -> BTreeSet<OfOutcome> {
    objectives.iter().flat_map(|objective| OUTCOMES.map(|(name, _)| of_outcome(objective, name))).collect()
}

fn of_outcome(objective: &Objective, outcome: &'static str) -> OfOutcome {
    OfOutcome { slo: objective.id.to_string(), phase: objective.indicator.name(), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slo::Status;

    #[test]
    fn every_status_is_shown() {
        let all = [Status::Ok { at_risk: true }, Status::Broken, Status::NoVerdict(Vec::new())];
        assert_eq!(all.each_ref().map(Status::name), STATUSES);
    }
}
