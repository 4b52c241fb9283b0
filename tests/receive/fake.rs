//! The intake behind the listeners, and the requests that the tests send.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracejoin::receive::budget::Budget;
use tracejoin::receive::intake::{
    ReceivedRecord, RecordIntake, RecordOutcome, Refusal, SentRecord, SpanIntake, SpanOutcome,
};
use tracejoin::receive::limits::Limits;
use tracejoin::receive::otlp::SpanEndpoint;
use tracejoin::receive::records::RecordEndpoint;
use tracejoin::receive::{http_server, otlp_grpc, otlp_http, records};

/// How long a test waits for what must happen: far more than it takes, so that only a hang exceeds it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Remembers what it was handed; answers as told.
pub struct FakeIntake {
    pub span_requests: Mutex<Vec<ExportTraceServiceRequest>>,
    pub record_uploads: Mutex<Vec<Vec<Result<String, String>>>>,
    pub span_answer: Mutex<Result<SpanOutcome, Refusal>>,
    pub record_answer: Mutex<Result<RecordOutcome, Refusal>>,
    /// Calls that wait here before they are answered.
    pub gate: Semaphore,
    /// One permit for each call that has arrived.
    pub arrived: Semaphore,
}

impl FakeIntake {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            span_requests: Mutex::default(),
            record_uploads: Mutex::default(),
            span_answer: Mutex::new(Ok(SpanOutcome::default())),
            record_answer: Mutex::new(Ok(RecordOutcome::default())),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            arrived: Semaphore::new(0),
        })
    }

    pub fn answer_spans(&self, answer: Result<SpanOutcome, Refusal>) {
        *self.span_answer.lock().expect("no test panics while holding it") = answer;
    }

    pub fn answer_records(&self, answer: Result<RecordOutcome, Refusal>) {
        *self.record_answer.lock().expect("no test panics while holding it") = answer;
    }

    pub fn spans(&self) -> Vec<ExportTraceServiceRequest> {
        self.span_requests.lock().expect("no test panics while holding it").clone()
    }

    pub fn uploads(&self) -> Vec<Vec<Result<String, String>>> {
        self.record_uploads.lock().expect("no test panics while holding it").clone()
    }

    /// From now on calls wait until [`FakeIntake::open`].
    pub fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// Waits until `calls` more calls have arrived.
    pub async fn wait_for(&self, calls: u32) {
        let arrived = tokio::time::timeout(PATIENCE, self.arrived.acquire_many(calls)).await;
        arrived.expect("the calls arrive").expect("the semaphore is never closed").forget();
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        drop(self.gate.acquire().await.expect("the semaphore is never closed"));
    }
}

impl SpanIntake for FakeIntake {
    fn accept(&self, request: ExportTraceServiceRequest) -> BoxFuture<'_, Result<SpanOutcome, Refusal>> {
        Box::pin(async move {
            self.pass().await;
            self.span_requests.lock().expect("no test panics while holding it").push(request);
            self.span_answer.lock().expect("no test panics while holding it").clone()
        })
    }
}

impl RecordIntake for FakeIntake {
    fn accept(&self, records: Vec<ReceivedRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>> {
        Box::pin(async move {
            self.pass().await;
            let records = records.into_iter().map(|record| record.map(json)).collect();
            self.record_uploads.lock().expect("no test panics while holding it").push(records);
            self.record_answer.lock().expect("no test panics while holding it").clone()
        })
    }
}

/// A record over HTTP as it came; one over gRPC as the JSON of its body.
fn json(record: SentRecord) -> String {
    match record {
        SentRecord::Json(raw) => raw.get().to_owned(),
        SentRecord::Message(record) => {
            serde_json::to_string(&record.body().expect("it was decoded before")).expect("JSON")
        }
    }
}

/// A listener under test; it is stopped when this is dropped.
pub struct Running {
    pub addr: SocketAddr,
    pub intake: Arc<FakeIntake>,
    pub budget: Budget,
    pub stop: CancellationToken,
    pub serving: JoinHandle<()>,
    _guard: DropGuard,
}

/// What is started.
pub enum Endpoint {
    Grpc,
    Http,
    Records,
}

pub async fn start(endpoint: Endpoint, limits: Limits) -> Running {
    let intake = FakeIntake::new();
    let budget = Budget::new(&limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("a bound socket has an address");
    let stop = CancellationToken::new();
    let limits = Arc::new(limits);
    let spans = SpanEndpoint::new(intake.clone(), limits.clone(), budget.clone());
    let shared = limits.clone();
    let records = RecordEndpoint::new(intake.clone(), limits, budget.clone());
    let token = stop.clone();
    let serving = tokio::spawn(async move {
        match endpoint {
            Endpoint::Grpc => {
                otlp_grpc::serve(listener, spans, records, token).await.expect("the listener does not fail")
            }
            Endpoint::Http => otlp_http::serve(listener, spans, token).await,
            Endpoint::Records => http_server::serve(listener, records::router(records).into(), token, &shared).await,
        }
    });
    Running { addr, intake, budget, _guard: stop.clone().drop_guard(), stop, serving }
}

/// A request of `spans` spans in one trace.
pub fn request(spans: u8) -> ExportTraceServiceRequest {
    let span = |id: u8| Span {
        trace_id: vec![7; 16],
        span_id: vec![id + 1; 8],
        name: "inference.generate".to_owned(),
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_001_000_000_000,
        ..Span::default()
    };
    let scope = ScopeSpans { spans: (0..spans).map(span).collect(), ..ScopeSpans::default() };
    let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource] }
}

/// A request of exactly `bytes` bytes: one span with a long name.
pub fn request_of(bytes: usize) -> ExportTraceServiceRequest {
    use prost::Message;
    let mut found = request(1);
    let mut length = bytes;
    while found.encoded_len() != bytes {
        let overhead = found.encoded_len().saturating_sub(bytes);
        length -= overhead.max(1);
        found.resource_spans[0].scope_spans[0].spans[0].name = "x".repeat(length);
    }
    found
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("a vector takes everything")
}

pub fn overloaded() -> Refusal {
    let message = "the queue is full: 8 of 8 MiB (--queue-bytes)".to_owned();
    Refusal::Overloaded { message, retry_after: Duration::from_millis(2500) }
}

pub fn unavailable() -> Refusal {
    Refusal::Unavailable { message: "the database is unavailable".to_owned(), retry_after: Duration::from_secs(5) }
}
