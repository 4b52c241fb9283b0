//! Whole files of rules. That Prometheus takes them, and fires, is tested with its own tools.

use super::rule_file;
use slo::document;

fn rules(objectives: &str) -> String {
    rule_file(&document::read(objectives).expect("objectives")).expect("YAML")
}

#[test]
fn a_quantile_is_recorded_and_alerted_on_in_every_way() {
    insta::assert_snapshot!(rules(
        "apiVersion: tracejoin/v1
kind: SLO
metadata: {name: queue-p95, description: 'Nobody waits {{ long }}', owner: inference}
spec:
  phase: gpu_queue
  quantile: 0.95
  threshold_ms: 250
  where: {model: m-7b, pool: [a100, h100]}
  min_coverage: 0.95
"
    ));
}

#[test]
fn what_no_counter_tells_is_taken_from_the_verdict() {
    let rules = rules(
        "apiVersion: tracejoin/v1
kind: SLO
metadata: {name: lost}
spec: {phase: unattributed_share, threshold: 0.05}
",
    );
    assert!(rules.contains("max(tracejoin_slo_verdict{slo=\"lost\",status=\"broken\"}) == 1"), "{rules}");
    assert!(!rules.contains("slo_requests_total") && !rules.contains("TracejoinBudgetBurn"), "{rules}");
}

#[test]
fn conditions_that_metrics_do_not_have_leave_the_histogram_out_and_not_the_counters() {
    let objective = |condition: &str| {
        rules(&format!(
            "{{\"apiVersion\": \"tracejoin/v1\", \"kind\": \"SLO\", \"metadata\": {{\"name\": \"x\"}}, \"spec\": \
             {{\"phase\": \"ttft\", \"quantile\": 0.95, \"threshold_ms\": 900, \"where\": {{{condition}}}}}}}"
        ))
    };
    assert!(objective("\"streaming\": true").contains("histogram_quantile(0.95, sum by (le)"));
    let narrow = objective("\"input_range\": \"input_0_512\"");
    assert!(!narrow.contains("histogram_quantile") && narrow.contains("slo:tracejoin_bad:ratio10m"), "{narrow}");
}
