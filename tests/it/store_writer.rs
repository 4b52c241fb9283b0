//! Group commit: sharing, refusing, surviving.

use std::time::Duration;

use futures::future::join_all;
use model::{EventKind, EventLog, Nanos, StreamEvent, UnixNanos};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, raw_sql};
use tokio::task::JoinHandle;
use tracejoin::store::{Arrival, Store, StoreOptions, SubmitError};

use crate::common::TestDatabase;
use crate::store_support::{beside, both, native_spans, options, outside, record, store, store_with, trace};

async fn count(connection: &mut PgConnection, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(connection).await.expect("a number")
}

/// Holds back every commit until the connection rolls back.
async fn hold(connection: &mut PgConnection) {
    raw_sql("begin; lock table arrival in access exclusive mode").execute(connection).await.expect("the lock");
}

async fn release(connection: &mut PgConnection) {
    raw_sql("rollback").execute(connection).await.expect("the lock is free");
}

/// Resolves when both writers wait for the lock, so that all further submits queue up behind them.
async fn occupy_writers(store: &Store, database: &TestDatabase) -> JoinHandle<()> {
    // Not the connection that holds the lock: inside a transaction the list of sessions does not change.
    let connection = &mut beside(database).await;
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.submit(both(900_001)).await.expect("committed once the lock is free") }
    });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like 'copy arrival%'";
    while count(connection, waiting).await < 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = tokio::spawn({
        let store = store.clone();
        async move { store.submit(both(900_002)).await.expect("committed once the lock is free") }
    });
    while count(connection, waiting).await < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::spawn(async move {
        first.await.expect("no panic");
        second.await.expect("no panic");
    })
}

#[tokio::test]
async fn submits_that_wait_share_one_commit() {
    let (database, store) = store().await;
    let mut holder = beside(&database).await;
    hold(&mut holder).await;
    let occupied = occupy_writers(&store, &database).await;
    let submits = join_all((0..100).map(|number| store.submit(both(number))));
    let ((), answers) = tokio::join!(release(&mut holder), submits);
    occupied.await.expect("no panic");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(count(&mut holder, "select count(*) from arrival").await, 204);
    assert_eq!(count(&mut holder, "select sum(records) from join_queue").await, 102);
    // A commit has one time of arrival.
    let commits = count(&mut holder, "select count(distinct received_at) from arrival").await;
    assert!(commits <= 10, "{commits} commits of 102 submits");
}

#[tokio::test]
async fn data_that_the_database_refuses_is_refused_alone() {
    let (database, store) = store().await;
    let mut holder = beside(&database).await;
    hold(&mut holder).await;
    let occupied = occupy_writers(&store, &database).await;
    let mut guilty = both(50);
    guilty[0].body = vec![1; (16 << 20) + 1].into();
    let good = join_all((0..7).map(|number| store.submit(both(number))));
    let (good, refused, ()) = tokio::join!(good, store.submit(guilty), release(&mut holder));
    occupied.await.expect("no panic");
    assert!(good.iter().all(Result::is_ok), "{good:?}");
    assert!(matches!(refused, Err(SubmitError::Invalid { .. })), "{refused:?}");
    assert_eq!(count(&mut holder, "select count(*) from arrival").await, 18);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_names_the_setting() {
    let (database, store) = store_with(StoreOptions { queue_bytes: 1000, ..options() }).await;
    let mut holder = beside(&database).await;
    hold(&mut holder).await;
    let occupied = occupy_writers(&store, &database).await;
    let refused = join_all((0..3).map(|number| store.submit(both(number))));
    let (answers, ()) = tokio::join!(refused, async {
        tokio::task::yield_now().await;
        release(&mut holder).await;
    });
    occupied.await.expect("no panic");
    let overloaded: Vec<String> =
        answers.iter().filter_map(|answer| answer.clone().err()).map(|e| e.to_string()).collect();
    assert!(!overloaded.is_empty(), "{answers:?}");
    assert!(overloaded.iter().all(|message| message.contains("--ingest-queue-bytes")), "{overloaded:?}");
    store.submit(both(10)).await.expect("there is room again");
}

#[tokio::test]
async fn a_batch_larger_than_the_queue_is_refused_for_good() {
    let (_database, store) = store_with(StoreOptions { queue_bytes: 100, ..options() }).await;
    let refused = store.submit(both(1)).await;
    assert!(matches!(refused, Err(SubmitError::Invalid { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_lost_connection_costs_no_batch() {
    let (database, store) = store().await;
    store.submit(both(1)).await.expect("committed");
    let (mut admin, name) = outside(&database).await;
    let terminate = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1";
    let ended: i64 = sqlx::query_scalar(terminate).bind(&name).fetch_one(&mut admin).await.expect("ended");
    assert!(ended > 0);
    store.submit(both(2)).await.expect("committed on a new connection");
    assert_eq!(count(&mut beside(&database).await, "select count(*) from arrival").await, 4);
}

#[tokio::test]
async fn a_database_that_is_away_is_told_and_noticed_when_it_is_back() {
    let (database, store) = store().await;
    let (mut admin, name) = outside(&database).await;
    let allow = |allowed: bool| AssertSqlSafe(format!("alter database {name} allow_connections {allowed}"));
    raw_sql(allow(false)).execute(&mut admin).await.expect("closed");
    let terminate = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1";
    let _: i64 = sqlx::query_scalar(terminate).bind(&name).fetch_one(&mut admin).await.expect("ended");
    for number in 0..3 {
        let refused = store.submit(both(number)).await;
        assert!(matches!(refused, Err(SubmitError::Unavailable { .. })), "{refused:?}");
    }
    raw_sql(allow(true)).execute(&mut admin).await.expect("open");
    let mut tries = 0;
    while let Err(refusal) = store.submit(both(3)).await {
        assert!(matches!(refusal, SubmitError::Unavailable { .. }), "{refusal:?}");
        tries += 1;
        assert!(tries < 200, "the writers do not notice that the database is back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(count(&mut beside(&database).await, "select count(*) from arrival").await, 2);
}

#[tokio::test]
async fn a_missing_partition_is_made_on_the_way() {
    let (database, store) = store().await;
    let mut connection = beside(&database).await;
    let today = UnixNanos::now().to_datetime().format("%Y%m%d");
    raw_sql(AssertSqlSafe(format!("drop table arrival_{today}"))).execute(&mut connection).await.expect("dropped");
    store.submit(both(1)).await.expect("committed");
    assert_eq!(count(&mut connection, "select count(*) from arrival").await, 2);
}

#[tokio::test]
async fn records_that_are_stored_are_known() {
    let (_database, store) = store().await;
    let at = UnixNanos::now();
    let stored = record(1, at);
    store.submit(vec![Arrival::record(&stored)]).await.expect("committed");
    store.submit(vec![Arrival::spans(trace(2), &native_spans(2, at))]).await.expect("committed");
    let mut changed = stored.clone();
    changed.status = Some(500);
    let asked = [
        Arrival::record(&record(2, at)),
        Arrival::record(&stored),
        Arrival::record(&changed),
        Arrival { since: None, ..Arrival::record(&stored) },
        Arrival { since: Some(UnixNanos(i64::MAX)), ..Arrival::record(&stored) },
    ];
    let known = store.known(&asked.iter().collect::<Vec<_>>()).await.expect("an answer");
    assert_eq!(known, [false, true, false, true, true]);
}

#[tokio::test]
async fn of_thousands_under_one_id_each_is_known() {
    let (_database, store) = store().await;
    let at = UnixNanos::now();
    let under_one_id = |number: i64| {
        let mut one = record(1, at);
        one.duration = Some(Nanos(number * 1_000_000));
        Arrival::record(&one)
    };
    store.submit((0..3_000).map(under_one_id).collect()).await.expect("committed");
    let asked: Vec<Arrival> = (1_000..5_000).map(under_one_id).collect();
    let known = store.known(&asked.iter().collect::<Vec<_>>()).await.expect("an answer");
    let wanted: Vec<bool> = (1_000..5_000).map(|number| number < 3_000).collect();
    assert_eq!(known, wanted);
}

#[tokio::test]
async fn a_log_waits_as_one_request_however_many_lines_it_has() {
    let (_database, store) = store().await;
    let line = |kind, seq| StreamEvent {
        client_time: None,
        seq: Some(seq),
        kind,
        tokens: None,
        batched: None,
        service_time: None,
    };
    let log = |lines| Arrival::events(&EventLog { trace_id: trace(1), request_id: None, lines });
    store.submit(vec![log(vec![line(EventKind::Connect, 1), line(EventKind::Business, 2)])]).await.expect("committed");
    store.submit(vec![log(vec![line(EventKind::Business, 3)])]).await.expect("committed");
    assert_eq!(store.unsettled_records().await.expect("a count"), 1);
}
