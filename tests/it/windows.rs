//! Questions about windows over a real store: rows, rollups and what follows a late change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    ClientSide, Completeness, Dimension, Flag, GroupKey, Interval, Metric, Nanos, Observation, Order, OrderKey,
    Request, ResultClass, Selection, State, StreamSummary, UnixNanos,
};
use sqlx::{Connection, PgConnection};
use stats::sample::Method;
use stats::stream::{Output, Rhythm};
use stats::summary::Summary;
use stats::{Answer, Quantile, Question};
use tracejoin::reader::{MAX_GROUPS, ReadError, Reader};
use tracejoin::store::{RequestRow, Store};
use tracejoin::workers::rollup::{Rebuilt, Rollups};

use crate::common::test_database;
use crate::window_support::{MINUTE, MS, NOON, WEEK, at, lone, matched, open, trace, write};

fn question(from: UnixNanos, to: UnixNanos, filters: &[(Dimension, &str)], group_by: &[Dimension]) -> Question {
    let wanted = |(label, value): &(Dimension, &str)| (*label, BTreeSet::from([(*value).to_owned()]));
    let selection = Selection {
        window: Interval { start: from, end: to },
        filters: filters.iter().map(wanted).collect::<BTreeMap<_, _>>(),
        results: BTreeSet::from([ResultClass::Ok]),
    };
    let group_by = group_by.iter().copied().map(GroupKey::Dimension).collect();
    Question { selection, group_by, quantiles: Quantile::DEFAULT.to_vec() }
}

async fn ask(store: &Store, question: &Question) -> (Interval, Answer) {
    let window = Reader::new(store.clone()).contents(question).await.expect("a window");
    (window.served, question.answer(&window.contents))
}

fn summary(answer: &Answer, group: usize, metric: Metric) -> &Summary {
    &answer.groups[group].metrics.iter().find(|(other, _)| *other == metric).expect("the metric").1
}

pub async fn rebuild(store: &Store) -> Rebuilt {
    let rollups = Rollups::new(store.clone());
    let mut all = Rebuilt::default();
    loop {
        let now = UnixNanos::now() + Nanos(1_000_000);
        let round = rollups.rebuild(now, Duration::ZERO, Duration::ZERO).await.expect("rollups");
        if round.due == 0 {
            return all;
        }
        all.due += round.due;
        all.built += round.built;
    }
}

#[tokio::test]
async fn a_small_window_is_exact_and_is_the_one_asked_for() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let mut requests: Vec<Request> = (1..=400).map(|i| matched(i, at(i64::from(i)), i64::from(i))).collect();
    requests.extend((401..=425).map(|i| lone(i, at(5))));
    for i in 426..=428 {
        let mut excluded = matched(i, at(5), 50);
        excluded.state = State::Excluded;
        excluded.flags.set(Flag::NegativeEnvelope);
        requests.push(excluded);
    }
    requests.push(matched(429, at(90_000), 9999));
    write(&store, requests).await;

    let (served, answer) = ask(&store, &question(at(0), at(1000), &[(Dimension::Model, "m")], &[])).await;
    assert_eq!(served, Interval { start: at(0), end: at(1000) });
    let tally = &answer.coverage.tally;
    assert_eq!((tally.client_records(), tally.matched(), tally.client_only()), (428, 400, 25));
    assert_eq!(tally.excluded(), &BTreeMap::from([(Flag::NegativeEnvelope, 3)]));
    let queue = summary(&answer, 0, Metric::GpuQueue);
    assert_eq!((queue.n, queue.method, queue.mean), (400, Method::Exact, Some(200.5e6)));
    let values: Vec<_> = queue.quantiles.iter().map(|quantile| quantile.value).collect();
    assert_eq!(values, [Some(200e6), Some(380e6), Some(396e6)]);
    assert_eq!(summary(&answer, 0, Metric::RateE2e).max, Some(425.0));

    let (_, later) = ask(&store, &question(at(1000), at(120_000), &[], &[])).await;
    assert_eq!(summary(&later, 0, Metric::GpuQueue).max, Some(9999e6));
}

#[tokio::test]
async fn a_label_that_only_servers_tell_leaves_the_coverage_whole() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, (1..=10).map(|i| matched(i, at(1), 5)).chain((11..=14).map(|i| lone(i, at(1)))).collect()).await;
    let (_, answer) = ask(&store, &question(at(0), at(1000), &[(Dimension::Pool, "even")], &[])).await;
    assert_eq!(answer.coverage.not_filtered_by, [Dimension::Pool]);
    assert_eq!((answer.groups[0].n, answer.coverage.tally.client_records()), (5, 14));
    let (_, nothing) = ask(&store, &question(at(0), at(1000), &[(Dimension::Model, "x")], &[])).await;
    assert_eq!((nothing.groups[0].n, nothing.coverage.tally.client_records()), (0, 0));
}

/// 12,000 requests in four minutes: two pools of 6,000, which are small groups, and one of 12,000 without grouping.
fn many() -> Vec<Request> {
    (0..12_000_u32).map(|i| matched(i, at(i64::from(i) * 20 + 7), i64::from(i.wrapping_mul(7919) % 3000))).collect()
}

#[tokio::test]
async fn rollups_answer_as_the_rows_do_and_follow_a_late_change() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, many()).await;
    let whole = question(at(30_000), at(230_000), &[], &[]);
    let grouped = question(at(30_000), at(230_000), &[], &[Dimension::Pool]);

    let (served, from_rows) = ask(&store, &whole).await;
    assert_eq!(served, Interval { start: NOON, end: NOON + Nanos(4 * MINUTE) });
    let queue = summary(&from_rows, 0, Metric::GpuQueue);
    assert_eq!((queue.n, queue.method), (12_000, Method::Digest));
    let p50 = queue.quantiles[0].value.expect("a median");
    assert!((p50 - 1500e6).abs() < 30e6, "{p50}");
    let (_, pools_from_rows) = ask(&store, &grouped).await;
    assert_eq!(summary(&pools_from_rows, 0, Metric::GpuQueue).method, Method::Exact);

    assert_eq!(rebuild(&store).await, Rebuilt { due: 4, built: 4 });
    assert_eq!(ask(&store, &whole).await, (served, from_rows.clone()));
    assert_eq!(ask(&store, &grouped).await, (served, pools_from_rows));
    // Nothing changed: the same bytes again.
    assert_eq!(rebuild(&store).await, Rebuilt { due: 0, built: 0 });

    // A late change moves one request to the next minute and makes it the slowest of all.
    write(&store, vec![matched(0, at(65_000), 77_777)]).await;
    let (_, changed) = ask(&store, &whole).await;
    assert_eq!(summary(&changed, 0, Metric::GpuQueue).max, Some(77_777e6));
    assert_eq!(summary(&changed, 0, Metric::GpuQueue).n, 12_000);
    assert_eq!(rebuild(&store).await.built, 2);
    assert_eq!(ask(&store, &whole).await.1, changed);
}

#[tokio::test]
async fn rollups_outlive_their_rows_and_are_not_built_from_what_is_left() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, (1..=50).map(|i| matched(i, at(i64::from(i)), i64::from(i))).collect()).await;
    assert_eq!(rebuild(&store).await.built, 1);
    let mut beside = PgConnection::connect(&database.url).await.expect("a connection");
    sqlx::query("delete from request").execute(&mut beside).await.expect("rows deleted");
    sqlx::query("insert into rollup_dirty select day, minute, now() from rollup")
        .execute(&mut beside)
        .await
        .expect("marks");

    let after_retention = open(&database.url, Duration::ZERO).await;
    assert_eq!(rebuild(&after_retention).await.built, 0);
    let (served, answer) = ask(&after_retention, &question(at(10), at(20), &[], &[])).await;
    assert_eq!(served, Interval { start: NOON, end: NOON + Nanos(MINUTE) });
    let queue = summary(&answer, 0, Metric::GpuQueue);
    assert_eq!((queue.n, queue.method, queue.max), (50, Method::Digest, Some(50e6)));
}

#[tokio::test]
async fn two_instances_share_the_building_of_rollups() {
    let database = test_database().await;
    let (one, other) = (open(&database.url, WEEK).await, open(&database.url, WEEK).await);
    write(&one, many()).await;
    let now = UnixNanos::now() + Nanos(1_000_000);
    let due = one.due_rollups(now, Duration::ZERO, Duration::ZERO, 10).await.expect("slices");
    assert_eq!(due.len(), 4);
    let held = one.claim_rollup(due[0], now).await.expect("the database").expect("a claim");
    assert!(other.claim_rollup(due[0], now).await.expect("the database").is_none());
    drop(held);
    assert_eq!(rebuild(&other).await.built, 4);
}

#[tokio::test]
async fn marks_wait_until_their_slice_is_quiet() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, vec![matched(1, at(1), 5)]).await;
    let now = UnixNanos::now();
    let hour = Duration::from_secs(3600);
    let due = |quiet, longest| store.due_rollups(now + Nanos(1_000_000_000), quiet, longest, 10);
    assert_eq!(due(hour, hour).await.expect("slices").len(), 0);
    assert_eq!(due(hour, Duration::ZERO).await.expect("slices").len(), 1);
    assert_eq!(due(Duration::ZERO, hour).await.expect("slices").len(), 1);
}

#[tokio::test]
async fn the_requests_behind_a_number_come_in_its_order() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, (1..=9).map(|i| matched(i, at(1), i64::from(i))).chain([lone(10, at(1))]).collect()).await;
    let selection = question(at(0), at(1000), &[(Dimension::Pool, "odd")], &[]).selection;
    let order = Order { key: OrderKey::Metric(Metric::GpuQueue), descending: true };
    let listed = Reader::new(store.clone()).list(&selection, order, 3).await.expect("requests");
    let queues: Vec<_> = listed.iter().map(|row| row.request.phases.and_then(|phases| phases.gpu_queue)).collect();
    assert_eq!(queues, [9, 7, 5].map(|ms| Some(Nanos(ms * MS))));

    let all = question(at(0), at(1000), &[], &[]).selection;
    let order = Order { key: OrderKey::WindowAt, descending: false };
    assert_eq!(store.list(&all, order, 100).await.expect("requests").len(), 10);
    let errors = Selection { results: BTreeSet::from([ResultClass::Error]), ..all };
    assert_eq!(store.list(&errors, order, 100).await.expect("requests").len(), 0);
}

#[tokio::test]
async fn more_groups_than_are_answered_at_once_are_refused() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let requests = (0..=MAX_GROUPS as u32).map(|number| {
        let mut request = matched(number, at(0), 1);
        request.client_dimensions.set(Dimension::Model, Some(format!("m-{number}")));
        request.dimensions.set(Dimension::Model, Some(format!("m-{number}")));
        request
    });
    write(&store, requests.collect()).await;
    let question = question(NOON, at(60_000), &[], &[Dimension::Model]);
    let refused = Reader::new(store.clone()).contents(&question).await;
    assert!(matches!(refused, Err(ReadError::TooManyGroups(groups)) if groups == MAX_GROUPS + 1));
    let fewer = Question { group_by: vec![GroupKey::Dimension(Dimension::Pool)], ..question };
    assert_eq!(ask(&store, &fewer).await.1.groups.len(), 2);
}

/// A matched request whose stream came evenly, or in bursts; every tenth was cut off.
fn streamed(number: u32, at: UnixNanos) -> Request {
    let mut request = matched(number, at, 10);
    let buffered = number.is_multiple_of(4);
    let cut = number.is_multiple_of(10);
    let gap = |ms: i64| Some(Nanos(ms * MS));
    request.stream = Some(StreamSummary {
        business_events: Some(101),
        batched_events: Some(if buffered { 90 } else { 0 }),
        p50_gap: if buffered { Some(Nanos(50_000)) } else { gap(20) },
        p95_gap: if buffered { gap(900) } else { gap(25) },
        p99_gap: if buffered { gap(1_100) } else { gap(30) },
        max_gap: Some(Nanos(i64::from(1_200 + number) * MS)),
        gaps_over_1s: Some(if buffered { 2 } else { 1 }),
        buffered_events: Some(if buffered { 96 } else { 0 }),
        ..StreamSummary::default()
    });
    request.flags.set_if(buffered, Flag::SuspectedBuffering);
    request.completeness = Some(if cut { Completeness::NoEnd } else { Completeness::Ok });
    request.result = Some(if cut { ResultClass::Truncated } else { ResultClass::Ok });
    request.output_tokens = (!number.is_multiple_of(25)).then_some(100);
    request.client = request.client.map(|side| ClientSide { headers: gap(12), ttft: gap(200), ..side });
    request.dimensions.set(Dimension::Streaming, Some("true"));
    request
}

#[tokio::test]
async fn streams_have_their_own_metrics_and_counts_from_rows() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    let requests: Vec<Request> = (1..=100).map(|i| streamed(i, at(i64::from(i)))).collect();
    write(&store, requests.clone()).await;
    let asked = question(at(0), at(1000), &[], &[Dimension::Pool]);
    let (_, answer) = ask(&store, &asked).await;
    let [even, odd] = answer.groups.as_slice() else { panic!("two pools, not {}", answer.groups.len()) };
    // Of 50 even ones 10 were cut off; of the others 20 are multiples of 4, as 20, 40, … are among those cut off.
    assert_eq!((even.n, even.rhythm), (40, Rhythm { judged: 40, suspected: 20, not_judged: 0 }));
    assert_eq!((odd.n, odd.rhythm), (50, Rhythm { judged: 50, suspected: 0, not_judged: 0 }));
    let classes = BTreeMap::from([(Completeness::Ok, 40), (Completeness::NoEnd, 10)]);
    assert_eq!((&even.wholeness.classes, even.wholeness.not_told), (&classes, 0));
    assert_eq!(even.output, Output { tokens: 4_800, counted: 48, not_counted: 2 });
    assert_eq!(summary(&answer, 0, Metric::StallRate).max, Some(0.02));
    assert_eq!(summary(&answer, 1, Metric::StallRate).max, Some(0.01));
    assert_eq!(summary(&answer, 0, Metric::BatchedShare).max, Some(90.0 / 101.0));
    assert_eq!(summary(&answer, 1, Metric::HeadersToFirstToken).max, Some(188e6));
    assert_eq!(summary(&answer, 1, Metric::MaxGap).max, Some(1_299e6));

    // What SQL derives is what the model says.
    let dictionary: Vec<i64> = requests.iter().map(|request| RequestRow::new(request.clone(), at(0), 1).dims).collect();
    let window = Interval { start: at(0), end: at(1000) };
    let rows = store.snapshot().await.expect("a snapshot").observations(window, &dictionary).await.expect("rows");
    assert_eq!(rows.len(), requests.len());
    for request in &requests {
        let modelled = Observation::of(request, at(0), 0);
        assert!(
            rows.iter().any(|row| row.readings == modelled.readings
                && row.tells_rhythm == modelled.tells_rhythm
                && row.completeness == modelled.completeness
                && row.output_tokens == modelled.output_tokens),
            "no row reads as {modelled:?}"
        );
    }

    let order = Order { key: OrderKey::Metric(Metric::StallRate), descending: true };
    let listed = Reader::new(store.clone()).list(&asked.selection, order, 20).await.expect("requests");
    assert!(listed.len() == 20 && listed.iter().all(|row| row.request.flags.has(Flag::SuspectedBuffering)));
    let order = Order { key: OrderKey::Metric(Metric::MaxGap), descending: true };
    let listed = Reader::new(store).list(&asked.selection, order, 1).await.expect("requests");
    assert_eq!(listed[0].request.trace_id, trace(99));
}

#[tokio::test]
async fn streams_have_the_same_counts_from_rollups() {
    let database = test_database().await;
    let store = open(&database.url, WEEK).await;
    write(&store, (1..=12_000).map(|i| streamed(i, at(i64::from(i) * 10))).collect()).await;
    let asked = question(at(0), at(125_000), &[], &[]);
    let (_, from_rows) = ask(&store, &asked).await;
    assert_eq!(summary(&from_rows, 0, Metric::MaxGap).method, Method::Digest);
    let group = &from_rows.groups[0];
    assert_eq!(group.rhythm, Rhythm { judged: 10_800, suspected: 2_400, not_judged: 0 });
    assert_eq!(group.wholeness.classes[&Completeness::NoEnd], 1_200);
    assert_eq!(group.output, Output { tokens: 1_152_000, counted: 11_520, not_counted: 480 });
    assert!(rebuild(&store).await.built > 0);
    assert_eq!(ask(&store, &asked).await.1, from_rows);
}
