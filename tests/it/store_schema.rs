//! Connecting, migrating, partitions and their retention.

use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tracejoin::model::{Nanos, UnixNanos};
use tracejoin::private_postgres::{Options, PrivatePostgres};
use tracejoin::store::{Store, StoreError, StoreOptions};

use crate::common::{Folder, test_database};
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

#[tokio::test]
async fn a_server_that_does_not_write_through_is_refused_unless_allowed() {
    let folder = Folder::new();
    let postgres = PrivatePostgres::start(folder.path(), Options::default()).await.expect("a server");
    let mut connection = PgConnection::connect(&postgres.url()).await.expect("a connection");
    sqlx::raw_sql("alter system set fsync = off").execute(&mut connection).await.expect("the setting");
    sqlx::raw_sql("select pg_reload_conf()").execute(&mut connection).await.expect("a reload");
    // The postmaster takes the setting up on its own time.
    loop {
        let mut fresh = PgConnection::connect(&postgres.url()).await.expect("a connection");
        let fsync: String = sqlx::query_scalar("show fsync").fetch_one(&mut fresh).await.expect("the setting");
        if fsync == "off" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let strict = StoreOptions { allow_fsync_off: false, ..options() };
    let refusal = Store::connect(&postgres.url(), strict).await.err().expect("a refusal");
    assert!(matches!(refusal, StoreError::FsyncOff), "{refusal}");
    assert!(refusal.to_string().contains("--allow-fsync-off"));
    Store::connect(&postgres.url(), options()).await.expect("allowed");
}
