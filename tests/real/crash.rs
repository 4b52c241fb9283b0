//! kill −9 in the middle of ingest: what was acknowledged is there afterwards, once.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Scalar;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use serde_json::{Value, json};
use tokio::time::sleep;
use tonic::transport::Channel;

use crate::scratch::Scratch;
use crate::setup::take_turn;
use crate::tracejoin::{Addresses, Store, Tracejoin};

const SENDERS: u8 = 4;
const TRACES_A_BATCH: u32 = 10;
const KILLS: usize = 3;
/// Ingest before each kill.
const INGEST: Duration = Duration::from_secs(2);
/// Between two batches of a sender, so that the comparison at the end stays short.
const PAUSE: Duration = Duration::from_millis(30);

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_batches_survive_kill_9() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let mut tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let enough = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..SENDERS)
        .map(|number| tokio::spawn(Sender::new(number, tracejoin.addresses).send_until(Arc::clone(&enough))))
        .collect();

    for _ in 0..KILLS {
        sleep(INGEST).await;
        tracejoin.stop(Signal::SIGKILL).await;
        tracejoin.resume(&scratch).await;
    }
    sleep(INGEST).await;
    enough.store(true, Ordering::Relaxed);

    let mut acknowledged = HashSet::new();
    let mut unanswered = 0;
    for sender in senders {
        let sent = sender.await.expect("the sender ends");
        acknowledged.extend(sent.acknowledged);
        unanswered += sent.unanswered;
    }
    // Without this the kills hit nothing and the test would prove nothing.
    assert!(unanswered > 0, "no batch was cut off by a kill");
    let coverage = tracejoin.wait_until_joined(acknowledged.len(), Duration::from_secs(60)).await;
    println!(
        "{} requests acknowledged over {KILLS} kills, {unanswered} calls cut off, coverage {coverage}",
        acknowledged.len()
    );
    assert_eq!(coverage["client_records"], acknowledged.len());
    assert_eq!(coverage["server_requests"], acknowledged.len());
    assert_eq!(coverage["matched"], acknowledged.len());
    for trace_id in &acknowledged {
        let request = tracejoin.trace(trace_id).await;
        assert_eq!(request["state"], "matched", "{request}");
        assert_eq!(request["spans"].as_array().map(Vec::len), Some(2), "{request}");
    }
}

/// Sends batches one after another, each until it is acknowledged, as an exporter does.
struct Sender {
    number: u8,
    client: TraceServiceClient<Channel>,
    http: reqwest::Client,
    records: String,
}

/// What a sender was told.
#[derive(Default)]
struct Sent {
    /// Traces whose spans and record were both acknowledged.
    acknowledged: Vec<String>,
    /// Calls that ended without an acknowledgement, and were repeated.
    unanswered: usize,
}

impl Sender {
    fn new(number: u8, addresses: Addresses) -> Self {
        let endpoint = Channel::from_shared(format!("http://{}", addresses.otlp_grpc)).expect("an address");
        let client = TraceServiceClient::new(endpoint.timeout(Duration::from_secs(5)).connect_lazy());
        let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().expect("a client");
        Self { number, client, http, records: format!("http://{}/api/v1/records", addresses.http) }
    }

    async fn send_until(mut self, enough: Arc<AtomicBool>) -> Sent {
        let mut sent = Sent::default();
        let mut batch = 0;
        while !enough.load(Ordering::Relaxed) {
            let ids: Vec<TraceId> = (0..TRACES_A_BATCH).map(|index| self.trace_id(batch, index)).collect();
            let request = spans(&ids);
            while !self.spans_acknowledged(&request).await {
                sent.unanswered += 1;
                sleep(Duration::from_millis(100)).await;
            }
            while !self.records_acknowledged(&ids).await {
                sent.unanswered += 1;
                sleep(Duration::from_millis(100)).await;
            }
            sent.acknowledged.extend(ids.iter().map(hex::encode));
            batch += 1;
            sleep(PAUSE).await;
        }
        sent
    }

    fn trace_id(&self, batch: u32, index: u32) -> TraceId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&batch.to_le_bytes());
        id[4..8].copy_from_slice(&index.to_le_bytes());
        id[15] = self.number + 1;
        id
    }

    async fn spans_acknowledged(&mut self, request: &ExportTraceServiceRequest) -> bool {
        let answer = self.client.export(request.clone()).await;
        let Ok(answer) = answer else { return false };
        assert_eq!(answer.into_inner().partial_success, None, "a span was refused");
        true
    }

    async fn records_acknowledged(&self, ids: &[TraceId]) -> bool {
        let records: Vec<Value> =
            ids.iter().map(|id| json!({"trace_id": hex::encode(id), "duration_ms": 120, "status": 200})).collect();
        let Ok(answer) = self.http.post(&self.records).json(&records).send().await else { return false };
        let acknowledged = answer.status().is_success();
        assert!(acknowledged || answer.status().is_server_error(), "{answer:?}");
        acknowledged
    }
}

type TraceId = [u8; 16];

/// For each trace an entry span of 100 ms with a generation of 80 ms inside.
fn spans(ids: &[TraceId]) -> ExportTraceServiceRequest {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let mut spans = Vec::new();
    for id in ids {
        let entry = Span {
            trace_id: id.to_vec(),
            span_id: vec![1; 8],
            name: "POST /v1/chat/completions".to_owned(),
            kind: SpanKind::Server.into(),
            start_time_unix_nano: now,
            end_time_unix_nano: now + 100_000_000,
            ..Span::default()
        };
        let generation = Span {
            span_id: vec![2; 8],
            parent_span_id: vec![1; 8],
            name: "inference.generate".to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: now + 10_000_000,
            end_time_unix_nano: now + 90_000_000,
            attributes: vec![text("llm.phase", "generation")],
            ..entry.clone()
        };
        spans.extend([entry, generation]);
    }
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource = Resource { attributes: vec![text("service.name", "llm-gateway")], ..Resource::default() };
    let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Scalar::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}
