//! Rollups: marking what they no longer agree with, building them again, reading them.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{Row, Transaction};

use super::error::StoreError;
use super::pool::Store;
use super::window::{self, Snapshot};
use model::{Interval, Nanos, Observation, ResultClass, Slice, State, UnixNanos};

/// The class of our advisory locks on slices; the number is arbitrary but must not change.
const SLICE_LOCKS: i32 = 0x7472_6a72;

/// What is counted of a slice for objectives is as stale as its rollup; others count it, at other times.
const MARK: &str = "
    with slice as (
        select day, minute, now() as marked_at from unnest($1::timestamptz[], $2::timestamptz[]) as slice (day, minute)
    ), counted as (
        insert into slo_dirty (day, minute, marked_at) select * from slice
    )
    insert into rollup_dirty (day, minute, marked_at) select * from slice";

/// Slices that have been quiet for a while, or have waited for long; oldest first.
const DUE: &str = "
    select day, minute from rollup_dirty
    group by day, minute
    having max(marked_at) <= $1 or min(marked_at) <= $2
    order by min(marked_at)
    limit $3";

const WRITE: &str = "
    insert into rollup (day, minute, dims, state, result, counts, digests)
    select $1, $2, cell.* from unnest($3::int8[], $4::int2[], $5::int2[], $6::bytea[], $7::bytea[]) as cell";

/// A slice with a mark is answered from its rows instead.
const READ: &str = "
    select day, minute, dims, state, result, counts, case when $4 then digests end as digests from rollup
    where dims = any($1) and minute >= $2 and minute < $3 and not exists (
        select from rollup_dirty as dirty where dirty.minute = rollup.minute and dirty.day = rollup.day
    )
    order by minute, day, dims, state, result";

/// What is stored of one cell of a slice. The bytes are the aggregation's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupRow {
    pub slice: Slice,
    /// The stored id of the labels.
    pub labels: i64,
    /// What became of the requests.
    pub state: State,
    /// How they ended.
    pub result: Option<ResultClass>,
    pub counts: Vec<u8>,
    /// Their digests; empty where they were not asked for.
    pub digests: Vec<u8>,
}

/// Adds marks for slices whose rows change in the same transaction.
pub(super) async fn mark(connection: &mut PgConnection, slices: &BTreeSet<Slice>) -> Result<(), sqlx::Error> {
    if slices.is_empty() {
        return Ok(());
    }
    sqlx::query(MARK)
        .bind(slices.iter().map(|slice| slice.day.to_datetime()).collect::<Vec<_>>())
        .bind(slices.iter().map(|slice| slice.minute.to_datetime()).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

/// A slice that is being built again, in a transaction that holds its lock. Dropped without
/// [`RollupClaim::replace`], nothing of it has happened.
pub struct RollupClaim {
    transaction: Transaction<'static, Postgres>,
    slice: Slice,
}

impl Store {
    /// Slices that are due to be built again: marked, and without a new mark for `quiet`, or marked for the first time
    /// `longest` ago.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn due_rollups(
        &self,
        now: UnixNanos,
        quiet: Duration,
        longest: Duration,
        limit: u32,
    ) -> Result<Vec<Slice>, StoreError> {
        let before = |wait: Duration| now.to_datetime() - wait;
        let query = sqlx::query(DUE).bind(before(quiet)).bind(before(longest)).bind(i64::from(limit));
        let rows = query.fetch_all(&self.pool).await?;
        Ok(rows.iter().map(read_slice).collect::<Result<_, _>>()?)
    }

    /// Claims a slice and removes its marks; `None` where another instance has it, or its rows are gone and its rollup
    /// has to stay as it is.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim_rollup(&self, slice: Slice, now: UnixNanos) -> Result<Option<RollupClaim>, StoreError> {
        // Statements after the lock must see what was committed before it: not one snapshot for all.
        let mut transaction = self.pool.begin_with("begin isolation level read committed").await?;
        let mine: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock($1, $2)")
            .bind(SLICE_LOCKS)
            .bind(lock_number(slice))
            .fetch_one(&mut *transaction)
            .await?;
        if !mine {
            return Ok(None);
        }
        sqlx::query("delete from rollup_dirty where day = $1 and minute = $2")
            .bind(slice.day.to_datetime())
            .bind(slice.minute.to_datetime())
            .execute(&mut *transaction)
            .await?;
        if !self.keeps_rows_of(slice, now) {
            transaction.commit().await?;
            return Ok(None);
        }
        Ok(Some(RollupClaim { transaction, slice }))
    }

    /// Whether the rows of a slice are surely still there.
    pub fn keeps_rows_of(&self, slice: Slice, now: UnixNanos) -> bool {
        slice.day > self.rows_kept_from(now)
    }

    /// Rows of days of arrival that begin after this are surely still there.
    pub(super) fn rows_kept_from(&self, now: UnixNanos) -> UnixNanos {
        now - Nanos::from(self.options.retention)
    }
}

impl RollupClaim {
    /// The slice's requests.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn observations(&mut self) -> Result<Vec<Observation>, StoreError> {
        Ok(window::observations_of_slices(&mut self.transaction, &[self.slice], None).await?)
    }

    /// Writes the slice's cells in place of those that are there, and makes it all happen.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing has happened then.
    pub async fn replace(mut self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let (day, minute) = (self.slice.day.to_datetime(), self.slice.minute.to_datetime());
        sqlx::query("delete from rollup where day = $1 and minute = $2")
            .bind(day)
            .bind(minute)
            .execute(&mut *self.transaction)
            .await?;
        sqlx::query(WRITE)
            .bind(day)
            .bind(minute)
            .bind(rows.iter().map(|row| row.labels).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.state as i16).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.result.map(|result| result as i16)).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.counts.as_slice()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.digests.as_slice()).collect::<Vec<_>>())
            .execute(&mut *self.transaction)
            .await?;
        Ok(self.transaction.commit().await?)
    }
}

impl Snapshot {
    /// The rollups of a window of whole minutes with one of these labels, in a fixed order, but for slices whose rows
    /// have changed since.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn rollups(
        &mut self,
        window: Interval,
        labels: &[i64],
        with_digests: bool,
    ) -> Result<Vec<RollupRow>, StoreError> {
        let query = sqlx::query(READ)
            .bind(labels)
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime())
            .bind(with_digests);
        let rows = query.fetch_all(&mut *self.transaction).await?;
        Ok(rows.iter().map(read_rollup).collect::<Result<_, _>>()?)
    }

    /// The slices of a window whose rows have changed since their rollup was built.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn dirty_slices(&mut self, window: Interval) -> Result<Vec<Slice>, StoreError> {
        let rows = sqlx::query(
            "select distinct day, minute from rollup_dirty where minute >= $1 and minute < $2 order by minute, day",
        )
        .bind(window.start.to_datetime())
        .bind(window.end.to_datetime())
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows.iter().map(read_slice).collect::<Result<_, _>>()?)
    }
}

/// Different slices rarely share a number; two that do only wait for each other.
fn lock_number(slice: Slice) -> i32 {
    let minute = slice.minute.0.div_euclid(Slice::MINUTE.0);
    let day = slice.day.0.div_euclid(Slice::DAY.0);
    (minute ^ day.wrapping_mul(0x9e37_79b9)) as i32
}

pub(super) fn read_slice(row: &PgRow) -> Result<Slice, sqlx::Error> {
    let [day, minute]: [DateTime<Utc>; 2] = [row.try_get("day")?, row.try_get("minute")?];
    Ok(Slice { day: UnixNanos::from_datetime(day), minute: UnixNanos::from_datetime(minute) })
}

fn read_rollup(row: &PgRow) -> Result<RollupRow, sqlx::Error> {
    let state = State::from_number(row.try_get("state")?);
    Ok(RollupRow {
        slice: read_slice(row)?,
        labels: row.try_get("dims")?,
        state: state.ok_or_else(|| sqlx::Error::Decode("rollup.state holds a number that no state has".into()))?,
        result: row.try_get::<Option<i16>, _>("result")?.and_then(ResultClass::from_number),
        counts: row.try_get("counts")?,
        digests: row.try_get::<Option<Vec<u8>>, _>("digests")?.unwrap_or_default(),
    })
}
