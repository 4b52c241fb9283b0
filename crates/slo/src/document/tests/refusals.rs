//! Every refusal has its place, its field, and what to do.

use std::fmt::Write;

use super::*;

/// The lines of a `spec` from line 5 on, and where each refusal of it stands.
const OBJECTIVES: &[(&str, &[&str])] = &[
    // What is limited.
    ("quantile: 0.95", &["5:3: spec.phase"]),
    ("phase: gpu_que\nquantile: 0.95\nthreshold_ms: 1", &["5:10: spec.phase"]),
    ("phase: zzz\nquantile: 0.95\nthreshold_ms: 1", &["5:10: spec.phase"]),
    ("phase: [ttft]\nquantile: 0.95\nthreshold_ms: 1", &["5:10: spec.phase"]),
    // Fields that are none.
    ("phase: ttft\nquantil: 0.95\nthreshold_ms: 1", &["5:3: spec.quantile", "6:3: spec.quantil"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 1\nxyz: 1", &["8:3: spec.xyz"]),
    // Which form the goal has.
    ("phase: ttft\nthreshold_ms: 1", &["5:3: spec.quantile"]),
    ("phase: ttft\nquantile: 0.95\nratio: 0.9\nthreshold_ms: 1", &["7:10: spec.ratio"]),
    ("phase: ttft\nquantile: 95\nthreshold_ms: 1", &["6:13: spec.quantile"]),
    ("phase: ttft\nquantile: 1\nthreshold_ms: 1", &["6:13: spec.quantile"]),
    ("phase: ttft\nquantile: p95\nthreshold_ms: 1", &["6:13: spec.quantile"]),
    ("phase: ttft\nratio: 0.12345678901\nthreshold_ms: 1", &["6:10: spec.ratio"]),
    ("phase: error_share\nquantile: 0.95\nthreshold: 0.01", &["6:13: spec.quantile"]),
    ("phase: join_coverage\nratio: 0.95\nthreshold: 0.9", &["6:10: spec.ratio"]),
    // Thresholds in the wrong unit, and out of bounds.
    ("phase: ttft\nquantile: 0.95", &["5:3: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold: 0.5", &["7:14: spec.threshold"]),
    ("phase: rate_stream\nquantile: 0.95\nthreshold_ms: 30", &["7:17: spec.threshold_ms"]),
    ("phase: stall_rate\nquantile: 0.95\nthreshold_tps: 30", &["7:18: spec.threshold_tps"]),
    ("phase: error_share\nthreshold_ms: 30\nthreshold: 0.1", &["6:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 0", &["7:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: -5", &["7:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: .inf", &["7:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 250ms", &["7:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 3000000000", &["7:17: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 0.0000001", &["7:17: spec.threshold_ms"]),
    ("phase: rate_stream\nquantile: 0.95\nthreshold_tps: 0", &["7:18: spec.threshold_tps"]),
    ("phase: error_share\nthreshold: 1", &["6:14: spec.threshold"]),
    ("phase: error_share\nthreshold: 5", &["6:14: spec.threshold"]),
    ("phase: error_share\nthreshold: 0.12345678901", &["6:14: spec.threshold"]),
    ("phase: join_coverage\nthreshold: 0", &["6:14: spec.threshold"]),
    // Which requests.
    ("phase: error_share\nthreshold: 0.1\nwhere: m-7b", &["7:10: spec.where"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {modell: m}", &["7:11: spec.where.modell"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {streaming: maybe}", &["7:22: spec.where.streaming"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {input_range: 0-512}", &["7:24: spec.where.input_range"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {output_range: [input_0_512]}", &["7:25: spec.where.output_range"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {cold_start: both}", &["7:23: spec.where.cold_start"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {model: []}", &["7:18: spec.where.model"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {model: [a, {b: c}]}", &["7:22: spec.where.model[1]"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {model: 4.10}", &["7:18: spec.where.model"]),
    ("phase: error_share\nthreshold: 0.1\nwhere: {model: }", &["7:16: spec.where.model"]),
    ("phase: dropped_iterations\nthreshold: 0.1\nwhere: {model: m}", &["7:11: spec.where.model"]),
    // Window and evidence.
    ("phase: error_share\nthreshold: 0.1\nwindow: 600", &["7:11: spec.window"]),
    ("phase: error_share\nthreshold: 0.1\nwindow: 9s", &["7:11: spec.window"]),
    ("phase: error_share\nthreshold: 0.1\nwindow: 31d", &["7:11: spec.window"]),
    ("phase: error_share\nthreshold: 0.1\nmin_n: 0", &["7:10: spec.min_n"]),
    ("phase: error_share\nthreshold: 0.1\nmin_n: 1.5", &["7:10: spec.min_n"]),
    ("phase: error_share\nthreshold: 0.1\nmin_coverage: 95", &["7:17: spec.min_coverage"]),
    ("phase: error_share\nthreshold: 0.1\nrequire_bounds: 1", &["7:19: spec.require_bounds"]),
    ("phase: error_share\nthreshold: 0.1\nat_risk: intervall", &["7:12: spec.at_risk"]),
    ("phase: unattributed_share\nthreshold: 0.1\nat_risk: interval", &["7:12: spec.at_risk"]),
    ("phase: unattributed_share\nthreshold: 0.1\nrequire_bounds: true", &["7:19: spec.require_bounds"]),
    // Burn.
    ("phase: error_share\nthreshold: 0.1\nburn: true", &["7:9: spec.burn"]),
    ("phase: error_share\nthreshold: 0.1\nburn: {windows: []}", &["7:9: spec.burn"]),
    (
        "phase: error_share\nthreshold: 0.1\nburn: {window: 1h, min_bad: 0}",
        &["7:10: spec.burn.window", "7:31: spec.burn.min_bad"],
    ),
    (
        "phase: error_share\nthreshold: 0.1\nburn:\n  windows:\n    - {factor: 10.1, long: 1h, short: 5m}",
        &["9:18: spec.burn.windows[0].factor"],
    ),
    (
        "phase: error_share\nthreshold: 0.1\nburn:\n  windows:\n    - {factor: 0, long: 90s, short: 30s}",
        &["9:18: spec.burn.windows[0].factor", "9:27: spec.burn.windows[0].long", "9:39: spec.burn.windows[0].short"],
    ),
    (
        "phase: error_share\nthreshold: 0.1\nburn:\n  windows:\n    - {factor: 2, long: 1h, short: 1h}\n    - {long: 1h}",
        &["9:38: spec.burn.windows[0].short", "10:9: spec.burn.windows[1].factor", "10:9: spec.burn.windows[1].short"],
    ),
    (
        "phase: error_share\nthreshold: 0.1\nburn:\n  windows:\n    - {factor: 2, long: 1h, short: 5m}\n    - {factor: 3, long: 1h, short: 5m}",
        &["10:9: spec.burn.windows[1]"],
    ),
    ("phase: unattributed_share\nthreshold: 0.1\nburn: {min_bad: 1}", &["7:9: spec.burn"]),
    ("phase: dropped_iterations\nthreshold: 0.1\nburn: {min_bad: 1}", &["7:9: spec.burn"]),
    // Alerts.
    ("phase: error_share\nthreshold: 0.1\nalert: {confirmed: interval}", &["7:11: spec.alert.confirmed"]),
    (
        "phase: error_share\nthreshold: 0.1\nalert: {confirm: no, silent_after: soon}",
        &["7:20: spec.alert.confirm", "7:38: spec.alert.silent_after"],
    ),
    ("phase: unattributed_share\nthreshold: 0.1\nalert: {confirm: interval}", &["7:20: spec.alert.confirm"]),
    ("phase: error_share\nthreshold: 0.1\nalert: {no_verdict_after: 1s}", &["7:29: spec.alert.no_verdict_after"]),
];

const BUDGETS: &[(&str, &[&str])] = &[
    ("phase: gpu_queue\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gateway: 10}", &["5:10: spec.phase"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 10", &["5:3: spec.split"]),
    ("phase: ttft\nquantile: 0.95\nsplit: {gateway: 10}", &["5:3: spec.threshold_ms"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gateway: 6, gpu_queue: 5}", &["8:10: spec.split"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gateway: 6, gpu_queue: 3.5}", &["8:10: spec.split"]),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gatway: 6, gpu_queue: 10}", &["8:11: spec.split.gatway"]),
    (
        "phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gateway: -6, gpu_queue: 16}",
        &["8:20: spec.split.gateway"],
    ),
    ("phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {}", &["8:10: spec.split"]),
    ("phase: ttft\nthreshold_ms: 10\nsplit: {gateway: 10}\nwindow: 1s", &["5:3: spec.quantile", "8:11: spec.window"]),
];

const HEADERS: &[(&str, &[&str])] = &[
    ("", &["1:1: document"]),
    ("# nothing\n", &["1:1: document"]),
    ("a: [1\n", &["1:4: document"]),
    ("just a text", &["1:1: document"]),
    ("{}", &["1:1: apiVersion", "1:1: kind", "1:1: metadata", "1:1: spec"]),
    (
        "apiVersion: openslo/v1\nkind: Slo\nmetadata: {name: Q 1, descripton: x, owner: 7}\nspec: {phase: ttft}",
        &["1:13: apiVersion", "2:7: kind", "3:18: metadata.name", "3:23: metadata.descripton", "3:45: metadata.owner"],
    ),
    (
        "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {}\nspec: {phase: error_share, threshold: 2}\nstatus: {}",
        &["3:11: metadata.name", "4:39: spec.threshold", "5:1: status"],
    ),
    ("apiVersion: tracejoin/v1\nkind: SLO\nkind: SLO\n", &["3:1: document"]),
];

/// What is refused of a text: places and fields, and the whole messages.
fn refused(text: &str) -> (Vec<String>, String) {
    let errors = read(text).expect_err(text);
    let places = errors.iter().map(|error| format!("{}:{}: {}", error.line, error.column, error.field));
    (places.collect(), errors.iter().map(|error| format!("{error}\n")).collect())
}

#[test]
fn every_refusal_names_line_column_field_and_what_to_do() {
    let mut cases: Vec<(String, &[&str])> = Vec::new();
    cases.extend(HEADERS.iter().map(|(text, places)| (text.to_string(), *places)));
    cases.extend(OBJECTIVES.iter().map(|(spec, places)| (slo(spec), *places)));
    cases.extend(BUDGETS.iter().map(|(spec, places)| (budget(spec), *places)));
    let mut messages = String::new();
    let mut elsewhere = String::new();
    for (text, expected) in cases {
        let (places, said) = refused(&text);
        if places != expected {
            writeln!(elsewhere, "{text}\nexpected {expected:?}, found\n{said}").expect("written");
        }
        messages.push_str(&said);
    }
    assert!(elsewhere.is_empty(), "{elsewhere}");
    insta::assert_snapshot!(messages);
}

#[test]
fn a_name_is_taken_once_a_file() {
    let errors = read(&format!("{QUEUE}---\n{QUEUE}")).expect_err("twice the same");
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].line, errors[0].field.as_str()), (13, "metadata.name"));
    assert!(errors[0].reason.contains("line 1"), "{}", errors[0]);
}

#[test]
fn the_errors_of_all_documents_come_at_once() {
    let wrong = slo("phase: ttft\nquantile: 2\nthreshold: 1");
    let errors = read(&format!("{wrong}---\n{wrong}")).expect_err("twice wrong");
    let places: Vec<(u64, &str)> = errors.iter().map(|error| (error.line, error.field.as_str())).collect();
    let expected = [(6, "spec.quantile"), (7, "spec.threshold"), (14, "spec.quantile"), (15, "spec.threshold")];
    assert_eq!(places, expected);
}

#[test]
fn a_budget_whose_parts_names_grow_too_long_is_refused() {
    let name = "a".repeat(95);
    let text = budget("phase: ttft\nquantile: 0.95\nthreshold_ms: 10\nsplit: {gateway: 10}");
    let errors = read(&text.replace("{name: a}", &format!("{{name: {name}}}"))).expect_err("too long");
    assert!(errors[0].reason.ends_with("which is too long; shorten metadata.name"), "{}", errors[0]);
}
