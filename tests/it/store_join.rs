//! Claiming settled traces and writing their requests.

use model::{
    ClientSide, Completeness, Dimension, Dimensions, Flag, Flags, JoinMethod, Nanos, Rates, Request, ResultClass,
    ServerPhases, ServerSide, SpanId, State, StreamSummary, TtftPhases, UnixNanos,
};
use tracejoin::store::{Arrival, Claim, OVERFLOW_DIMS, RequestRow, Store, StoreOptions};

use crate::store_support::{both, native_spans, options, record, settled, store, store_with, trace};

async fn claim(store: &Store, now: UnixNanos) -> Option<Claim> {
    let buckets = store.due_buckets(now).await.expect("buckets");
    let bucket = *buckets.first()?;
    store.claim(bucket, now, 100).await.expect("a claim")
}

fn labels(model: &str) -> Dimensions {
    let mut labels = Dimensions::default();
    labels.set(Dimension::Model, Some(model));
    labels
}

/// A request that has everything; times end in whole microseconds.
fn request(number: u64, model: &str) -> Request {
    let nanos = |number: i64| Some(Nanos(number));
    let phases = ServerPhases {
        gateway: nanos(37),
        gpu_queue: None,
        generation: nanos(1210),
        prefill: nanos(10),
        decode: nanos(1200),
        provider: Nanos(0),
        upstream_envelope: Nanos(-1),
        unattributed: Nanos(16),
    };
    let mut all = labels(model);
    all.set(Dimension::Pool, Some("a100"));
    Request {
        trace_id: trace(number),
        server_trace: Some(trace(number + 1)),
        request_id: Some("req_0001".to_owned()),
        client_span: Some(SpanId::from_bytes([0xff; 8]).expect("not zero")),
        window_at: UnixNanos(1_767_323_045_000_001_000),
        state: State::Matched,
        result: Some(ResultClass::Truncated),
        flags: [Flag::QueueUnknown, Flag::TextRepaired].into_iter().collect(),
        join_method: JoinMethod::RequestId,
        client: Some(ClientSide {
            duration: nanos(1),
            wall: nanos(2),
            setup: nanos(3),
            ttft: nanos(4),
            ttft_visible: nanos(5),
            headers: nanos(6),
            client_queue: nanos(7),
            status: Some(200),
        }),
        server: Some(ServerSide {
            entry: SpanId::from_bytes([1; 8]).expect("not zero"),
            total: Nanos(8),
            ttft: nanos(9),
        }),
        network_envelope: nanos(-10),
        wall_envelope: nanos(11),
        phases: Some(phases),
        ttft: Some(TtftPhases { envelope: Nanos(12), server: ServerPhases { gateway: None, ..phases } }),
        rates: Rates {
            rate_e2e: Some(1.5),
            rate_stream: Some(2.5),
            rate_after_first: Some(3.5),
            tpot_ms: Some(4.5),
            generation_ms_per_output_token: Some(0.1),
        },
        stream: Some(StreamSummary {
            business_events: Some(180),
            batched_events: Some(3),
            p50_gap: nanos(13),
            p95_gap: nanos(14),
            p99_gap: nanos(15),
            max_gap: nanos(16),
            gaps_over_1s: Some(0),
            missing_seq: Some(2),
            ..StreamSummary::default()
        }),
        completeness: Some(Completeness::Both),
        input_tokens: Some(412),
        output_tokens: Some(1 << 40),
        client_dimensions: labels(model),
        dimensions: all,
    }
}

/// A request of which nothing but its existence is known.
fn bare(number: u64) -> Request {
    Request {
        server_trace: None,
        request_id: None,
        client_span: None,
        state: State::Excluded,
        result: None,
        flags: Flags::NONE,
        join_method: JoinMethod::TraceId,
        client: None,
        server: None,
        network_envelope: None,
        wall_envelope: None,
        phases: None,
        ttft: None,
        rates: Rates::default(),
        stream: None,
        completeness: None,
        input_tokens: None,
        output_tokens: None,
        client_dimensions: Dimensions::default(),
        dimensions: Dimensions::default(),
        ..request(number, "")
    }
}

#[tokio::test]
async fn a_settled_trace_is_claimed_once_and_joined() {
    let (_database, store) = store().await;
    let at = UnixNanos::now();
    store.submit(both(1)).await.expect("committed");
    assert!(claim(&store, UnixNanos::now()).await.is_none(), "it has not settled");
    assert_eq!(store.unsettled_records().await.expect("a number"), 1);

    let mut claim_of_one = claim(&store, settled()).await.expect("it has settled");
    let key = *trace(1).as_bytes();
    assert_eq!(claim_of_one.keys(), [key]);
    for bucket in 0..tracejoin::store::BUCKETS {
        assert!(store.claim(bucket, settled(), 10).await.expect("an answer").is_none(), "bucket {bucket} is taken");
    }
    let arrivals = claim_of_one.arrivals().await.expect("arrivals");
    let found = &arrivals[&key];
    assert_eq!(found.fragments.len(), 1);
    assert_eq!(found.fragments[0].spans.len(), 6);
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.records[0].record.trace_id, trace(1));
    assert!(found.first_arrival >= at - Nanos(1000) && found.first_arrival == found.last_arrival);

    let row = RequestRow::new(request(1, "m-7b"), found.first_arrival, 1);
    assert_eq!(claim_of_one.existing_rows(&[trace(1)]).await.expect("rows"), []);
    claim_of_one.replace(&[trace(1)], vec![row.clone()]).await.expect("written");
    claim_of_one.commit().await.expect("committed");
    assert_eq!(store.rows_of(trace(1)).await.expect("rows"), [row]);
    assert_eq!(store.unsettled_records().await.expect("a number"), 0);
    assert!(claim(&store, settled()).await.is_none(), "nothing is left to do");
}

#[tokio::test]
async fn a_request_without_anything_is_read_as_it_was_written() {
    let (_database, store) = store().await;
    store.submit(both(1)).await.expect("committed");
    let mut claimed = claim(&store, settled()).await.expect("it has settled");
    let arrivals = claimed.arrivals().await.expect("arrivals");
    let row = RequestRow::new(bare(1), arrivals[trace(1).as_bytes()].first_arrival, 1);
    claimed.replace(&[trace(1)], vec![row.clone()]).await.expect("written");
    claimed.commit().await.expect("committed");
    assert_eq!(store.rows_of(trace(1)).await.expect("rows"), [row]);
}

#[tokio::test]
async fn a_claim_that_is_dropped_leaves_everything_as_it_was() {
    let (_database, store) = store().await;
    store.submit(both(1)).await.expect("committed");
    for _ in 0..6 {
        // More often than there are connections: none of them comes back unusable.
        let mut dropped = claim(&store, settled()).await.expect("the work is still there");
        let arrivals = dropped.arrivals().await.expect("arrivals");
        let row = RequestRow::new(request(1, "m-7b"), arrivals[trace(1).as_bytes()].first_arrival, 1);
        dropped.replace(&[trace(1)], vec![row]).await.expect("written");
        drop(dropped);
        // The server ends the transaction when it notices that the connection is gone.
        while claim_is_held(&store).await {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(store.rows_of(trace(1)).await.expect("rows"), []);
    assert_eq!(store.unsettled_records().await.expect("a number"), 1);
}

async fn claim_is_held(store: &Store) -> bool {
    claim(store, settled()).await.is_none()
}

#[tokio::test]
async fn late_data_replaces_the_row() {
    let (_database, store) = store().await;
    store.submit(vec![Arrival::spans(trace(1), &native_spans(1, UnixNanos::now()))]).await.expect("committed");
    let mut first = claim(&store, settled()).await.expect("it has settled");
    let arrived_at = first.arrivals().await.expect("arrivals")[trace(1).as_bytes()].first_arrival;
    let row = RequestRow::new(bare(1), arrived_at, 1);
    first.replace(&[trace(1)], vec![row.clone()]).await.expect("written");
    first.commit().await.expect("committed");

    store.submit(vec![Arrival::record(&record(1, UnixNanos::now()))]).await.expect("committed");
    let mut second = claim(&store, settled()).await.expect("it has settled");
    let arrivals = second.arrivals().await.expect("arrivals");
    let found = &arrivals[trace(1).as_bytes()];
    assert_eq!((found.fragments.len(), found.records.len(), found.first_arrival), (1, 1, arrived_at));
    assert_eq!(second.existing_rows(&[trace(1)]).await.expect("rows"), [row]);
    let better = RequestRow::new(request(1, "m-7b"), arrived_at, 2);
    second.replace(&[trace(1)], vec![better.clone()]).await.expect("written");
    second.commit().await.expect("committed");
    assert_eq!(store.rows_of(trace(1)).await.expect("rows"), [better]);
}

#[tokio::test]
async fn the_content_digest_ignores_only_that_a_row_came_late() {
    let content = |request: Request| RequestRow::new(request, UnixNanos(5), 1).content;
    let mut late = request(1, "m-7b");
    late.flags.set(Flag::Late);
    assert_eq!(content(late), content(request(1, "m-7b")));
    assert_ne!(content(request(1, "m-13b")), content(request(1, "m-7b")));
    let mut slower = request(1, "m-7b");
    slower.network_envelope = Some(Nanos(-9));
    assert_ne!(content(slower), content(request(1, "m-7b")));
}

#[tokio::test]
async fn a_requeued_trace_comes_back_when_it_is_due() {
    let (_database, store) = store().await;
    store.submit(both(1)).await.expect("committed");
    let due_at = settled() + Nanos(3_600_000_000_000);
    let mut claimed = claim(&store, settled()).await.expect("it has settled");
    claimed.arrivals().await.expect("arrivals");
    claimed.requeue(*trace(1).as_bytes(), due_at);
    claimed.commit().await.expect("committed");
    assert_eq!(store.unsettled_records().await.expect("a number"), 0, "its row says that it is pending");
    assert!(claim(&store, due_at - Nanos(1_000_000)).await.is_none(), "not yet");
    let mut again = claim(&store, due_at).await.expect("it is due");
    assert_eq!(again.arrivals().await.expect("arrivals").len(), 1);
}

#[tokio::test]
async fn a_trace_that_nobody_loaded_stays_queued() {
    let (_database, store) = store().await;
    store.submit(both(1)).await.expect("committed");
    let claimed = claim(&store, settled()).await.expect("it has settled");
    assert!(claimed.has_more());
    claimed.commit().await.expect("committed");
    let mut again = claim(&store, settled()).await.expect("it is still there");
    assert_eq!(again.arrivals().await.expect("arrivals").len(), 1);
    assert!(!again.has_more());
}

#[tokio::test]
async fn label_tuples_beyond_the_cap_share_the_overflow_bucket() {
    let (_database, store) = store_with(StoreOptions { max_dimension_tuples: 2, ..options() }).await;
    for (number, model, fits) in [(1, "a", true), (2, "b", true), (3, "c", false), (4, "a", true), (5, "d", false)] {
        store.submit(both(number)).await.expect("committed");
        let mut claimed = claim(&store, settled()).await.expect("it has settled");
        let arrived_at = claimed.arrivals().await.expect("arrivals")[trace(number).as_bytes()].first_arrival;
        let row = RequestRow::new(request(number, model), arrived_at, 1);
        claimed.replace(&[trace(number)], vec![row]).await.expect("written");
        claimed.commit().await.expect("committed");
        let rows = store.rows_of(trace(number)).await.expect("rows");
        assert_eq!(rows[0].dims != OVERFLOW_DIMS, fits, "model {model}");
        assert_eq!(rows[0].request.dimensions.get(Dimension::Model), fits.then_some(model));
    }
}

#[tokio::test]
async fn of_a_trace_that_never_ends_a_bounded_part_is_loaded() {
    let (_database, store) = store().await;
    let mut fragment = native_spans(1, UnixNanos::now());
    let of_one = fragment.spans.clone();
    // About two megabytes, which do not compress to less than the bound.
    for number in 0..1_500 {
        for span in &of_one {
            let mut span = span.clone();
            span.name = format!("{number} {}", format!("{:016x}", number * 0x9e37_79b9_u64).repeat(14));
            fragment.spans.push(span);
        }
    }
    let arrival = Arrival::spans(trace(1), &fragment);
    let fits = (16 << 20) / arrival.body.len();
    for _ in 0..fits + 2 {
        store.submit(vec![arrival.clone()]).await.expect("committed");
    }
    let last = UnixNanos::now();
    store.submit(vec![arrival.clone()]).await.expect("committed");

    let held = store.trace(trace(1)).await.expect("an answer").expect("it is kept");
    assert!(held.truncated, "its flag");
    assert_eq!(held.fragments.len(), fits);
    assert!(held.last_arrival >= last - Nanos(1000), "what is left out still tells when it came");
}
