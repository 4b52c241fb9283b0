//! What tests of windows share: requests at given times, written as a joiner writes them.

use std::time::Duration;

use model::{
    ClientRecord, ClientSide, Dimension, Dimensions, Flags, JoinMethod, Nanos, Rates, Request, ResultClass,
    ServerPhases, ServerSide, Slice, SpanId, State, TraceId, UnixNanos,
};
use tracejoin::store::{Arrival, RequestRow, Store, StoreOptions};

pub const MS: i64 = 1_000_000;
pub const MINUTE: i64 = Slice::MINUTE.0;
/// A whole minute, so that tests can reckon with it.
pub const NOON: UnixNanos = UnixNanos(1_767_355_200_000_000_000);
pub const SETTLE: Duration = Duration::from_secs(1);
pub const WEEK: Duration = Duration::from_secs(7 * 86_400);

pub async fn open(url: &str, retention: Duration) -> Store {
    let options = StoreOptions { settle: SETTLE, allow_fsync_off: true, retention, ..StoreOptions::default() };
    Store::connect(url, options).await.expect("a store")
}

pub fn trace(number: u32) -> TraceId {
    TraceId::from_bytes(u128::from(number + 1).to_be_bytes()).expect("not zero")
}

pub fn at(millis: i64) -> UnixNanos {
    NOON + Nanos(millis * MS)
}

/// A matched request of model `m` whose queue is `queue` ms.
pub fn matched(number: u32, at: UnixNanos, queue: i64) -> Request {
    let mut labels = Dimensions::default();
    labels.set(Dimension::Model, Some("m"));
    let mut all = labels.clone();
    all.set(Dimension::Pool, Some(if number.is_multiple_of(2) { "even" } else { "odd" }));
    let phases = ServerPhases {
        gateway: Some(Nanos(20 * MS)),
        gpu_queue: Some(Nanos(queue * MS)),
        generation: Some(Nanos(500 * MS)),
        ..ServerPhases::default()
    };
    let entry = SpanId::from_bytes([1; 8]).expect("not zero");
    let duration = Some(Nanos((queue + 550) * MS));
    Request {
        trace_id: trace(number),
        server_trace: None,
        request_id: None,
        client_span: None,
        window_at: at,
        state: State::Matched,
        result: Some(ResultClass::Ok),
        flags: Flags::NONE,
        join_method: JoinMethod::TraceId,
        client: Some(ClientSide { duration, ..ClientSide::default() }),
        server: Some(ServerSide { entry, total: phases.total(), ttft: None }),
        network_envelope: Some(Nanos(30 * MS)),
        wall_envelope: None,
        phases: Some(phases),
        ttft: None,
        rates: Rates { rate_e2e: Some(f64::from(number)), ..Rates::default() },
        stream: None,
        completeness: None,
        input_tokens: None,
        output_tokens: None,
        client_dimensions: labels,
        dimensions: all,
    }
}

/// The same where no spans came, so that nobody tells the pool.
pub fn lone(number: u32, at: UnixNanos) -> Request {
    let request = matched(number, at, 50);
    Request {
        state: State::ClientOnly,
        server: None,
        network_envelope: None,
        phases: None,
        dimensions: request.client_dimensions.clone(),
        ..request
    }
}

/// Stores requests as a joiner does, in place of those of the same traces.
pub async fn write(store: &Store, requests: Vec<Request>) {
    let seed = trace(u32::MAX - 1);
    store.submit(vec![Arrival::record(&record(seed))]).await.expect("a commit");
    let later = UnixNanos::now() + Nanos(60_000_000_000);
    let bucket = store.due_buckets(later).await.expect("buckets")[0];
    let mut claim = store.claim(bucket, later, 100).await.expect("the database").expect("work that is due");
    let first_arrival = claim.arrivals().await.expect("arrivals")[seed.as_bytes()].first_arrival;
    let traces: Vec<TraceId> = requests.iter().map(|request| request.trace_id).collect();
    claim.existing_rows(&traces).await.expect("rows");
    let rows = requests.into_iter().map(|request| RequestRow::new(request, first_arrival, 1)).collect();
    claim.replace(&traces, rows).await.expect("rows written");
    claim.commit().await.expect("a commit");
}

fn record(trace_id: TraceId) -> ClientRecord {
    ClientRecord { duration: Some(Nanos(1)), ..ClientRecord::unmeasured(trace_id, ResultClass::Ok) }
}
