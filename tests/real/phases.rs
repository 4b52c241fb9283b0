//! What tracejoin computes against what the gateway measured itself, and who owns the time when the GPU queue shrinks.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::differences::{Differences, milliseconds, quantile};
use crate::gateway::{Gateway, Measured};
use crate::k6::{Load, read_records, trace_id};
use crate::network::ONE_WAY;
use crate::scratch::Scratch;
use crate::setup::take_turn;
use crate::tracejoin::{Store, Tracejoin};

/// The gateway reads its own clock just outside each span's two readings, so the two differ by the microseconds between
/// them. On a busy machine the process may be preempted there, for a scheduler's slice of some milliseconds: nineteen in
/// twenty must agree within one slice, and the middle one far below it.
const P95_TOLERANCE_MS: f64 = 5.0;
const MEDIAN_TOLERANCE_MS: f64 = 1.0;

const PREFILL_MS: u64 = 20;
const TOKENS: u64 = 11;
const TOKEN_MS: u64 = 8;
/// What the request itself asks the gateway to spend in generation.
const GENERATION_MS: f64 = (PREFILL_MS + (TOKENS - 1) * TOKEN_MS) as f64;

const USERS: usize = 8;
/// A slot for each user, then one for four.
const WIDE: usize = USERS;
const NARROW: usize = USERS / 4;

#[tokio::test(flavor = "multi_thread")]
async fn phases_agree_with_the_gateway_and_name_the_queue() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let gateway = Gateway::start(&scratch, "gateway", &tracejoin.addresses.otlp_grpc.to_string()).await;

    let mut records = Vec::new();
    for (run, slots) in [("wide", WIDE), ("narrow", NARROW)] {
        gateway.resize(slots).await;
        records.extend(load(&scratch, &tracejoin, &gateway, run).await);
    }
    gateway.flush().await;
    let coverage = tracejoin.wait_until_joined(records.len(), Duration::from_secs(30)).await;
    let measured = gateway.measured().await;
    println!("{} requests, coverage {coverage}", records.len());

    assert_eq!(coverage["client_records"], records.len());
    let join_coverage = coverage["join_coverage"].as_f64().expect("a share");
    assert!(join_coverage > 0.99, "only {join_coverage} of the requests are joined");
    compare_each_request(&tracejoin, &records, &measured).await;
    compare_percentiles(&tracejoin, &records, &measured).await;
}

/// Half of the users take their answer as a stream, half as a whole.
async fn load(scratch: &Scratch, tracejoin: &Tracejoin, gateway: &Gateway, run: &str) -> Vec<Value> {
    let mut running = Vec::new();
    for (kind, stream) in [("stream", true), ("whole", false)] {
        let name = format!("k6-{run}-{kind}");
        let body = json!({
            "stream": stream, "output_tokens": TOKENS, "prefill_ms": PREFILL_MS, "token_ms": TOKEN_MS,
        });
        let duration = Duration::from_secs(12);
        let load = Load { name: &name, url: gateway.completions(), run, users: USERS / 2, duration, body };
        running.push(load.start(scratch));
    }
    let mut records = Vec::new();
    for k6 in running {
        let files = k6.finish().await;
        let written = read_records(&files.records);
        let summary = tracejoin.import("k6", &files.measurements);
        assert_eq!(summary["accepted"], written.len(), "{summary}");
        records.extend(written);
    }
    records
}

async fn compare_each_request(tracejoin: &Tracejoin, records: &[Value], measured: &HashMap<String, Measured>) {
    let mut differences = Differences::default();
    let mut envelopes = Vec::new();
    for record in records {
        let request = tracejoin.trace(trace_id(record)).await;
        if request["state"] != "matched" {
            println!("not joined: {request}");
            continue;
        }
        let truth = &measured[trace_id(record)];
        let phases = &request["phases"];
        differences.add("gateway", &phases["gateway_ms"], truth.gateway_ns);
        differences.add("gpu_queue", &phases["gpu_queue_ms"], truth.gpu_queue_ns);
        differences.add("generation", &phases["generation_ms"], truth.generation_ns);
        differences.add("server_total", &request["server"]["total_ms"], truth.total_ns);
        if let Some(ttft_ns) = truth.ttft_ns {
            differences.add("server_ttft", &request["server"]["ttft_ms"], ttft_ns);
        }
        assert_sums_hold(&request, record);
        envelopes.extend(phases["network_envelope_ms"].as_f64());
    }
    assert_network_is_seen(envelopes);
    differences.check("of the gateway", &[(0.5, MEDIAN_TOLERANCE_MS), (0.95, P95_TOLERANCE_MS)]);
}

/// The phases of a request that share out the client's duration.
const PHASES: [&str; 7] = [
    "network_envelope_ms",
    "gateway_ms",
    "gpu_queue_ms",
    "generation_ms",
    "provider_ms",
    "upstream_envelope_ms",
    "unattributed_ms",
];

/// They add up, with nothing over.
fn assert_sums_hold(request: &Value, record: &Value) {
    let duration = record["duration_ms"].as_f64().expect("k6 measured it");
    let length = |phase: &str| request["phases"][phase].as_f64().unwrap_or_else(|| panic!("no {phase}: {request}"));
    let sum: f64 = PHASES.into_iter().map(length).sum();
    // The record's digits are cut to whole nanoseconds.
    assert!((sum - duration).abs() < 1e-5, "phases add up to {sum}, the client measured {duration}: {request}");
}

/// The envelope is the way there and back, and little more.
fn assert_network_is_seen(mut envelopes: Vec<f64>) {
    let both_ways = 2.0 * ONE_WAY.as_secs_f64() * 1e3;
    let p50 = quantile(&mut envelopes, 0.5);
    println!("network_envelope: p50 {p50:.3} ms, {both_ways} ms of it are the network's");
    assert!(p50 >= both_ways, "the envelope's median is {p50} ms over a network of {both_ways} ms");
    assert!(p50 < 2.0 * both_ways, "the envelope's median is {p50} ms over a network of {both_ways} ms");
}

async fn compare_percentiles(tracejoin: &Tracejoin, records: &[Value], measured: &HashMap<String, Measured>) {
    let mut queue = HashMap::new();
    let mut generation = HashMap::new();
    for run in ["wide", "narrow"] {
        let answer = tracejoin.get_json(&format!("/api/v1/phases?from=-1h&run={run}")).await;
        let phases = &answer["groups"][0]["phases"];
        let p95 =
            |phase: &str| phases[phase]["p95_ms"].as_f64().unwrap_or_else(|| panic!("no p95 of {phase}: {answer}"));
        let of_run = || records.iter().filter(|record| record["run"] == run).map(|record| &measured[trace_id(record)]);
        let mut queue_truth: Vec<f64> = of_run().map(|truth| milliseconds(truth.gpu_queue_ns)).collect();
        let mut generation_truth: Vec<f64> = of_run().map(|truth| milliseconds(truth.generation_ns)).collect();
        let (queue_truth, generation_truth) = (quantile(&mut queue_truth, 0.95), quantile(&mut generation_truth, 0.95));
        println!(
            "{run}: p95 of gpu_queue {:.1} ms (measured {queue_truth:.1}), of generation {:.1} ms (measured {generation_truth:.1})",
            p95("gpu_queue"),
            p95("generation"),
        );
        assert!((p95("gpu_queue") - queue_truth).abs() <= P95_TOLERANCE_MS);
        assert!((p95("generation") - generation_truth).abs() <= P95_TOLERANCE_MS);
        queue.insert(run, p95("gpu_queue"));
        generation.insert(run, p95("generation"));
    }
    // With four users to a slot, each waits for about three generations of the others; with a slot each, for none.
    let queue_rose = queue["narrow"] - queue["wide"];
    assert!(queue_rose > 2.0 * GENERATION_MS, "the queue's p95 rose by {queue_rose} ms only");
    // The same answers are generated either way; what differs is how busy the machine is.
    let generation_moved = (generation["narrow"] - generation["wide"]).abs();
    assert!(generation_moved < queue_rose / 4.0, "generation's p95 moved by {generation_moved} ms");
}
