use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

use super::*;

/// Three verdicts: broken, ok at risk, none; and what keeps a run from being whole.
fn answer(outcome: &str, run: &str) -> GateAnswer {
    let verdict = |slo: &str, phase: &str, verdict: &str, numbers: Value| {
        let mut whole = json!({
            "slo": slo, "phase": phase, "goal": "p95", "target": 0.95, "verdict": verdict, "at_risk": verdict == "ok",
            "confirmed": verdict == "broken", "reasons": [], "from": "2026-01-02T12:00:00Z",
            "to": "2026-01-02T12:10:00Z", "n": 400, "good": 372, "bad": 28, "left_out": 0, "missing": 27, "unplaced": 0,
            "client_records": 428, "join_coverage": 0.934_579, "phase_coverage": 0.94, "filled": null,
            "method": "exact",
            "pending": 0, "not_filtered_by": [], "rank_error": 0,
        });
        for (key, value) in numbers.as_object().expect("numbers") {
            whole[key] = value.clone();
        }
        whole
    };
    let millis = json!({"threshold_ms": 250.0, "value_ms": 380.25, "ci_ms": [371.0, null], "bounds_ms": [300.0, null],
                        "ci_reason": "the upper end needs n >= 368"});
    let speed = json!({"threshold_tps": 30.0, "value_tps": 31.5, "ci_tps": [29.0, 33.0], "bounds_tps": [20.0, 40.0]});
    let share = json!({"threshold": 0.95, "value": 0.934_579, "ci": [0.906, 0.956], "bounds": [0.93, 0.94], "n": 428,
                       "goal": "share", "left_out": 3,
                       "reasons": [{"reason": "too_few", "detail": "428 requests decide, and 1000 are asked for"}]});
    serde_json::from_value(json!({
        "outcome": outcome, "run": run, "from": "2026-01-02T12:00:00Z", "to": "2026-01-02T12:10:00Z",
        "reasons": ["2 requests wait for their other side", "no verdict on joined"],
        "received_before": "2026-01-02T12:11:00Z", "unsettled": {"traces": 0, "pending": 2},
        "broken_phases": ["gpu_queue"], "explanations": [explanation()],
        "verdicts": [verdict("queue-p95", "gpu_queue", "broken", millis), verdict("speed", "rate_stream", "ok", speed),
                     verdict("joined", "join_coverage", "no_verdict", share)],
    }))
    .expect("an answer")
}

fn explanation() -> Value {
    let means = |n: u64, queue: f64| {
        json!({"n": n, "coverage": 0.93, "whole_ms": 560.0 + queue, "phases": [
            {"phase": "network_envelope", "mean_ms": 30.0, "known": n}, {"phase": "gateway", "mean_ms": 20.0, "known": n},
            {"phase": "gpu_queue", "mean_ms": queue, "known": n}, {"phase": "generation", "mean_ms": 510.0, "known": n}]})
    };
    json!({
        "slos": ["queue-p95", "speed", "joined"], "whole": "duration", "now": means(400, 200.0),
        "said": ["gpu_queue broke (queue-p95)", "gpu_queue moved most against the run r0"],
        "baseline": {"run": "r0", "from": "2026-01-01T12:00:00Z", "to": "2026-01-01T12:10:00Z", "means": means(380, 50.0)},
        "moved": [{"phase": "gpu_queue", "before_ms": 50.0, "now_ms": 200.0, "by_ms": 150.0, "by_ci_ms": [140.0, 160.0]}],
        "slow": {"past_ms": 1200.0, "slow": means(20, 900.0), "rest": means(380, 160.0)}, "broken": [],
    })
}

#[test]
fn people_see_a_table_and_the_outcome_last() {
    let answer = answer("broken", "nightly-7");
    insta::assert_snapshot!("table", format!("{}{}", table::report(&answer), table::last_line(&answer)));
    insta::assert_snapshot!("explained", explained::text(&answer.explanations));
}

#[test]
fn the_last_line_says_why() {
    let line = |outcome| table::last_line(&answer(outcome, "r"));
    assert_eq!(line("broken"), "gate: broken: gpu_queue (queue-p95)");
    assert_eq!(line("pass"), "gate: pass: all 3 objectives held");
    assert_eq!(line("inconclusive"), "gate: inconclusive: 2 requests wait for their other side; no verdict on joined");
}

#[test]
fn a_summary_is_markdown_that_no_name_can_break() {
    insta::assert_snapshot!("markdown", markdown::summary(&answer("broken", "a|b <script>\n# x")));
}

/// The elements of a document with their attributes, which a parser must find well formed.
fn elements(xml: &str) -> Vec<(String, Vec<(String, String)>)> {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).expect("UTF-8");
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut found = Vec::new();
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(element) | Event::Empty(element) => {
                let attributes = element.attributes().map(|attribute| {
                    let attribute = attribute.expect("an attribute");
                    let value =
                        attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).expect("a value").into_owned();
                    (text(attribute.key.as_ref()), value)
                });
                let name = text(element.name().as_ref());
                found.push((name, attributes.collect()));
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

#[test]
fn a_junit_report_has_a_case_an_objective() {
    let report = junit::report(&answer("broken", "a<b & \"c\"\u{1}")).expect("written");
    let elements = elements(&report);
    let names: Vec<&str> = elements.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "testsuites",
            "testsuite",
            "testcase",
            "failure",
            "testcase",
            "system-out",
            "testcase",
            "error",
            "testcase",
            "error"
        ]
    );
    let attribute = |at: usize, key: &str| {
        let (_, attributes) = &elements[at];
        attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert!(attribute(1, "name").contains("a<b & \"c\"\u{fffd}"), "{}", attribute(1, "name"));
    let counts = ["tests", "failures", "errors"].map(|key| attribute(1, key));
    assert_eq!(counts, ["4", "1", "2"]);
    assert_eq!(attribute(2, "name"), "gpu_queue: queue-p95");
    assert_eq!(attribute(7, "message"), "428 requests decide, and 1000 are asked for");
    insta::assert_snapshot!("junit", report.replace('\u{fffd}', "?"));
}

#[test]
fn only_a_broken_budget_leaves_with_one() {
    assert_eq!(GateOutcome::ALL.map(status), [0, 1, 3]);
    assert_eq!(UNUSABLE, 2);
}
