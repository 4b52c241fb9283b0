//! A FastAPI application under the real ASGI instrumentation, which has a span for every part of the body that it sends:
//! the time to the first token and the end of the answer against the application's own stop-watch.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::differences::{Differences, milliseconds};
use crate::network::{Network, ONE_WAY};
use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::{prepared, source, take_turn};
use crate::tracejoin::{Store, Tracejoin};

/// The stop-watch reads its clock outside the instrumentation, which spends about half a millisecond before its span
/// begins. On a busy machine the process may be preempted there, for a scheduler's slice or a few.
const MEDIAN_TOLERANCE_MS: f64 = 3.0;
const TOLERANCE_MS: f64 = 25.0;

const REQUESTS: usize = 6;
const QUEUE_MS: u64 = 30;
const PREFILL_MS: u64 = 50;
/// Spent after the answer. A server's time that held it would be off by twelve times the tolerance.
const AFTER_MS: u64 = 300;

/// What the application measured of one request.
#[derive(Debug, Clone, Deserialize)]
struct Measured {
    ttft_ns: u64,
    total_ns: u64,
    /// When the application left the request, its background task done.
    left_ns: u64,
}

struct App {
    base: String,
    client: Client,
    network: Network,
    _process: Process,
}

impl App {
    async fn start(scratch: &Scratch, otlp: &str) -> Self {
        let mut command = python(otlp, "tests/real/asgi/app.py");
        let mut process = Process::spawn(scratch, "app", &mut command);
        let ready = |output: &str| Some(output.trim().strip_prefix("app listening on ")?.to_owned());
        let base = process.wait_for_output(Duration::from_secs(30), ready).await;
        let address = base.strip_prefix("http://").and_then(|address| address.parse().ok());
        let network = Network::to(address.expect("the application prints its address")).await;
        Self { base, client: Client::new(), network, _process: process }
    }

    /// Where requests are sent: beyond the network.
    fn completions(&self) -> String {
        format!("http://{}/v1/chat/completions", self.network.address)
    }

    async fn measured(&self) -> HashMap<String, Measured> {
        let answer = self.client.get(format!("{}/measured", self.base)).send().await.expect("the application answers");
        answer.json().await.expect("measurements by trace id")
    }

    async fn flush(&self) {
        let answer = self.client.post(format!("{}/flush", self.base)).send().await.expect("the application answers");
        let answer: Value = answer.json().await.expect("an object");
        assert_eq!(answer["flushed"], true, "the SDK could not export its spans");
    }
}

fn python(otlp: &str, script: &str) -> Command {
    let mut command = Command::new(prepared("venv/bin/python"));
    command.arg(source(script)).env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{otlp}"));
    command
}

fn body(after_ms: u64) -> Value {
    json!({"queue_ms": QUEUE_MS, "prefill_ms": PREFILL_MS, "tokens": 8, "token_ms": 10, "after_ms": after_ms})
}

/// Sends one request with a stop-watch and makes its record.
async fn call(client: &Client, url: &str, after_ms: u64) -> Value {
    let (trace_id, span_id) = (uuid::Uuid::new_v4().simple().to_string(), "00000000000000c1");
    let request = client.post(url).header("traceparent", format!("00-{trace_id}-{span_id}-01")).json(&body(after_ms));
    let started = Instant::now();
    let mut answer = request.send().await.expect("the application answers");
    let mut ttft = None;
    while let Some(part) = answer.chunk().await.expect("the whole answer") {
        if !part.is_empty() {
            ttft.get_or_insert(started.elapsed());
        }
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    json!({"trace_id": trace_id, "span_id": span_id, "status": answer.status().as_u16(), "streaming": true,
           "duration_ms": millis(started.elapsed()), "ttft_ms": millis(ttft.expect("a first token"))})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_and_the_end_of_a_stream_agree_with_the_applications_stop_watch() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let app = App::start(&scratch, &tracejoin.addresses.otlp_grpc.to_string()).await;
    let client = Client::new();
    // The connection is there before the first stop-watch runs, so that no setup lies in any duration.
    let warm = client.get(format!("http://{}/measured", app.network.address)).send().await.expect("an answer");
    warm.bytes().await.expect("its body");

    let mut records = Vec::new();
    for after_ms in [0, AFTER_MS] {
        for _ in 0..REQUESTS {
            records.push(call(&client, &app.completions(), after_ms).await);
        }
    }
    app.flush().await;
    tracejoin.upload(&json!(records)).await;
    let coverage = tracejoin.wait_until_joined(records.len(), Duration::from_secs(30)).await;
    assert_eq!((&coverage["matched"], &coverage["client_from_spans"]), (&json!(records.len()), &json!(0)));

    let measured = app.measured().await;
    for (what, records) in ["plain", "with a background task"].into_iter().zip(records.chunks(REQUESTS)) {
        let mut differences = Differences::default();
        for record in records {
            let trace_id = record["trace_id"].as_str().expect("an id");
            let truth = &measured[trace_id];
            let request = tracejoin.trace(trace_id).await;
            differences.add("server ttft", &request["server"]["ttft_ms"], truth.ttft_ns);
            differences.add("server total", &request["server"]["total_ms"], truth.total_ns);
            assert_pair(&request, record);
            let after = milliseconds(truth.left_ns - truth.total_ns);
            assert!(what == "plain" || after >= AFTER_MS as f64, "the background task took {after} ms");
        }
        differences.check(what, &[(0.5, MEDIAN_TOLERANCE_MS), (1.0, TOLERANCE_MS)]);
    }
}

/// The first token's pair shares out the client's time to it: the way there and back, the queue, the prefill and little
/// else.
fn assert_pair(request: &Value, record: &Value) {
    let length = |phase: &str| request["ttft"][phase].as_f64().unwrap_or_else(|| panic!("no {phase}: {request}"));
    let server: f64 = ["gpu_queue_ms", "generation_ms", "unattributed_ms"].map(length).iter().sum();
    let ttft = record["ttft_ms"].as_f64().expect("it was measured");
    assert!((length("envelope_ms") + server - ttft).abs() < 1e-5, "{request}");
    let both_ways = 2.0 * ONE_WAY.as_secs_f64() * 1e3;
    assert!(length("envelope_ms") >= both_ways, "no way there and back: {request}");
    assert!(length("envelope_ms") < 2.0 * both_ways + TOLERANCE_MS, "more than the way there and back: {request}");
    assert!(length("gpu_queue_ms") >= QUEUE_MS as f64 && length("generation_ms") >= PREFILL_MS as f64, "{request}");
}

/// What the caller measured of one call.
#[derive(Debug, Deserialize)]
struct Call {
    trace_id: String,
    span_id: String,
    headers_ns: u64,
    total_ns: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instrumented_caller_without_records_is_seen_up_to_the_headers() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let otlp = tracejoin.addresses.otlp_grpc.to_string();
    let app = App::start(&scratch, &otlp).await;
    let mut command = python(&otlp, "tests/real/asgi/caller.py");
    command.args([app.completions(), REQUESTS.to_string(), body(0).to_string()]);
    let output = command.output().expect("the caller runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = String::from_utf8(output.stdout).expect("text");
    let calls: Vec<Call> = calls.lines().map(|line| serde_json::from_str(line).expect("a call a line")).collect();
    assert_eq!(calls.len(), REQUESTS);
    app.flush().await;

    // A record could still come until the join deadline.
    let coverage = tracejoin.wait_until_joined(REQUESTS, Duration::from_secs(30)).await;
    let counted = ["client_records", "client_from_spans", "matched"].map(|count| &coverage[count]);
    assert_eq!(counted, [&json!(REQUESTS); 3], "{coverage}");
    let measured = app.measured().await;
    for call in &calls {
        let request = tracejoin.trace(&call.trace_id).await;
        let flags = request["flags"].as_array().expect("flags");
        assert!(flags.contains(&json!("client_from_span")) && flags.contains(&json!("headers_only")), "{flags:?}");
        assert_eq!(request["client_span_id"], call.span_id);
        let client = &request["client"];
        assert_eq!(
            [&client["source"], &client["duration_ms"], &client["wall_ms"]],
            [&json!("span"), &Value::Null, &Value::Null]
        );
        assert_eq!(request["phases"]["network_envelope_ms"], Value::Null, "a span to the headers tells no total");
        // The application sends its headers before it waits for the first token.
        let headers = client["headers_ms"].as_f64().expect("the span's length");
        assert!((headers - milliseconds(call.headers_ns)).abs() <= TOLERANCE_MS, "{headers} ms, {call:?}");
        let truth = &measured[&call.trace_id];
        assert!(headers < milliseconds(call.total_ns - PREFILL_MS * 1_000_000), "{headers} ms, {call:?}");
        let total = request["server"]["total_ms"].as_f64().expect("a server side");
        assert!((total - milliseconds(truth.total_ns)).abs() <= TOLERANCE_MS, "{total} ms, {truth:?}");
    }
    let phases = tracejoin.get_json("/api/v1/phases?from=-1h").await;
    assert_eq!(phases["groups"][0]["phases"]["generation"]["n"], REQUESTS);
    assert!(phases["groups"][0]["client"].get("duration").is_none_or(|found| found["n"] == 0), "{phases}");
}
