//! `/metrics` read by Prometheus' own parsers, and the rules of `tracejoin slo rules` run by its own tool.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::header::ACCEPT;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::setup::{prepared, source, take_turn};
use crate::tracejoin::{Store, Tracejoin};

const TRACE: &str = "000000000000000700000000000000aa";
const MODEL: &str = "a \"quoted\" \\ model";

/// Gives a program its standard input and waits for it.
fn fed(mut command: Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn parsed(form: &str, document: &str) -> Value {
    let mut command = Command::new(prepared("venv/bin/python"));
    command.arg("-B").arg(source("tests/real/python/exposition.py")).arg(form);
    let output = fed(command, document);
    assert!(output.status.success(), "{}\n{document}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one object")
}

/// A document that tells of the one request, in a form.
async fn scrape(tracejoin: &Tracejoin, form: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let request = reqwest::Client::new().get(tracejoin.url("/metrics")).header(ACCEPT, form);
        let document = request.send().await.expect("an answer").text().await.expect("a body");
        if document.contains("tracejoin_phase_seconds_count{") {
            return document;
        }
        assert!(Instant::now() < deadline, "the request is not counted:\n{document}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_both_forms() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let dimensions = json!({"model": MODEL});
    let record = json!({"trace_id": TRACE, "duration_ms": 130, "ttft_ms": 40, "status": 200, "dimensions": dimensions});
    tracejoin.upload(&json!([record])).await;

    let document = scrape(&tracejoin, "application/openmetrics-text;version=1.0.0").await;
    let open_metrics = parsed("openmetrics", &document);
    let text = scrape(&tracejoin, "text/plain").await;
    let plain = parsed("text", &text);
    for (family, kind) in [
        ("tracejoin_phase_seconds", "histogram"),
        ("tracejoin_client_records", "counter"),
        ("tracejoin_requests_joined", "counter"),
        ("tracejoin_join_claim_seconds", "histogram"),
        ("tracejoin_join_lag_seconds", "gauge"),
    ] {
        assert_eq!(
            (&open_metrics["families"][family], &plain["families"][family]),
            (&json!(kind), &json!(kind)),
            "{family}"
        );
    }
    let durations = |told: &Value| -> Vec<Value> {
        let all = told["counts"].as_array().into_iter().flatten().cloned();
        all.filter(|count| count["labels"]["phase"] == "duration" && count["labels"]["model"] == MODEL).collect()
    };
    assert_eq!(durations(&open_metrics).len(), 1, "{open_metrics}");
    assert_eq!(durations(&open_metrics), durations(&plain));
    let exemplars = open_metrics["exemplars"].as_array().expect("exemplars");
    assert!(!exemplars.is_empty() && exemplars.iter().all(|exemplar| exemplar["trace_id"] == TRACE), "{open_metrics}");

    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]);
    let told = fed(promtool, &text);
    let complaints = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{complaints}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_fire_on_what_they_are_for_and_on_nothing_else() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let rules = scratch.join("rules.yml");
    let mut written = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    written.args(["slo", "rules"]).arg(source("tests/real/rules/objectives.yaml")).arg("--output").arg(&rules);
    assert!(written.status().expect("tracejoin runs").success());
    std::fs::copy(source("tests/real/rules/expected.yml"), scratch.join("expected.yml")).expect("copied");

    for (command, file) in [("check", &rules), ("test", &scratch.join("expected.yml"))] {
        let output = Command::new("promtool").args([command, "rules"]).arg(file).output();
        let output = output.expect("promtool, which scripts/setup tests installs");
        let told = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {command}: {}", String::from_utf8_lossy(&told));
    }
}
