//! Objectives as rules for Prometheus, for those who alert there.
//!
//! The rules read the counters and histograms of `/metrics`. They say what our own alerts say, with two differences that
//! no rule can mend: a request counts when it was joined and not when it began, and what late data corrects stays counted.

mod alerts;
mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use self::query::Query;
use model::Nanos;
use slo::alert::{Labels, Trouble};
use slo::burn::counted_target;
use slo::objective::{Goal, Objective};

/// What stands above the rules.
const HEAD: &str = "# Written by `tracejoin slo rules` from objectives; change those and write it again.\n\
    # Prometheus counts a request when it was joined, and once: late corrections change nothing here.\n";

#[derive(Serialize)]
struct RuleFile {
    groups: Vec<Group>,
}

/// Rules that are evaluated one after another, so that later ones see what earlier ones recorded.
#[derive(Serialize)]
struct Group {
    name: String,
    rules: Vec<Rule>,
}

type Texts = BTreeMap<String, String>;

#[derive(Serialize)]
#[serde(untagged)]
enum Rule {
    Record {
        record: String,
        expr: String,
        labels: Texts,
    },
    Alert {
        alert: &'static str,
        expr: String,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        labels: Texts,
        annotations: Texts,
    },
}

/// The rules of objectives as a file that Prometheus reads: one group an objective, in their order.
///
/// # Errors
/// Where YAML cannot be written.
pub fn rule_file(objectives: &[Objective]) -> Result<String, serde_saphyr::ser::Error> {
    let file = RuleFile { groups: objectives.iter().map(group).collect() };
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    Ok(format!("{HEAD}{}", serde_saphyr::to_string_with_options(&file, options)?))
}

fn group(objective: &Objective) -> Group {
    let mut rules = recordings(objective);
    rules.extend(Trouble::of(objective).iter().filter_map(|trouble| alerts::rule(objective, trouble)));
    Group { name: format!("tracejoin-{}", objective.id), rules }
}

/// What the alerts, and people, look at.
fn recordings(objective: &Objective) -> Vec<Rule> {
    let query = Query::of(objective);
    let mut rules = Vec::new();
    let mut record = |record: String, expr: String| {
        rules.push(Rule::Record { record, expr, labels: labels(objective, None) });
    };
    if counted_target(objective).is_ok() {
        for window in windows(objective) {
            record(query::decided(window), query.count("good|bad", window));
            record(query::bad(window), query.count("bad", window));
            record(query::bad_share(window), query.share(&query::bad(window), &query::decided(window)));
        }
        let window = objective.window;
        record(query::could_decide(window), query.count("good|bad|missing", window));
        record(query::coverage(window), query.share(&query::decided(window), &query::could_decide(window)));
        record(query::requests(window), query.count("good|bad|missing|left_out", window));
    }
    if let Goal::Quantile { target } = objective.goal
        && let Some(buckets) = query.buckets(objective.window)
    {
        record(query::quantile(objective.window), format!("histogram_quantile({}, {buckets})", target.as_f64()));
    }
    rules
}

/// Every window that a rule looks back over, each once: the objective's own, and those of its burn.
fn windows(objective: &Objective) -> Vec<Nanos> {
    let burn = objective.burn.windows.iter().flat_map(|pair| [pair.long, pair.short]);
    let mut windows: Vec<Nanos> = burn.chain([objective.window]).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// The labels of our own alerts, as Prometheus takes them: the name stands elsewhere.
fn labels(objective: &Objective, trouble: Option<&Trouble>) -> Texts {
    let labels = Labels::of(objective, trouble.unwrap_or(&Trouble::Broken));
    let named = |name: &str| name != "alertname" && (trouble.is_some() || name != "severity");
    let kept = labels.as_map().iter().filter(|(name, _)| named(name));
    kept.map(|(name, value)| (name.clone(), literal(value))).collect()
}

/// A text that a template leaves as it is.
fn literal(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}
