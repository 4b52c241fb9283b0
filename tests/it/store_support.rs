//! What the store's tests share: sample data, and a connection beside the store's own.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use model::{
    Attributes, ClientRecord, Dimensions, Fragment, Nanos, Resource, ResultClass, Scope, Setup, Span, SpanId, SpanKind,
    TraceId, UnixNanos, Value,
};
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tracejoin::store::{Arrival, Store, StoreOptions};

use crate::common::{TestDatabase, test_database};

/// Short enough not to wait for, long enough that a claim "now" finds nothing settled.
pub const SETTLE: Duration = Duration::from_secs(30);

pub fn options() -> StoreOptions {
    StoreOptions { settle: SETTLE, max_connections: 4, allow_fsync_off: true, ..StoreOptions::default() }
}

pub async fn store() -> (TestDatabase, Store) {
    store_with(options()).await
}

pub async fn store_with(options: StoreOptions) -> (TestDatabase, Store) {
    let database = test_database().await;
    let store = Store::connect(&database.url, options).await.expect("a store");
    (database, store)
}

/// A connection to the test's own database.
pub async fn beside(database: &TestDatabase) -> PgConnection {
    PgConnection::connect(&database.url).await.expect("a connection")
}

/// A connection to the same server, and the name of the test's database.
pub async fn outside(database: &TestDatabase) -> (PgConnection, String) {
    let options = PgConnectOptions::from_str(&database.url).expect("a URL");
    let name = options.get_database().expect("a name").to_owned();
    let connection = PgConnection::connect_with(&options.database("postgres")).await.expect("a connection");
    (connection, name)
}

/// When everything that has arrived so far is settled.
pub fn settled() -> UnixNanos {
    UnixNanos::now() + Nanos(SETTLE.as_nanos() as i64)
}

/// An id that looks random, as real ones are (the finaliser of SplitMix64).
pub fn trace(number: u64) -> TraceId {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let spread = u128::from(mixed ^ (mixed >> 31)) << 64 | u128::from(number + 1);
    TraceId::from_bytes(spread.to_be_bytes()).expect("not zero")
}

fn span_id(number: u64) -> SpanId {
    SpanId::from_bytes(number.to_be_bytes()).expect("not zero")
}

fn attributes(pairs: &[(&'static str, Value)]) -> Attributes {
    Attributes::new(pairs.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
}

/// Six spans in the native schema, as a gateway with one engine sends them.
pub fn native_spans(number: u64, at: UnixNanos) -> Fragment {
    let text = |text: &str| Value::Str(text.to_owned());
    let resource = Arc::new(Resource {
        attributes: attributes(&[
            ("service.name", text("llm-gateway")),
            ("service.instance.id", text("gateway-7d9f8b6c5-x2x4q")),
        ]),
        digest: 0x1234_5678_9abc_def0,
    });
    let scope = Arc::new(Scope { name: "gateway".to_owned() });
    let ids = number.wrapping_mul(0xd134_2543_de82_ef95) | 1;
    let client = number.wrapping_mul(0xa076_1d64_78bd_642f) | 1;
    let span = |place: u64, name: &str, kind: SpanKind, pairs: &[(&'static str, Value)]| Span {
        span_id: span_id(ids.wrapping_add(place << 8)),
        parent: Some(span_id(if place == 0 { client } else { ids })),
        name: name.to_owned(),
        kind,
        start: at + Nanos((place * 17_234_567 + number % 1_000_003) as i64),
        end: Some(at + Nanos((place * 20_234_567 + 428_000_000 + number % 999_983) as i64)),
        attributes: attributes(pairs),
        events: Vec::new(),
        error: false,
        repaired: false,
        scope: scope.clone(),
        resource: resource.clone(),
    };
    let answer = [
        ("llm.phase", text("generation")),
        ("llm.model", text("m-7b")),
        ("gen_ai.usage.input_tokens", Value::Int(412)),
        ("gen_ai.usage.output_tokens", Value::Int(180)),
    ];
    let route = [
        ("http.request.method", text("POST")),
        ("http.route", text("/v1/chat/completions")),
        ("http.response.status_code", Value::Int(200)),
    ];
    let spans = vec![
        span(0, "POST /v1/chat/completions", SpanKind::Server, &route),
        span(1, "auth.check", SpanKind::Internal, &[]),
        span(2, "request.prepare", SpanKind::Internal, &[]),
        span(3, "inference.acquire_slot", SpanKind::Internal, &[("llm.phase", text("queue"))]),
        span(4, "inference.generate", SpanKind::Client, &answer),
        span(5, "response.write", SpanKind::Internal, &[]),
    ];
    Fragment { spans, dropped: 0 }
}

/// The client's record of the same request.
pub fn record(number: u64, at: UnixNanos) -> ClientRecord {
    let millis = |millis: f64| Nanos::from_millis(millis);
    let mut dimensions = Dimensions::default();
    dimensions.set(model::Dimension::Model, Some("m-7b"));
    ClientRecord {
        trace_id: trace(number),
        span_id: Some(span_id(number.wrapping_mul(0xa076_1d64_78bd_642f) | 1)),
        sampled: Some(true),
        request_id: None,
        started_at: Some(at),
        duration: Some(Nanos(1_842_000_000 + (number % 7919) as i64)),
        wall: None,
        setup: Setup { blocked: millis(0.1), dns: millis(0.0), connect: millis(0.4), tls: millis(3.2) },
        client_queue: None,
        headers: millis(640.1),
        sending: millis(0.1),
        waiting: millis(640.0),
        receiving: millis(1201.9),
        ttft: None,
        ttft_visible: None,
        streaming: Some(false),
        status: Some(200),
        result: ResultClass::Ok,
        error: None,
        input_tokens: Some(412),
        output_tokens: Some(180),
        stream: None,
        response_metrics: None,
        headers_only: false,
        cold_start: None,
        run: Some("run-2026-11-29".to_owned()),
        scenario: Some("steady".to_owned()),
        dimensions,
    }
}

/// Both sides of a request.
pub fn both(number: u64) -> Vec<Arrival> {
    let at = UnixNanos::now();
    vec![Arrival::spans(trace(number), &native_spans(number, at)), Arrival::record(&record(number, at))]
}
