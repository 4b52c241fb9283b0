//! Connecting, migrating, partitions and their retention.

use std::time::Duration;

use model::{Nanos, UnixNanos};
use sqlx::postgres::PgConnection;
use tracejoin::store::{Store, StoreOptions};

use crate::common::test_database;
use crate::store_support::{beside, options, store_with};

const DAY: Nanos = Nanos(86_400_000_000_000);

async fn partitions(connection: &mut PgConnection) -> Vec<String> {
    let query = "select inhrelid::regclass::text from pg_inherits
        where inhparent in ('arrival'::regclass, 'request'::regclass) order by 1";
    sqlx::query_scalar(query).fetch_all(connection).await.expect("partitions")
}

fn named(table: &str, day: UnixNanos) -> String {
    format!("{table}_{}", day.to_datetime().format("%Y%m%d"))
}

#[tokio::test]
async fn instances_that_start_together_share_one_schema() {
    let database = test_database().await;
    let connect = || Store::connect(&database.url, options());
    let (first, second, third) = tokio::join!(connect(), connect(), connect());
    for store in [first, second, third] {
        store.expect("each instance starts").ping().await.expect("the database answers");
    }
    let found = partitions(&mut beside(&database).await).await;
    assert_eq!(found.len(), 8, "four days of two tables: {found:?}");
}

#[tokio::test]
async fn maintenance_makes_the_coming_days_and_drops_those_past_retention() {
    let retention = Duration::from_secs(2 * 86_400);
    let (database, store) = store_with(StoreOptions { retention, ..options() }).await;
    let today = UnixNanos::now();
    let later = today + Nanos(4 * DAY.0);
    let report = store.maintain(later).await.expect("maintenance");
    assert!(report.created.contains(&named("arrival", later + DAY)), "{report:?}");
    assert!(report.dropped.contains(&named("request", today)), "{report:?}");
    assert!(!report.dropped.contains(&named("request", today + DAY + DAY)), "within retention: {report:?}");
    let found = partitions(&mut beside(&database).await).await;
    assert!(!found.contains(&named("arrival", today)), "{found:?}");
    assert_eq!(store.maintain(later).await.expect("maintenance"), Default::default(), "nothing is left to do");
}
