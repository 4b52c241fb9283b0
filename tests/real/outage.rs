//! Nothing is lost or counted twice when tracejoin, and then its database, are away under load.

use std::collections::HashSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::collector::Collector;
use crate::database::Database;
use crate::gateway::Gateway;
use crate::k6::{Load, Running, Written, read_records, trace_id};
use crate::scratch::Scratch;
use crate::setup::take_turn;
use crate::tracejoin::{Store, Tracejoin, is_joined, joined};

/// How long each part is away.
const OUTAGE: Duration = Duration::from_secs(20);
/// The load before, between and after the outages.
const CALM: Duration = Duration::from_secs(5);
/// The Collector waits up to half a minute between two attempts.
const DRAIN: Duration = Duration::from_secs(120);
/// The spans of each request: the entry and six phases.
const SPANS: usize = 7;

#[tokio::test(flavor = "multi_thread")]
async fn collectors_bring_everything_after_outages() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let mut database = Database::start(&scratch).await;
    let mut tracejoin = Tracejoin::start(&scratch, Store::Url(database.url())).await;

    let mut pipelines = Vec::new();
    for protocol in ["grpc", "http"] {
        pipelines.push(Pipeline::start(&scratch, protocol, &tracejoin).await);
    }
    sleep(CALM).await;
    tracejoin.stop(Signal::SIGTERM).await;
    sleep(OUTAGE).await;
    tracejoin.resume(&scratch).await;
    sleep(CALM).await;
    database.stop().await;
    assert_refuses_for_now(&tracejoin).await;
    sleep(OUTAGE).await;
    database.resume(&scratch).await;

    let mut files = Vec::new();
    let mut served = HashSet::new();
    for pipeline in &mut pipelines {
        files.push(pipeline.finish().await);
        served.extend(pipeline.gateway.measured().await.into_keys());
    }
    assert_everything_arrived(&tracejoin, &files, &served).await;
}

/// k6 → gateway → Collector.
struct Pipeline {
    gateway: Gateway,
    k6: Option<Running>,
    _collector: Collector,
}

impl Pipeline {
    async fn start(scratch: &Scratch, protocol: &str, tracejoin: &Tracejoin) -> Self {
        let collector = Collector::start(scratch, protocol, tracejoin).await;
        let gateway = Gateway::start(scratch, &format!("gateway-{protocol}"), &collector.address.to_string()).await;
        let body = json!({"stream": true, "output_tokens": 4, "prefill_ms": 100, "token_ms": 50});
        let duration = CALM * 3 + OUTAGE * 2;
        let name = format!("k6-{protocol}");
        let load = Load { name: &name, url: gateway.completions(), run: protocol, users: 4, duration, body };
        let k6 = Some(load.start(scratch));
        Self { gateway, k6, _collector: collector }
    }

    /// Waits for the load's end and returns what k6 wrote.
    async fn finish(&mut self) -> Written {
        let written = self.k6.take().expect("the load runs").finish().await;
        self.gateway.flush().await;
        written
    }
}

/// Without its database it answers, and asks to be tried again later.
async fn assert_refuses_for_now(tracejoin: &Tracejoin) {
    let record = json!({"trace_id": "0123456789abcdef0123456789abcdef", "duration_ms": 1});
    let client = reqwest::Client::new();
    let answer = client.post(tracejoin.url("/api/v1/records")).json(&record).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key(RETRY_AFTER), "{answer:?}");
}

async fn assert_everything_arrived(tracejoin: &Tracejoin, files: &[Written], served: &HashSet<String>) {
    let mut records = Vec::new();
    for file in files {
        let written = read_records(&file.records);
        let summary = tracejoin.import("k6", &file.measurements);
        assert_eq!(summary["accepted"], written.len(), "{summary}");
        let again = tracejoin.import("records", &file.records);
        assert_eq!(again["duplicates"], written.len(), "uploaded twice: {again}");
        records.extend(written);
    }
    let sent: HashSet<String> = records.iter().map(|record| trace_id(record).to_owned()).collect();
    assert_eq!(&sent, served, "k6 recorded each request that the gateways answered");

    let coverage = tracejoin.wait_until_joined(records.len(), DRAIN).await;
    println!("{} requests in all, coverage {coverage}", records.len());
    assert_eq!(coverage["client_records"], records.len());
    assert_eq!(joined(&coverage), records.len());
    assert_eq!(coverage["server_requests"], records.len());
    for trace_id in &sent {
        let request = tracejoin.trace(trace_id).await;
        assert!(is_joined(&request), "{request}");
        assert_eq!(distinct_spans(&request), SPANS, "{request}");
    }
}

fn distinct_spans(request: &Value) -> usize {
    let spans = request["spans"].as_array().expect("a request shows its spans");
    let ids: HashSet<&str> = spans.iter().filter_map(|span| span["span_id"].as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "a span is shown twice: {request}");
    ids.len()
}
