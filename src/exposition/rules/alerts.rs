//! One alert as a rule.

use super::query::{self, Query};
use super::{Rule, Texts, labels, literal};
use model::Unit;
use slo::alert::{Source, Trouble, advice, length, unseen};
use slo::burn::counted_target;
use slo::indicator::Indicator;
use slo::objective::{BurnWindow, Confirm, Goal, Objective};

/// Two-sided 95 % of the normal distribution: how far chance alone takes a share, in standard deviations.
const CHANCE: f64 = 1.96;

/// The rule of one trouble; `None` where nothing that Prometheus reads tells of it.
pub fn rule(objective: &Objective, trouble: &Trouble) -> Option<Rule> {
    let query = Query::of(objective);
    let (expr, after) = match trouble {
        Trouble::Broken => (broken(objective, &query), None),
        Trouble::Burn(pair) => (burns(objective, &query, pair)?, None),
        Trouble::NoVerdict => (no_verdict(objective, &query), Some(length(objective.alerting.no_verdict_after?))),
        Trouble::Silent(source) => {
            let silent = query.silent(*source == Source::Server, objective.alerting.silent_after?);
            (silent, None)
        }
    };
    let annotations = annotations(objective, trouble);
    Some(Rule::Alert { alert: trouble.name(), expr, after, labels: labels(objective, Some(trouble)), annotations })
}

fn broken(objective: &Objective, query: &Query<'_>) -> String {
    let Ok(target) = counted_target(objective) else { return query.verdict("broken") };
    let window = objective.window;
    let decided = query.recorded(&query::decided(window));
    let limit = match objective.alerting.confirm {
        Confirm::Verdict => target.rest().to_string(),
        Confirm::Interval => {
            let variance = short(target.as_f64() * target.rest());
            format!("({} + {CHANCE} * sqrt({variance} / {decided}))", target.rest())
        }
    };
    let share = query.recorded(&query::bad_share(window));
    format!("{share} > {limit} and {}", enough(objective, query))
}

/// Whether a window tells enough to judge by.
fn enough(objective: &Objective, query: &Query<'_>) -> String {
    let decided = query.recorded(&query::decided(objective.window));
    let mut enough = format!("{decided} >= {}", objective.min_n);
    if objective.min_coverage > 0.0 {
        let coverage = query.recorded(&query::coverage(objective.window));
        enough.push_str(&format!(" and {coverage} >= {}", objective.min_coverage));
    }
    enough
}

fn burns(objective: &Objective, query: &Query<'_>, pair: &BurnWindow) -> Option<String> {
    let limit = short(pair.factor * counted_target(objective).ok()?.rest());
    let share = |window| query.recorded(&query::bad_share(window));
    let (long, short) = (share(pair.long), share(pair.short));
    let traffic = query.recorded(&query::decided(pair.long));
    let bad = query.recorded(&query::bad(pair.long));
    let (least, least_bad) = (objective.burn.min_traffic, objective.burn.min_bad);
    Some(format!("{long} >= {limit} and {short} >= {limit} and {traffic} >= {least} and {bad} >= {least_bad}"))
}

fn no_verdict(objective: &Objective, query: &Query<'_>) -> String {
    if counted_target(objective).is_err() {
        return query.verdict("no_verdict");
    }
    let requests = query.recorded(&query::requests(objective.window));
    format!("{requests} > 0 unless ({})", enough(objective, query))
}

fn annotations(objective: &Objective, trouble: &Trouble) -> Texts {
    let mut texts = Texts::new();
    let mut say = |name: &str, text: String| texts.insert(name.to_owned(), text);
    say("summary", summary(objective, trouble));
    say("objective", promise(objective));
    if let Some(description) = &objective.description {
        say("description", literal(description));
    }
    let check = match trouble {
        Trouble::Silent(source) => advice::of_silence(*source),
        Trouble::NoVerdict => advice::first_check(Indicator::JoinCoverage),
        Trouble::Broken | Trouble::Burn(_) => advice::first_check(objective.indicator),
    };
    say("first_check", check.to_owned());
    texts
}

fn summary(objective: &Objective, trouble: &Trouble) -> String {
    let (id, phase) = (&objective.id, objective.indicator);
    match trouble {
        Trouble::Broken => match counted_target(objective) {
            Ok(target) => format!(
                "{phase} broke its objective {id}: {{{{ $value | humanizePercentage }}}} of the requests are bad, {} may be",
                percent(target.rest())
            ),
            Err(_) => format!("{phase} broke its objective {id}"),
        },
        Trouble::Burn(pair) => format!(
            "{phase} spends the budget of {id} over {} times its even pace, over {} and {}",
            pair.factor,
            length(pair.long),
            length(pair.short)
        ),
        Trouble::NoVerdict => unseen(objective, None),
        Trouble::Silent(source) => unseen(objective, Some(*source)),
    }
}

/// What was promised, in a few words.
fn promise(objective: &Objective) -> String {
    let unit = objective.indicator.unit();
    let end = match unit {
        Unit::Nanos | Unit::Millis => " ms",
        Unit::TokensPerSecond => " tokens/s",
        Unit::Share => "",
    };
    let side = objective.indicator.direction().words();
    let (phase, limit) = (objective.indicator, unit.shown(objective.threshold));
    let window = length(objective.window);
    match objective.goal {
        Goal::Quantile { target } => format!("{} of {phase} {side} {limit}{end} over {window}", target.field()),
        Goal::Ratio { target } => {
            format!("{phase} {side} {limit}{end} for {} of the requests over {window}", percent(target.as_f64()))
        }
        Goal::Share { .. } | Goal::Pooled => format!("{phase} {side} {limit}{end} over {window}"),
    }
}

fn percent(share: f64) -> String {
    format!("{}%", short(share * 100.0))
}

/// A product without the last digits, in which it is not exact.
fn short(number: f64) -> String {
    let digits = format!("{number:.9}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_short_and_exact() {
        assert_eq!([0.05, 0.0001, 0.999, 1.0].map(percent), ["5%", "0.01%", "99.9%", "100%"]);
    }
}
