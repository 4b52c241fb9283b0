//! Gates as a CI system meets them: the built binary, a real server, and test runs that were really joined.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::common::Server;

/// When the first run began, in milliseconds: an hour before the tests.
static BEGAN: LazyLock<i64> = LazyLock::new(|| chrono::Utc::now().timestamp_millis() - 3_600_000);

/// A test run: requests one a tenth of a second, all of 600 ms beside their queue.
struct Run {
    name: &'static str,
    /// When its first request began, in milliseconds after the first run.
    began: i64,
    n: u32,
    queue_ms: fn(u32) -> u64,
    /// What the client saw, where it is no whole answer.
    ended: fn(u32) -> Option<Value>,
    /// Whether the spans of a request arrive.
    traced: fn(u32) -> bool,
}

const GOOD: Run =
    Run { name: "good", began: 0, n: 200, queue_ms: |at| 40 + u64::from(at % 20), ended: |_| None, traced: |_| true };

fn time(after: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(*BEGAN + after).expect("a time");
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

impl Run {
    async fn send(&self, server: &Server) {
        let (mut records, mut spans) = (Vec::new(), Vec::new());
        for at in 0..self.n {
            let trace = uuid::Uuid::new_v4().simple().to_string();
            let started_at = time(self.began + i64::from(at) * 100);
            let queue = (self.queue_ms)(at);
            let mut record = json!({"trace_id": trace, "started_at": started_at, "duration_ms": 600 + queue,
                                    "status": 200, "run": self.name, "dimensions": {"model": "m-7b"}});
            if let Some(ended) = (self.ended)(at) {
                for (key, value) in ended.as_object().expect("fields") {
                    record[key] = value.clone();
                }
            }
            records.push(record);
            if (self.traced)(at) {
                spans.extend(request_spans(&trace, queue));
            }
        }
        let answer = server.upload(&Value::Array(records)).await;
        assert_eq!(answer["accepted"], json!(self.n), "{answer}");
        if !spans.is_empty() {
            let service = json!([{"key": "service.name", "value": {"stringValue": "gateway"}}]);
            let resource = json!({"attributes": service});
            server.export(&json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]})).await;
        }
    }
}

/// 570 ms beside the queue, of which 20 ms in the gateway and 540 ms of generation.
fn request_spans(trace: &str, queue: u64) -> [Value; 4] {
    let span = |id: u8, parent: &str, name: &str, kind: u8, start: u64, millis: u64| {
        json!({"traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": (start * 1_000_000).to_string(),
               "endTimeUnixNano": ((start + millis) * 1_000_000).to_string()})
    };
    let entry = format!("{:016x}", 1);
    [
        span(1, "", "POST /v1/chat/completions", 2, 1000, 570 + queue),
        span(2, &entry, "auth.check", 1, 1000, 20),
        span(3, &entry, "inference.acquire_slot", 1, 1020, queue),
        span(4, &entry, "inference.generate", 1, 1020 + queue, 540),
    ]
}

/// Files of objectives and reports, which vanish with the value.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// Writes a file with objectives of these specifications.
    fn objectives(&self, file: &str, specs: &[(&str, &str)]) -> String {
        let document = |(name, spec): &(&str, &str)| {
            format!("---\napiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
        };
        let text: String = specs.iter().map(document).collect();
        std::fs::write(self.path(file), text).expect("written");
        self.path(file)
    }

    /// Objectives on every phase, which the good run keeps.
    fn phases(&self) -> String {
        self.objectives(
            "phases.yaml",
            &[
                ("queue-p95", "phase: gpu_queue, quantile: 0.95, threshold_ms: 250"),
                ("gateway-p95", "phase: gateway, quantile: 0.95, threshold_ms: 60"),
                ("generation-p95", "phase: generation, quantile: 0.95, threshold_ms: 770"),
                ("envelope-p95", "phase: network_envelope, quantile: 0.95, threshold_ms: 120"),
            ],
        )
    }
}

/// Runs `tracejoin gate` to its end, which may take as long as the joining.
async fn gate(server: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.arg("gate").args(args).args(["--server", server]).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().expect("the binary runs")).await.expect("joined")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn last_line(output: &Output) -> String {
    out(output).lines().last().unwrap_or_default().to_owned()
}

#[track_caller]
fn left_with(code: i32, output: &Output) {
    assert_eq!(output.status.code(), Some(code), "{}\n{}", out(output), String::from_utf8_lossy(&output.stderr));
}

/// What a parser of another house makes of a JUnit report.
fn cases(path: &str) -> Value {
    let script = "import json, sys, xml.etree.ElementTree as tree\n\
                  cases = tree.parse(sys.argv[1]).getroot().findall('./testsuite/testcase')\n\
                  print(json.dumps({case.get('name'): [child.tag for child in case] for case in cases}))";
    let output = Command::new("python3").args(["-c", script, path]).output().expect("python3 runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_passes_right_after_its_upload_and_a_slow_queue_is_named() {
    let (server, desk) = (Server::start().await, Desk::new());
    let phases = desk.phases();
    GOOD.send(&server).await;
    // Nothing is joined yet: the gate waits for it.
    let passed = gate(&server.http, &["good", "--slo", &phases]).await;
    left_with(0, &passed);
    assert_eq!(last_line(&passed), "gate: pass: all 4 objectives held");

    let slow = Run { name: "slow", began: 20_000, queue_ms: |at| 300 + u64::from(at), ..GOOD };
    slow.send(&server).await;
    let (junit, markdown) = (desk.path("report.xml"), desk.path("summary.md"));
    std::fs::write(&markdown, "what another step wrote\n").expect("written");
    let reports = ["--junit", &junit, "--markdown", &markdown];
    let args = [&["slow", "--slo", &phases, "--explain", "--baseline", "good"], &reports[..]].concat();
    let broken = gate(&server.http, &args).await;
    left_with(1, &broken);
    assert_eq!(last_line(&broken), "gate: broken: gpu_queue (queue-p95)");
    let told = out(&broken);
    assert!(
        told.contains("gpu_queue moved most against the run good: its mean went from 49.5 ms to 399.5 ms"),
        "{told}"
    );
    assert!(told.contains("(n = 200 and 200, coverage 100.0 % and 100.0 %)"), "{told}");
    assert!(told.contains("are slow by gpu_queue"), "{told}");
    let tags = json!({"gpu_queue: queue-p95": ["failure"], "gateway: gateway-p95": ["system-out"],
                      "generation: generation-p95": ["system-out"], "network_envelope: envelope-p95": ["system-out"]});
    assert_eq!(cases(&junit), tags);
    let summary = desk.read("summary.md");
    assert!(summary.starts_with("what another step wrote\n### gate: broken: gpu\\_queue (queue-p95)"), "{summary}");

    // Without a run: the slow 20 seconds against those before, which were good.
    let (from, to) = (time(20_000), time(40_000));
    let window = ["--from", &from, "--to", &to, "--slo", &phases, "--explain", "--json"];
    let output = gate(&server.http, &window).await;
    left_with(1, &output);
    let answer: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let explained = &answer["explanations"][0];
    assert_eq!(
        (&explained["moved"][0]["phase"], &explained["moved"][0]["by_ms"]),
        (&json!("gpu_queue"), &json!(350.0))
    );
    assert_eq!((&explained["baseline"]["run"], &explained["baseline"]["means"]["n"]), (&Value::Null, &json!(200)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_tell_leaves_with_three() {
    let (server, desk) = (Server::start().await, Desk::new());
    let phases = desk.phases();
    let half = Run { name: "half", traced: |at| at % 50 < 31, ..GOOD };
    half.send(&server).await;
    Run { name: "few", n: 20, ..GOOD }.send(&server).await;

    let early = gate(&server.http, &["half", "--slo", &phases, "--wait", "0s"]).await;
    left_with(3, &early);
    assert!(last_line(&early).contains("not joined yet"), "{}", last_line(&early));

    let junit = desk.path("report.xml");
    let output = gate(&server.http, &["half", "--slo", &phases, "--junit", &junit]).await;
    left_with(3, &output);
    assert!(
        out(&output).contains("queue-p95: low_coverage: the coverage is 62.0 %, and 90.0 % is asked for"),
        "{}",
        out(&output)
    );
    assert!(last_line(&output).starts_with("gate: inconclusive: no verdict on queue-p95"), "{}", last_line(&output));
    assert_eq!(cases(&junit)["gpu_queue: queue-p95"], json!(["error"]));

    let output = gate(&server.http, &["few", "--slo", &phases]).await;
    left_with(3, &output);
    assert!(out(&output).contains("too_few: 20 requests decide, and 100 are asked for"), "{}", out(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_timeouts_nor_fast_errors_turn_a_latency_green() {
    let (server, desk) = (Server::start().await, Desk::new());
    let timeouts = Run {
        name: "timeouts",
        ended: |at| (at % 10 == 3).then(|| json!({"result": "timeout", "duration_ms": 5000, "status": 0})),
        traced: |at| at % 10 != 3,
        ..GOOD
    };
    timeouts.send(&server).await;
    // Slow answers, and three times as many errors that are fast.
    let errors = Run {
        name: "errors",
        n: 480,
        queue_ms: |_| 2000,
        ended: |at| (at % 4 != 0).then(|| json!({"status": 503, "duration_ms": 3})),
        traced: |at| at % 4 == 0,
        ..GOOD
    };
    errors.send(&server).await;
    let specs = [
        ("duration-p95", "phase: duration, quantile: 0.95, threshold_ms: 1000"),
        ("errors", "phase: error_share, threshold: 0.05"),
    ];
    let slo = desk.objectives("client.yaml", &specs);

    let output = gate(&server.http, &["timeouts", "--slo", &slo]).await;
    left_with(1, &output);
    assert_eq!(last_line(&output), "gate: broken: duration (duration-p95)");

    let output = gate(&server.http, &["errors", "--slo", &slo, "--json"]).await;
    left_with(1, &output);
    let answer: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(answer["broken_phases"], json!(["duration", "error_share"]), "{answer:#}");
    let duration = &answer["verdicts"][0];
    assert_eq!((&duration["n"], &duration["value_ms"]), (&json!(120), &json!(2600.0)));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("gate: broken: duration (duration-p95), error_share (errors)"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_leaves_with_two_and_never_with_one() {
    let (server, desk) = (Server::start().await, Desk::new());
    let phases = desk.phases();
    let wrong = desk.objectives("wrong.yaml", &[("x", "phase: gpu_queue, quantile: 0.95, threshold_ms: -1")]);
    let nowhere = PathBuf::from(desk.path("no-such-folder")).join("report.xml");
    let nowhere = nowhere.to_str().expect("UTF-8");
    let absent = desk.path("absent.yaml");
    for (args, part) in [
        (vec!["r", "--slo", &wrong], "wrong.yaml:5:"),
        (vec!["r", "--slo", &absent], "cannot read"),
        (vec!["no-such-run", "--slo", &phases], "no request of the run"),
        (vec!["r", "--slo", &phases, "--junit", nowhere], "cannot write"),
        (vec!["--slo", &phases], "required"),
        (vec!["r"], "--slo"),
        (vec!["--from", "soon", "--slo", &phases], "from is"),
        (vec!["--from", "-1h", "--slo", &phases, "--explain", "--baseline", "none"], "no request of the run"),
    ] {
        let output = gate(&server.http, &args).await;
        left_with(2, &output);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(part), "{args:?}: {told}");
    }
    let output = gate("http://127.0.0.1:1", &["r", "--slo", &phases]).await;
    left_with(2, &output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot reach"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_fires_for_the_slow_seconds_and_says_how_early() {
    let (server, desk) = (Server::start().await, Desk::new());
    GOOD.send(&server).await;
    Run { name: "slow", began: 20_000, queue_ms: |_| 400, ..GOOD }.send(&server).await;
    Run { name: "again", began: 40_000, ..GOOD }.send(&server).await;
    let joined = |answer: &Value| {
        let whole = answer["coverage"]["matched"] == json!(600);
        if whole { Vec::new() } else { vec![format!("{} of 600 are joined", answer["coverage"]["matched"])] }
    };
    server.wait_for("/api/v1/coverage?from=-2h", joined).await;

    let spec = "phase: gpu_queue, quantile: 0.95, threshold_ms: 250, window: 10s, min_n: 50, burn: false";
    let slo = desk.objectives("queue.yaml", &[("queue-p95", spec)]);
    let (from, to, noticed) = (time(12_000), time(60_000), time(35_000));
    let dry_run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        command.args(["slo", "dry-run", "--slo", &slo, "--from", &from, "--to", &to, "--noticed", &noticed]);
        command.args(["--server", &server.http]).args(more).stdin(Stdio::null());
        command.output().expect("the binary runs")
    };
    let output = dry_run(&["--every", "1s", "--json"]);
    left_with(0, &output);
    let answer: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let told = &answer["dry_runs"][0];
    assert_eq!((told["firings"].as_array().map(Vec::len), &told["evaluations"]), (Some(1), &json!(49)), "{told:#}");
    let firing = &told["firings"][0];
    // Of 100 requests in ten seconds 11 past the threshold lie past the rank 90 of the interval's lower end: these are
    // there 1.1 s after the fault begins. They are seen 2 s later, once they have settled, by an evaluation each second.
    assert_eq!(
        (&firing["alert"], &firing["from"]),
        (&json!("TracejoinObjectiveBroken"), &json!(seconds(24))),
        "{firing:#}"
    );
    // Five of 100 may be slow: the last second of the fault has left the window 9.5 s after its end.
    assert_eq!(firing["to"], json!(seconds(52)), "{firing:#}");
    assert_eq!(
        (&told["no_verdict_share"], &told["noticed"][0]["seconds_before"]),
        (&json!(0.0), &json!(11.0)),
        "{told:#}"
    );
    let people = out(&dry_run(&["--every", "1s"]));
    assert!(people.contains("queue-p95 (gpu_queue): fired once in 49 evaluations"), "{people}");
    assert!(people.contains("TracejoinObjectiveBroken fired 11s before it"), "{people}");

    let refused = dry_run(&["--every", "500us"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("more than the 50000"), "{refused:?}");
}

/// A time as the interface shows it.
fn seconds(after: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(*BEGAN + after * 1000).expect("a time");
    at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}
