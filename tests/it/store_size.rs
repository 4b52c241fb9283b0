//! What a request costs on disk, indexes included.

use model::TraceArrivals;
use model::{
    ClientSide, Dimension, Dimensions, Flags, JoinMethod, Nanos, Rates, Request, ResultClass, ServerPhases, ServerSide,
    State, UnixNanos,
};
use tracejoin::store::{Arrival, RequestRow, Store};

use crate::store_support::{beside, native_spans, record, settled, store, trace};

const REQUESTS: u64 = 10_000;
/// The budget for six native spans, their client record and the joined request.
const MOST_BYTES: i64 = 900;

/// What joining makes of the sample: every phase is known but `prefill` and `decode`, and nothing was streamed.
fn joined(number: u64, arrivals: &TraceArrivals) -> Request {
    let record = &arrivals.records[0].record;
    let mut dimensions = Dimensions::default();
    dimensions.set(Dimension::Model, Some("m-7b"));
    let known = |nanos: u64| Some(Nanos((nanos + number) as i64));
    Request {
        trace_id: trace(number),
        server_trace: None,
        request_id: record.request_id.clone(),
        client_span: record.span_id,
        window_at: record.started_at.expect("told"),
        state: State::Matched,
        result: Some(ResultClass::Ok),
        flags: Flags::NONE,
        join_method: JoinMethod::TraceId,
        client: Some(ClientSide {
            duration: record.duration,
            setup: record.setup.total(),
            headers: record.headers,
            status: record.status,
            ..ClientSide::default()
        }),
        server: Some(ServerSide { entry: arrivals.fragments[0].spans[0].span_id, total: Nanos(1), ttft: None }),
        network_envelope: known(151_000_000),
        wall_envelope: None,
        phases: Some(ServerPhases {
            gateway: known(37_000_000),
            gpu_queue: known(428_000_000),
            generation: known(1_210_000_000),
            unattributed: Nanos(16_000_000),
            ..ServerPhases::default()
        }),
        ttft: None,
        rates: Rates { rate_e2e: Some(97.7), generation_ms_per_output_token: Some(number as f64), ..Rates::default() },
        stream: None,
        completeness: None,
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
        client_dimensions: dimensions.clone(),
        dimensions,
    }
}

/// Joins all that waits, as the joiner does every so often.
async fn join_waiting(store: &Store) -> u64 {
    let mut written = 0;
    for bucket in store.due_buckets(settled()).await.expect("buckets") {
        let mut claim = store.claim(bucket, settled(), 1000).await.expect("an answer").expect("work");
        let arrivals = claim.arrivals().await.expect("arrivals");
        let rows: Vec<RequestRow> = (0..REQUESTS)
            .filter_map(|n| {
                let found = arrivals.get(trace(n).as_bytes())?;
                Some(RequestRow::new(joined(n, found), found.first_arrival, 1))
            })
            .collect();
        written += rows.len() as u64;
        claim.replace(&[], rows).await.expect("written");
        claim.commit().await.expect("committed");
    }
    written
}

#[tokio::test]
async fn a_joined_request_stays_within_its_budget_on_disk() {
    let (database, store) = store().await;
    let start = UnixNanos::now();
    let mut written = 0;
    for batch in 0..REQUESTS / 100 {
        let numbers = batch * 100..(batch + 1) * 100;
        let at = |number: u64| start + Nanos(number as i64 * 1_000_000);
        let spans = numbers.clone().map(|n| Arrival::spans(trace(n), &native_spans(n, at(n)))).collect();
        store.submit(spans).await.expect("committed");
        store.submit(numbers.map(|n| Arrival::record(&record(n, at(n)))).collect()).await.expect("committed");
        if batch % 10 == 9 {
            written += join_waiting(&store).await;
        }
    }
    assert_eq!(written, REQUESTS);
    let mut connection = beside(&database).await;
    let sizes: Vec<(String, i64, i64)> = sqlx::query_as(
        "select inhparent::regclass::text, sum(pg_relation_size(inhrelid))::int8, sum(pg_indexes_size(inhrelid))::int8
         from pg_inherits where inhparent in ('arrival'::regclass, 'request'::regclass) group by 1 order by 1",
    )
    .fetch_all(&mut connection)
    .await
    .expect("sizes");
    let requests = REQUESTS as i64;
    let mut total = 0;
    for (table, heap, indexes) in sizes {
        println!("{table}: {} bytes a request, and {} in indexes", heap / requests, indexes / requests);
        total += (heap + indexes) / requests;
    }
    println!("together: {total} bytes a request");
    assert!(total <= MOST_BYTES, "{total} bytes a request");
}
