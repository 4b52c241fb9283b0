//! Objectives and requests for tests.

use std::collections::BTreeSet;

use super::evidence::Evidence;
use super::indicator::Indicator;
use super::objective::{Alerting, Burn, Conditions, Confirm, Goal, Objective, ObjectiveId, Straddling};
use super::verdict::Verdict;
use model::{
    Dimension, Flags, Interval, JoinMethod, Labels, Metric, Nanos, Observation, Readings, ResultClass, Slice, State,
    UnixNanos,
};
use stats::cell::cells;
use stats::scope::Dictionary;
use stats::{Contents, Quantile};

/// The window of everything here.
pub const WINDOW: Interval = Interval { start: UnixNanos(0), end: UnixNanos(600_000_000_000) };

/// A decimal as a quantile.
pub fn q(text: &str) -> Quantile {
    text.parse().expect("a quantile")
}

/// An objective that asks for 100 requests and 90 % of the records where the server must tell.
pub fn objective(indicator: Indicator, goal: Goal, threshold: f64) -> Objective {
    Objective {
        id: ObjectiveId::new("objective").expect("a name"),
        description: None,
        owner: None,
        budget: None,
        indicator,
        goal,
        threshold,
        conditions: Conditions::default(),
        window: Nanos(WINDOW.end.0),
        min_n: 100,
        min_coverage: if indicator.needs_server() { 0.9 } else { 0.0 },
        require_bounds: false,
        straddling: Straddling::PointEstimate,
        burn: Burn { windows: Vec::new(), min_traffic: 50, min_bad: 5 },
        alerting: Alerting { confirm: Confirm::Interval, no_verdict_after: None, silent_after: None },
    }
}

/// The quantile of a metric.
pub fn quantile(metric: Metric, target: &str, threshold: f64) -> Objective {
    objective(Indicator::Metric(metric), Goal::Quantile { target: q(target) }, threshold)
}

/// With one condition.
pub fn only(mut objective: Objective, label: Dimension, value: &str) -> Objective {
    objective.conditions.labels.insert(label, BTreeSet::from([value.to_owned()]));
    objective
}

/// Labels that the client told, and others that the server did.
pub fn labels(client: &[(Dimension, &str)], server: &[(Dimension, &str)]) -> Labels {
    let mut labels = Labels::default();
    for (dimension, value) in client {
        labels.client.set(*dimension, Some(*value));
    }
    labels.all = labels.client.clone();
    for (dimension, value) in server {
        labels.all.set(*dimension, Some(*value));
    }
    labels
}

/// A request with some values.
pub fn request(state: State, result: ResultClass, readings: &[(Metric, f64)]) -> Observation {
    let mut values = Readings::NONE;
    for (metric, value) in readings {
        values.set(*metric, Some(*value));
    }
    Observation {
        labels: 0,
        slice: Slice::of(UnixNanos(0), UnixNanos(0)),
        state,
        result: Some(result),
        flags: Flags::NONE,
        has_client: state != State::ServerOnly,
        has_server: state != State::ClientOnly,
        join_method: JoinMethod::TraceId,
        completeness: None,
        tells_rhythm: false,
        output_tokens: None,
        readings: values,
    }
}

/// What a window with these requests holds, the labels numbered from 0.
pub fn contents(dictionary: Vec<Labels>, observations: &[Observation]) -> Contents {
    let dictionary: Dictionary = (0..).zip(dictionary).collect();
    Contents { cells: cells(observations).into_iter().collect(), dictionary }
}

/// The verdict over these requests, which tell no labels.
pub fn verdict(objective: &Objective, observations: &[Observation]) -> Verdict {
    let contents = contents(vec![Labels::default()], observations);
    Verdict::of(objective, Evidence::of(objective, WINDOW, &contents, None))
}
