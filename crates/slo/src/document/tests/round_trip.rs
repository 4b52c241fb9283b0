//! The form that is kept says everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::objective::{Alerting, Conditions};
use model::Unit;

fn quantile() -> impl Strategy<Value = Quantile> {
    (1..1_000_000_000_u64).prop_map(|parts| format!("0.{parts:09}").parse().expect("a quantile"))
}

/// A goal and a threshold that fit an indicator.
fn limit(indicator: Indicator) -> BoxedStrategy<(Goal, f64)> {
    let form = (quantile(), any::<bool>())
        .prop_map(|(target, ratio)| if ratio { Goal::Ratio { target } } else { Goal::Quantile { target } });
    let share = quantile().prop_map(|share| (share.as_f64(), share));
    match (indicator, indicator.unit()) {
        (Indicator::JoinCoverage, _) => share.prop_map(|(share, target)| (Goal::Share { target }, share)).boxed(),
        (Indicator::ResultShare(_) | Indicator::DroppedIterations, _) => {
            share.prop_map(|(share, kept)| (Goal::Share { target: kept.complement() }, share)).boxed()
        }
        (Indicator::UnattributedShare, _) => share.prop_map(|(share, _)| (Goal::Pooled, share)).boxed(),
        (_, Unit::Nanos) => (form, 1..=30 * 86_400_000_000_000_i64).prop_map(|(form, ns)| (form, ns as f64)).boxed(),
        (_, Unit::Millis | Unit::TokensPerSecond) => (form, 1e-3..1e6).boxed(),
        (_, Unit::Share) => (form, share).prop_map(|(form, (share, _))| (form, share)).boxed(),
    }
}

fn conditions(indicator: Indicator) -> impl Strategy<Value = Conditions> {
    let free: Vec<Dimension> = match indicator {
        Indicator::DroppedIterations => vec![Dimension::Run],
        _ => vec![Dimension::Run, Dimension::Model, Dimension::Region, Dimension::Concurrency],
    };
    let cold_starts = match indicator {
        Indicator::DroppedIterations => vec![ColdStarts::Excluded],
        _ => vec![ColdStarts::Excluded, ColdStarts::Included, ColdStarts::Only],
    };
    let values = btree_set("[^\\p{C}\\s][^\\p{C}]{0,20}", 1..3);
    (btree_map(select(free), values, 0..3), select(cold_starts))
        .prop_map(|(labels, cold_starts)| Conditions { labels, cold_starts })
}

fn burn(indicator: Indicator, goal: Goal) -> BoxedStrategy<Burn> {
    let none = Burn { windows: Vec::new(), min_traffic: 50, min_bad: 5 };
    let target = goal.target().filter(|_| indicator != Indicator::DroppedIterations);
    let Some(target) = target else { return Just(none).boxed() };
    let most = 1.0 / target.rest();
    let window = (0.0001..0.999, 2..40_000_i64, 1..40_000_i64).prop_map(move |(part, long, short)| BurnWindow {
        factor: most * part,
        long: minutes(long),
        short: minutes(short.min(long - 1)),
    });
    let some = (vec(window, 1..4), 1..1000_u64, 1..1000_u64).prop_map(|(mut windows, min_traffic, min_bad)| {
        windows.sort_by(|a, b| b.factor.total_cmp(&a.factor));
        let mut seen = BTreeSet::new();
        windows.retain(|window| seen.insert((window.long, window.short)));
        Burn { windows, min_traffic, min_bad }
    });
    prop_oneof![Just(none), some].boxed()
}

fn alerting(goal: Goal) -> impl Strategy<Value = Alerting> {
    let confirms =
        if goal == Goal::Pooled { vec![Confirm::Verdict] } else { vec![Confirm::Interval, Confirm::Verdict] };
    let wait = || option::of((10_000..2_592_000_000_i64).prop_map(|ms| Nanos(ms * 1_000_000)));
    (select(confirms), wait(), wait()).prop_map(|(confirm, no_verdict_after, silent_after)| Alerting {
        confirm,
        no_verdict_after,
        silent_after,
    })
}

fn header() -> impl Strategy<Value = (ObjectiveId, Option<String>, Option<String>, Option<ObjectiveId>)> {
    let id = || "[a-z][a-z0-9._-]{0,40}".prop_map(|name| ObjectiveId::new(&name).expect("a name"));
    let text = || option::of("[^\\p{C}\\s][^\\p{C}]{0,24}");
    (id(), text(), text(), option::of(id()))
}

fn objective() -> impl Strategy<Value = Objective> {
    let indicators: Vec<Indicator> = Indicator::all().collect();
    let limited = select(indicators).prop_flat_map(|indicator| (Just(indicator), limit(indicator)));
    limited.prop_flat_map(|(indicator, (goal, threshold))| {
        let rules = if goal == Goal::Pooled {
            vec![(Straddling::PointEstimate, false)]
        } else {
            vec![(Straddling::PointEstimate, true), (Straddling::Interval, false)]
        };
        let numbers = (10..2_592_000_i64, 1..1_000_000_u64, 0.0..=1.0);
        (header(), conditions(indicator), burn(indicator, goal), alerting(goal), numbers, select(rules)).prop_map(
            move |((id, description, owner, budget), conditions, burn, alerting, numbers, rules)| Objective {
                id,
                description,
                owner,
                budget,
                indicator,
                goal,
                threshold,
                conditions,
                window: Nanos(numbers.0 * 1_000_000_000),
                min_n: numbers.1,
                min_coverage: numbers.2,
                require_bounds: rules.1,
                straddling: rules.0,
                burn,
                alerting,
            },
        )
    })
}

proptest! {
    #[test]
    fn the_kept_form_gives_the_objective_again(objective in objective()) {
        let text = to_json(&objective).to_string();
        let again = read(&text).map_err(|errors| TestCaseError::fail(format!("{errors:?}\n{text}")))?;
        prop_assert_eq!(again, vec![objective]);
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "[a-zA-Z0-9 :{}\\[\\],&*!|>'\"%@`#\n-]{0,200}") {
        if let Err(errors) = read(&text) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.line >= 1 && error.column >= 1 && !error.reason.is_empty());
            }
        }
    }
}

#[test]
fn every_default_is_written_out() {
    let kept = to_json(&one(&slo("phase: ttft\nquantile: 0.95\nthreshold_ms: 300")));
    let expected = serde_json::json!({
        "apiVersion": "tracejoin/v1",
        "kind": "SLO",
        "metadata": {"name": "a"},
        "spec": {
            "phase": "ttft",
            "quantile": 0.95,
            "threshold_ms": 300,
            "where": {"cold_start": "false"},
            "window": "10m",
            "min_n": 100,
            "min_coverage": 0,
            "require_bounds": false,
            "at_risk": "point",
            "burn": {
                "windows": [
                    {"factor": 14.4, "long": "1h", "short": "5m"},
                    {"factor": 6, "long": "6h", "short": "30m"},
                    {"factor": 1, "long": "3days", "short": "6h"},
                ],
                "min_traffic": 50,
                "min_bad": 5,
            },
            "alert": {"confirm": "interval", "no_verdict_after": "10m", "silent_after": "10m"},
        },
    });
    assert_eq!(kept, expected);
}

#[test]
fn labels_of_several_values_are_lists() {
    let kept = to_json(&one(&slo("phase: ttft\nquantile: 0.95\nthreshold_ms: 300\nwhere: {model: [b, a], pool: [x]}")));
    let labels: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(kept["spec"]["where"].clone()).expect("labels");
    assert_eq!(labels["model"], serde_json::json!(["a", "b"]));
    assert_eq!(labels["pool"], "x");
}
