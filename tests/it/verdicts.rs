//! Verdicts over a real store: from rows, from digests and from rollups, of windows that are full and of others.

use model::{Dimension, Interval, Nanos, Request, ResultClass, State, UnixNanos};
use slo::{Gap, Objective, Status, Tally, Verdict, document};
use stats::sample::Method;
use tracejoin::objectives::assess::assess;
use tracejoin::reader::Reader;
use tracejoin::store::Store;

use crate::common::test_database;
use crate::window_support::{MINUTE, MS, NOON, WEEK, at, lone, matched, open, write};
use crate::windows::rebuild;

fn objective(spec: &str) -> Objective {
    let indented = spec.replace('\n', "\n  ");
    let text = format!("apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: judged}}\nspec:\n  {indented}\n");
    document::read(&text).expect("an objective").remove(0)
}

async fn judge(store: &Store, spec: &str, from: UnixNanos, to: UnixNanos, live: bool) -> Verdict {
    let window = Interval { start: from, end: to };
    assess(&Reader::new(store.clone()), &objective(spec), window, live).await.expect("a verdict")
}

#[tokio::test]
async fn coverage_of_62_percent_gives_no_verdict_however_slow_the_rest_is() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let slow = (0..620).map(|i| matched(i, at(i64::from(i)), 900));
    write(&store, slow.chain((620..1000).map(|i| lone(i, at(i64::from(i))))).collect()).await;
    let queue = "phase: gpu_queue\nquantile: 0.95\nthreshold_ms: 250";
    for spec in [queue.to_owned(), format!("{queue}\nwhere: {{model: m}}"), format!("{queue}\nwhere: {{pool: even}}")] {
        let verdict = judge(&store, &spec, at(0), at(1000), false).await;
        let gap = Gap::LowCoverage { coverage: Some(0.62), min_coverage: 0.9 };
        assert_eq!((verdict.status, verdict.confirmed), (Status::NoVerdict(vec![gap]), false), "{spec}");
    }
    let verdict = judge(&store, &format!("{queue}\nmin_coverage: 0.6"), at(0), at(1000), false).await;
    assert_eq!((verdict.status, verdict.confirmed), (Status::Broken, true));
    assert_eq!(verdict.evidence.tally, Tally { bad: 620, missing: 380, ..Tally::default() });
    let join = judge(&store, "phase: join_coverage\nthreshold: 0.95", at(0), at(1000), false).await;
    assert_eq!((join.status, join.evidence.value), (Status::Broken, Some(0.62)));
}

#[tokio::test]
async fn a_live_window_needs_settled_records_of_its_own_in_eight_of_ten_parts() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let mut requests: Vec<Request> = (0..140).map(|i| matched(i, at(i64::from(i) * 500), 5)).collect();
    // In the other parts there is other traffic, or it has not settled.
    requests.extend((140..150).map(|i| other_model(matched(i, at(75_000), 5))));
    requests.extend((150..160).map(|i| Request { state: State::Pending, ..matched(i, at(85_000), 5) }));
    requests.extend((160..170).map(|i| Request { result: Some(ResultClass::Error), ..matched(i, at(95_000), 5) }));
    write(&store, requests).await;
    let spec = "phase: gpu_queue\nquantile: 0.95\nthreshold_ms: 250\nwhere: {model: m}";
    let verdict = judge(&store, spec, at(0), at(100_000), true).await;
    assert_eq!(verdict.status, Status::NoVerdict(vec![Gap::WindowNotFull { filled: 0.7 }]));
    assert_eq!((verdict.evidence.n, verdict.evidence.pending), (140, 10));
    assert_eq!(judge(&store, spec, at(0), at(100_000), false).await.status, Status::Ok { at_risk: false });
    // For a share of errors an error is traffic too.
    let errors = judge(&store, "phase: error_share\nthreshold: 0.2\nwhere: {model: m}", at(0), at(100_000), true).await;
    assert_eq!((errors.evidence.filled, errors.evidence.value), (Some(0.8), Some(10.0 / 150.0)));
    assert_eq!(errors.status.name(), "ok");
}

fn other_model(mut request: Request) -> Request {
    request.client_dimensions.set(Dimension::Model, Some("other"));
    request.dimensions.set(Dimension::Model, Some("other"));
    request
}

/// 12,000 requests in four minutes, a tenth of them lost in time; waits are spread evenly over three seconds.
fn many() -> Vec<Request> {
    let request = |i: u32| {
        let request = matched(i, at(i64::from(i) * 20 + 7), i64::from(i.wrapping_mul(7919) % 3000));
        let timed_out = i.is_multiple_of(10);
        Request { result: Some(if timed_out { ResultClass::Timeout } else { ResultClass::Ok }), ..request }
    };
    (0..12_000).map(request).collect()
}

#[tokio::test]
async fn a_large_window_is_judged_from_digests_and_rollups_say_the_same() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, many()).await;
    let (from, to) = (NOON, NOON + Nanos(4 * MINUTE));
    let spec = |threshold: u32| format!("phase: gpu_queue\nquantile: 0.9\nthreshold_ms: {threshold}");
    let mut from_rows = Vec::new();
    for threshold in [2600, 2726, 2900] {
        from_rows.push(judge(&store, &spec(threshold), from, to, false).await);
    }
    let [broken, edge, held] = from_rows.as_slice() else { panic!("three verdicts") };
    assert_eq!((&broken.status, broken.confirmed), (&Status::Broken, true));
    // Nearer to the threshold than the digest can tell: the interval is wider, and nothing is confirmed.
    assert!(!edge.confirmed && edge.status != Status::Ok { at_risk: false }, "{edge:?}");
    assert_eq!(held.status, Status::Ok { at_risk: false });
    for (verdict, threshold) in from_rows.iter().zip([2600, 2726, 2900_u32]) {
        let evidence = &verdict.evidence;
        assert_eq!(evidence.method, Method::Digest);
        // What the requests themselves are, counted one by one.
        let waits = many().into_iter().map(|request| {
            let wait = request.phases.and_then(|phases| phases.gpu_queue).expect("a wait");
            (request.result == Some(ResultClass::Timeout), wait > Nanos(i64::from(threshold) * MS))
        });
        let mut exact = Tally::default();
        for (cut_off, past) in waits {
            match (cut_off, past) {
                (_, true) => exact.bad += 1,
                (true, false) => exact.left_out += 1,
                (false, false) => exact.good += 1,
            }
        }
        let off = evidence.tally.good.abs_diff(exact.good).max(evidence.tally.bad.abs_diff(exact.bad));
        assert!(off <= evidence.rank_error, "{off} of {}: {:?} for {exact:?}", evidence.rank_error, evidence.tally);
    }
    assert_eq!(rebuild(&store).await.built, 4);
    for (verdict, threshold) in from_rows.iter().zip([2600, 2726, 2900]) {
        assert_eq!(&judge(&store, &spec(threshold), from, to, false).await, verdict);
    }
    // A live window never reaches beyond its end, though it is served in whole minutes; these are few enough for rows.
    let live = judge(&store, &spec(2600), at(30_000), at(230_000), true).await;
    assert_eq!(live.evidence.window, Interval { start: at(30_000), end: at(180_000) });
    assert_eq!(live.evidence.n + live.evidence.tally.left_out, 7_500);
    // Counts stay exact: they are in no digest.
    let timeouts = judge(&store, "phase: timeout_share\nthreshold: 0.05", from, to, false).await;
    assert_eq!((timeouts.evidence.value, timeouts.evidence.method), (Some(0.1), Method::Exact));
    assert_eq!((timeouts.status, timeouts.confirmed), (Status::Broken, true));
}

#[tokio::test]
async fn the_unattributed_share_is_of_all_time_or_of_each_request() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let request = |i: u32| {
        let mut request = matched(i, at(i64::from(i)), 480);
        let unattributed = Nanos(if i < 150 { 0 } else { 3000 * MS });
        request.phases = request.phases.map(|phases| model::ServerPhases { unattributed, ..phases });
        request.server = request.server.map(|side| model::ServerSide { total: side.total + unattributed, ..side });
        request
    };
    write(&store, (0..200).map(request).collect()).await;
    let pooled = judge(&store, "phase: unattributed_share\nthreshold: 0.25", at(0), at(1000), false).await;
    // 50 times 3000 ms of 200 times 1000 ms and that.
    assert_eq!((pooled.evidence.value, pooled.status, pooled.evidence.n), (Some(150.0 / 350.0), Status::Broken, 200));
    let each = "phase: unattributed_share\nthreshold: 0.25\nquantile: ";
    let median = judge(&store, &format!("{each}0.5"), at(0), at(1000), false).await;
    assert_eq!((median.evidence.value, median.status), (Some(0.0), Status::Ok { at_risk: false }));
    let p95 = judge(&store, &format!("{each}0.95"), at(0), at(1000), false).await;
    assert_eq!((p95.evidence.value, p95.status, p95.confirmed), (Some(0.75), Status::Broken, true));
}
