//! Documents as people write them, right and wrong.

mod refusals;
mod round_trip;

use super::*;
use crate::Indicator;
use crate::objective::{Burn, BurnWindow, ColdStarts, Confirm, Goal, Straddling};
use model::{Dimension, Metric, Nanos};
use stats::Quantile;

const QUEUE: &str = "\
apiVersion: tracejoin/v1
kind: SLO
metadata: {name: queue-p95, description: \"…\", owner: inference}
spec:
  phase: gpu_queue            # a phase
  quantile: 0.95              # or ratio
  threshold_ms: 250           # milliseconds
  where: {model: m-7b, pool: a100, streaming: true, input_range: input_0_512}
  window: 10m
  min_n: 100
  min_coverage: 0.95
";

/// A document with these lines in its `spec`, which starts at line 5.
fn slo(spec: &str) -> String {
    let lines: Vec<String> = spec.lines().map(|line| format!("  {}\n", line)).collect();
    format!("apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: a}}\nspec:\n{}", lines.concat())
}

fn budget(spec: &str) -> String {
    slo(spec).replace("kind: SLO", "kind: Budget")
}

fn one(text: &str) -> Objective {
    let objectives = read(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    objectives.into_iter().next().expect("an objective")
}

const fn minutes(count: i64) -> Nanos {
    Nanos(count * 60_000_000_000)
}

#[test]
fn an_objective_is_read_with_its_units_labels_and_defaults() {
    let objective = one(QUEUE);
    assert_eq!(objective.id.as_str(), "queue-p95");
    assert_eq!((objective.description.as_deref(), objective.owner.as_deref()), (Some("…"), Some("inference")));
    assert_eq!(objective.indicator, Indicator::Metric(Metric::GpuQueue));
    assert_eq!(objective.goal, Goal::Quantile { target: Quantile::P95 });
    assert_eq!(objective.threshold, 250e6, "nanoseconds");
    let labels: Vec<(Dimension, Vec<&str>)> = objective
        .conditions
        .labels
        .iter()
        .map(|(dimension, values)| (*dimension, values.iter().map(String::as_str).collect()))
        .collect();
    let expected = [
        (Dimension::Model, vec!["m-7b"]),
        (Dimension::Pool, vec!["a100"]),
        (Dimension::Streaming, vec!["true"]),
        (Dimension::InputRange, vec!["input_0_512"]),
    ];
    assert_eq!(labels, expected);
    assert_eq!(objective.conditions.cold_starts, ColdStarts::Excluded);
    assert_eq!((objective.window, objective.min_n, objective.min_coverage), (minutes(10), 100, 0.95));
    assert_eq!((objective.require_bounds, objective.straddling), (false, Straddling::PointEstimate));
    let factors: Vec<f64> = objective.burn.windows.iter().map(|window| window.factor).collect();
    assert_eq!((factors, objective.burn.min_traffic, objective.burn.min_bad), (vec![14.4, 6.0, 1.0], 50, 5));
    assert_eq!(objective.alerting.confirm, Confirm::Interval);
    assert_eq!(
        (objective.alerting.no_verdict_after, objective.alerting.silent_after),
        (Some(minutes(10)), Some(minutes(10)))
    );
}

#[test]
fn every_choice_is_taken() {
    let objective = one(&slo("\
phase: ttft
ratio: 0.9
threshold_ms: 0.25
where: {model: [b, a], pool: 007, region: no, concurrency: 8, cold_start: any}
window: 1m
min_n: 1
min_coverage: 0
require_bounds: true
at_risk: interval
burn: {windows: [{factor: 2, long: 2h, short: 10m}, {factor: 10, long: 1h, short: 1m}], min_traffic: 7, min_bad: 2}
alert: {confirm: verdict, no_verdict_after: never, silent_after: 30s}"));
    assert_eq!(objective.goal, Goal::Ratio { target: "0.9".parse().expect("a quantile") });
    assert_eq!(objective.threshold, 250_000.0);
    let labels = &objective.conditions.labels;
    let values = |dimension| labels[&dimension].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(values(Dimension::Model), ["a", "b"]);
    assert_eq!(values(Dimension::Pool), ["007"], "not the number 7");
    assert_eq!(values(Dimension::Region), ["no"], "not false");
    assert_eq!(values(Dimension::Concurrency), ["8"]);
    assert_eq!(objective.conditions.cold_starts, ColdStarts::Included);
    assert_eq!((objective.min_n, objective.min_coverage, objective.require_bounds), (1, 0.0, true));
    assert_eq!(objective.straddling, Straddling::Interval);
    let windows = vec![
        BurnWindow { factor: 10.0, long: minutes(60), short: minutes(1) },
        BurnWindow { factor: 2.0, long: minutes(120), short: minutes(10) },
    ];
    assert_eq!(objective.burn, Burn { windows, min_traffic: 7, min_bad: 2 });
    assert_eq!(objective.alerting.confirm, Confirm::Verdict);
    assert_eq!(
        (objective.alerting.no_verdict_after, objective.alerting.silent_after),
        (None, Some(Nanos(30_000_000_000)))
    );
}

#[test]
fn a_threshold_that_is_a_share_is_the_goal() {
    let goal = |spec: &str| one(&slo(spec)).goal;
    let share = |text: &str| Goal::Share { target: text.parse().expect("a quantile") };
    assert_eq!(goal("phase: error_share\nthreshold: 0.01"), share("0.99"));
    assert_eq!(goal("phase: truncated_share\nthreshold: 0.003"), share("0.997"));
    assert_eq!(goal("phase: join_coverage\nthreshold: 0.95"), share("0.95"));
    assert_eq!(goal("phase: dropped_iterations\nthreshold: 0"), Goal::Share { target: Quantile::LARGEST });
    assert_eq!(goal("phase: join_coverage\nthreshold: 1"), Goal::Share { target: Quantile::LARGEST });
    assert_eq!(goal("phase: unattributed_share\nthreshold: 0.05"), Goal::Pooled);
    assert!(matches!(goal("phase: unattributed_share\nthreshold: 0.05\nquantile: 0.95"), Goal::Quantile { .. }));
}

#[test]
fn a_coverage_is_asked_for_only_where_the_server_must_tell() {
    let coverage = |phase: &str| one(&slo(&format!("phase: {phase}\nquantile: 0.9\nthreshold_ms: 1"))).min_coverage;
    assert_eq!(
        (coverage("ttft"), coverage("setup"), coverage("ttft_gateway"), coverage("gateway")),
        (0.0, 0.0, 0.9, 0.9)
    );
}

#[test]
fn what_has_no_good_and_bad_requests_burns_nothing_and_needs_no_interval() {
    let pooled = one(&slo("phase: unattributed_share\nthreshold: 0.05"));
    assert!(pooled.burn.windows.is_empty());
    assert_eq!(pooled.alerting.confirm, Confirm::Verdict);
}

#[test]
fn usual_windows_that_can_never_fire_are_left_out_and_that_is_said() {
    let median = one(&slo("phase: ttft\nquantile: 0.5\nthreshold_ms: 300"));
    assert_eq!(median.burn.windows.iter().map(|window| window.factor).collect::<Vec<_>>(), [1.0]);
    let said = notes(std::slice::from_ref(&median));
    assert_eq!(
        said,
        [
            "a: the burn windows of factor 14.4 and 6 are left out, since a budget of 0.5 of the requests can burn at most \
          2.000 times faster than even; give a stricter target, or burn windows of your own"
        ]
    );
    let none = one(&slo("phase: ttft\nquantile: 0.5\nthreshold_ms: 300\nburn: false"));
    assert!(none.burn.windows.is_empty());
    assert_eq!(notes(&[one(QUEUE), none]), Vec::<String>::new());
}

#[test]
fn a_factor_that_every_request_bad_just_reaches_is_taken() {
    for (target, factor) in [("0.9", "10"), ("0.99", "100"), ("0.7", "3.333333333")] {
        let spec = format!(
            "phase: ttft\nquantile: {target}\nthreshold_ms: 1\nburn: {{windows: [{{factor: {factor}, long: 1h, short: 5m}}]}}"
        );
        assert_eq!(one(&slo(&spec)).burn.windows.len(), 1, "{target} {factor}");
    }
}

#[test]
fn a_budget_is_a_whole_and_parts_that_add_up() {
    let text = budget(
        "phase: ttft\nquantile: 0.95\nthreshold_ms: 1200\nwindow: 5m\nwhere: {model: m}\n\
         split: {envelope: 120, gateway: 60, gpu_queue: 250, generation: 770}",
    );
    let set = read(&text).expect("a budget");
    let told: Vec<(&str, &str, f64, f64)> =
        set.iter().map(|one| (one.id.as_str(), one.indicator.name(), one.threshold / 1e6, one.min_coverage)).collect();
    let expected = [
        ("a", "ttft", 1200.0, 0.0),
        ("a.ttft_envelope", "ttft_envelope", 120.0, 0.9),
        ("a.ttft_gateway", "ttft_gateway", 60.0, 0.9),
        ("a.ttft_gpu_queue", "ttft_gpu_queue", 250.0, 0.9),
        ("a.ttft_generation", "ttft_generation", 770.0, 0.9),
    ];
    assert_eq!(told, expected);
    for objective in &set {
        assert_eq!(objective.budget.as_ref().map(ObjectiveId::as_str), Some("a"));
        assert_eq!((objective.window, &objective.conditions), (minutes(5), &set[0].conditions));
        let description = objective.description.as_deref().expect("a description");
        assert!(description.contains("The split is arithmetic"), "{description}");
    }
    assert_eq!(notes(&set).len(), 1, "said once, for the whole");
    let stored: Vec<Objective> = set.iter().map(|one| self::one(&to_json(one).to_string())).collect();
    assert_eq!(stored, set);
}

#[test]
fn parts_add_up_in_decimals() {
    let sum = |whole: &str| {
        read(&budget(&format!(
            "phase: duration\nquantile: 0.5\nthreshold_ms: {whole}\nsplit: {{envelope: 0.1, gateway: 0.2}}"
        )))
    };
    assert_eq!(sum("0.3").map(|set| set.len()), Ok(3), "as floating-point numbers 0.1 + 0.2 is not 0.3");
    assert!(sum("0.300001").is_err());
}

#[test]
fn a_file_holds_several_documents() {
    let second = QUEUE.replace("queue-p95", "other");
    let objectives = read(&format!("# first\n---\n{QUEUE}---\n\n---\n{second}")).expect("objectives");
    assert_eq!(objectives.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["queue-p95", "other"]);
}

#[test]
fn json_is_read_as_its_writers_write_it() {
    let text = r#"{"apiVersion": "tracejoin\/v1", "kind": "SLO",
	"metadata": {"name": "a", "description": "caf\u00e9 \ud83d\ude00 \"x\" \\ y"},
	"spec": {"phase": "ttft", "quantile": 0.95, "threshold_ms": 2.5e2}}"#;
    let objective = one(text);
    assert_eq!(objective.description.as_deref(), Some("café 😀 \"x\" \\ y"));
    assert_eq!(objective.threshold, 250e6);
}
