//! Daily partitions: made ahead of time, dropped when their retention is over.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, raw_sql};

use model::UnixNanos;

/// The tables with partitions that are kept for the retention of rows, and the one that is kept longer.
pub(super) const ROW_TABLES: [&str; 2] = ["arrival", "request"];
pub(super) const ROLLUP_TABLES: [&str; 1] = ["rollup"];

/// An advisory lock of ours; the number is arbitrary but must not change. 0x…02 is taken by maintenance.
const PARTITION_LOCK: i64 = 0x7472_6163_6501;

/// Makes the partitions from yesterday to the day after tomorrow that are missing. Returns their names.
pub(super) async fn ensure(connection: &mut PgConnection, now: UnixNanos) -> Result<Vec<String>, sqlx::Error> {
    let today = now.to_datetime().date_naive();
    let days = [today - Days::new(1), today, today + Days::new(1), today + Days::new(2)];
    let wanted: Vec<(&str, NaiveDate)> =
        ROW_TABLES.iter().chain(&ROLLUP_TABLES).flat_map(|table| days.map(|day| (*table, day))).collect();
    let names: Vec<String> = wanted.iter().map(|(table, day)| name_of(table, *day)).collect();
    let mut transaction = connection.begin().await?;
    sqlx::query("select pg_advisory_xact_lock($1)").bind(PARTITION_LOCK).execute(&mut *transaction).await?;
    let missing: Vec<String> =
        sqlx::query_scalar("select name from unnest($1::text[]) as wanted (name) where to_regclass(name) is null")
            .bind(&names)
            .fetch_all(&mut *transaction)
            .await?;
    for ((table, day), name) in wanted.iter().zip(&names) {
        if missing.contains(name) {
            create(&mut transaction, table, *day, name).await?;
        }
    }
    transaction.commit().await?;
    Ok(missing)
}

/// Attaches a table of its own, because creating it as a partition would lock out every reader and writer.
async fn create(connection: &mut PgConnection, table: &str, day: NaiveDate, name: &str) -> Result<(), sqlx::Error> {
    let next = day + Days::new(1);
    let statement = format!(
        "create table {name} (like {table} including all);
         alter table {table} attach partition {name} for values from ('{day} 00:00:00+00') to ('{next} 00:00:00+00')"
    );
    // Names and days are our own.
    raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

fn name_of(table: &str, day: NaiveDate) -> String {
    format!("{table}_{}", day.format("%Y%m%d"))
}

/// The day after a partition's day, from its name: nothing in it is newer.
fn end_of(name: &str) -> Option<DateTime<Utc>> {
    let (_, day) = name.rsplit_once('_')?;
    let day = NaiveDate::parse_from_str(day, "%Y%m%d").ok()?;
    Some((day + Days::new(1)).and_time(NaiveTime::MIN).and_utc())
}

/// Drops the partitions of these tables that hold nothing from `keep_from` on. Returns their names.
pub(super) async fn drop_expired(
    connection: &mut PgConnection,
    tables: &[&str],
    keep_from: UnixNanos,
) -> Result<Vec<String>, sqlx::Error> {
    let partitions: Vec<(String, String, Option<bool>)> = sqlx::query_as(
        "select parent.name, child.relname::text, link.inhdetachpending
         from unnest($1::text[]) as parent (name)
         join pg_class as child on child.relname ~ ('^' || parent.name || '_[0-9]{8}$')
             and child.relkind = 'r' and child.relnamespace = current_schema()::regnamespace
         left join pg_inherits as link on link.inhrelid = child.oid
         order by child.relname",
    )
    .bind(tables)
    .fetch_all(&mut *connection)
    .await?;
    let mut dropped = Vec::new();
    for (table, name, detach_pending) in partitions {
        if end_of(&name).is_none_or(|end| end > keep_from.to_datetime()) {
            continue;
        }
        // Detached first, since dropping an attached one would lock out every reader and writer. A detachment that
        // was interrupted is finished.
        if let Some(pending) = detach_pending {
            let how = if pending { "finalize" } else { "concurrently" };
            let statement = format!("alter table {table} detach partition {name} {how}");
            raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await?;
        }
        raw_sql(AssertSqlSafe(format!("drop table {name}"))).execute(&mut *connection).await?;
        dropped.push(name);
    }
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_named_by_its_day_and_ends_with_it() {
        let day = NaiveDate::from_ymd_opt(2026, 12, 31).expect("a day");
        let name = name_of("request", day);
        assert_eq!(name, "request_20261231");
        assert_eq!(end_of(&name).map(|end| end.to_rfc3339()), Some("2027-01-01T00:00:00+00:00".to_owned()));
        assert_eq!(end_of("request_window"), None);
    }
}
