//! What is asked of Prometheus about one objective.

use std::collections::BTreeSet;

use crate::exposition::{Combination, PHASES};
use model::{Dimension, Nanos, State};
use slo::alert::length;
use slo::indicator::Indicator;
use slo::objective::Objective;

/// Requests that were good or bad.
pub fn decided(window: Nanos) -> String {
    format!("slo:tracejoin_decided:increase{}", length(window))
}

/// Bad requests.
pub fn bad(window: Nanos) -> String {
    format!("slo:tracejoin_bad:increase{}", length(window))
}

/// The share of the bad requests in those that decide.
pub fn bad_share(window: Nanos) -> String {
    format!("slo:tracejoin_bad:ratio{}", length(window))
}

/// Requests that could have been good or bad.
pub fn could_decide(window: Nanos) -> String {
    format!("slo:tracejoin_could_decide:increase{}", length(window))
}

/// The share of those that decide in those that could.
pub fn coverage(window: Nanos) -> String {
    format!("slo:tracejoin_coverage:ratio{}", length(window))
}

/// All requests that the objective is about.
pub fn requests(window: Nanos) -> String {
    format!("slo:tracejoin_requests:increase{}", length(window))
}

/// The quantile, as closely as buckets tell it.
pub fn quantile(window: Nanos) -> String {
    format!("slo:tracejoin_phase_seconds:quantile{}", length(window))
}

/// Questions about one objective.
pub struct Query<'a>(&'a Objective);

impl<'a> Query<'a> {
    /// About this one.
    pub const fn of(objective: &'a Objective) -> Self {
        Self(objective)
    }

    /// A recorded series of the objective.
    pub fn recorded(&self, name: &str) -> String {
        format!("{name}{{slo=\"{}\"}}", self.0.id)
    }

    /// One recorded series by another; nothing where the latter is 0.
    pub fn share(&self, part: &str, whole: &str) -> String {
        format!("{} / ({} > 0)", self.recorded(part), self.recorded(whole))
    }

    /// How many requests had one of these outcomes.
    pub fn count(&self, outcomes: &str, window: Nanos) -> String {
        let (id, window) = (&self.0.id, length(window));
        format!("sum(increase(tracejoin_slo_requests_total{{slo=\"{id}\",outcome=~\"{outcomes}\"}}[{window}]))")
    }

    /// Whether the evaluator's newest verdict is this one, for what no counter tells.
    pub fn verdict(&self, status: &str) -> String {
        format!("max(tracejoin_slo_verdict{{slo=\"{}\",status=\"{status}\"}}) == 1", self.0.id)
    }

    /// The buckets of the objective's times; `None` where it is no time of ours, or about labels that metrics do not have.
    pub fn buckets(&self, window: Nanos) -> Option<String> {
        let Indicator::Metric(metric) = self.0.indicator else { return None };
        let has_all = self.0.conditions.labels.keys().all(|label| Combination::DIMENSIONS.contains(label));
        if !PHASES.contains(&metric) || !has_all {
            return None;
        }
        let mut matchers = vec![format!("phase=\"{}\"", metric.column()), "result=\"ok\"".to_owned()];
        matchers.extend(self.matchers());
        let (matchers, window) = (matchers.join(","), length(window));
        Some(format!("sum by (le) (rate(tracejoin_phase_seconds_bucket{{{matchers}}}[{window}]))"))
    }

    /// Whether nobody told of client records, or of a server's part of them, for so long, though someone did within a
    /// day. Labels that metrics do not have are left out: such an alert waits for all of them to be silent.
    pub fn silent(&self, of_server: bool, window: Nanos) -> String {
        let mut matchers = self.matchers();
        let name = if of_server { "tracejoin_requests_total" } else { "tracejoin_client_records_total" };
        if of_server {
            let states = [State::Matched, State::ServerOnly, State::Excluded].map(State::name).join("|");
            matchers.push(format!("state=~\"{states}\""));
        }
        let series = format!("{name}{{{}}}", matchers.join(","));
        let window = length(window);
        format!("(sum(increase({series}[{window}])) or vector(0)) == 0 and sum(max_over_time({series}[1d])) > 0")
    }

    fn matchers(&self) -> Vec<String> {
        let labels = self.0.conditions.labels.iter();
        let known = labels.filter(|(label, _)| Combination::DIMENSIONS.contains(label));
        known.map(|(label, values)| matcher(*label, values)).collect()
    }
}

fn matcher(label: Dimension, values: &BTreeSet<String>) -> String {
    let one = values.len() == 1;
    let values: Vec<String> =
        values.iter().map(|value| if one { value.clone() } else { regex::escape(value) }).collect();
    format!("{}{}{}", label.name(), if one { "=" } else { "=~" }, quoted(&values.join("|")))
}

/// A string of PromQL, whose escapes are Go's.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_match_only_themselves() {
        let of = |values: &[&str]| matcher(Dimension::Model, &values.iter().map(|value| (*value).to_owned()).collect());
        assert_eq!(of(&["m-7b"]), "model=\"m-7b\"");
        assert_eq!(of(&["a\"b\\c"]), "model=\"a\\\"b\\\\c\"");
        assert_eq!(of(&["a.b", "c|d"]), "model=~\"a\\\\.b|c\\\\|d\"");
    }
}
