//! Counts by minute of what kept an objective: marking what they no longer agree with, counting again, reading.
//!
//! What is good or bad is known to those who count. Here an objective is a name and a version.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{Row, Transaction};

use super::error::StoreError;
use super::pool::Store;
use super::rollup::read_slice;
use super::window;
use model::{Interval, Labels, Nanos, Observation, Slice, UnixNanos};

/// The advisory lock under which minutes are counted; the number is arbitrary but must not change.
const COUNTING_LOCK: i64 = 0x7472_6163_6503;

/// How long counts are kept: the 30 days of a budget, and some to spare.
pub const SLO_MINUTES_KEPT: Nanos = Nanos(35 * Slice::DAY.0);

const VERSIONS: &str = "select slo, version, counted_from, target_from from slo_counting order by slo, version";

/// What the newest version of an objective is not, or no longer.
const FORGET: &str = "
    with gone as (
        delete from slo_counting as counting where not exists (
            select from objective as current
            where current.id = counting.slo and current.version = counting.version and current.document is not null
                and not exists (select from objective where id = current.id and version > current.version)
        ) returning slo, version
    )
    delete from slo_minute using gone where slo_minute.slo = gone.slo and slo_minute.version = gone.version";

const BEGIN: &str = "
    insert into slo_counting (slo, version, counted_from, target_from)
    select id, version, $3, $4 from objective
    where id = $1 and version = $2 and document is not null
        and not exists (select from objective where id = $1 and version > $2)
    on conflict do nothing";

/// Slices that are due, the latest minutes first since all windows end there, and all the marks of each.
const TAKE_MARKS: &str = "
    with due as (
        select day, minute from slo_dirty where minute < $1 or marked_at < $2
        group by day, minute order by minute desc limit $3
    )
    delete from slo_dirty as mark using due where mark.day = due.day and mark.minute = due.minute
    returning mark.day, mark.minute";

const REMOVE: &str = "
    delete from slo_minute using unnest($1::text[], $2::int4[]) as counting (slo, version)
    where slo_minute.slo = counting.slo and slo_minute.version = counting.version and minute >= $3 and minute < $4
        and ($5::timestamptz is null or day = $5)";

const WRITE: &str = "
    insert into slo_minute (slo, version, day, minute, good, bad, left_out, missing)
    select * from unnest(
        $1::text[], $2::int4[], $3::timestamptz[], $4::timestamptz[], $5::int8[], $6::int8[], $7::int8[], $8::int8[]
    )";

/// One version of an objective.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SloVersion {
    /// The objective's name.
    pub slo: String,
    /// Counted from 1.
    pub version: i32,
}

/// How far a version is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SloProgress {
    pub of: SloVersion,
    /// All minutes from here on are counted.
    pub counted_from: UnixNanos,
    /// Earlier minutes still have to be, back to here.
    pub target_from: UnixNanos,
}

/// How many requests were what to an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts {
    /// Within the threshold.
    pub good: i64,
    /// Past it.
    pub bad: i64,
    /// Cut off before it.
    pub left_out: i64,
    /// Without a value.
    pub missing: i64,
}

/// The counts of one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SloMinuteRow {
    pub of: SloVersion,
    pub slice: Slice,
    /// Not all zero: what is not there is nothing.
    pub counts: OutcomeCounts,
}

/// Requests with the labels that their ids stand for.
pub type LabelledRequests = (Vec<Observation>, BTreeMap<i64, Labels>);

/// Minutes that are being counted, in a transaction that nobody else counts beside. Dropped without
/// [`SloMinuteClaim::commit`], nothing of it has happened.
pub struct SloMinuteClaim {
    store: Store,
    transaction: Transaction<'static, Postgres>,
}

impl Store {
    /// Claims the counting of minutes; `None` where another instance is at it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim_slo_minutes(&self) -> Result<Option<SloMinuteClaim>, StoreError> {
        // Rows must be read after their marks were taken: not one snapshot for all.
        let mut transaction = self.pool.begin_with("begin isolation level read committed").await?;
        let mine: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock($1)")
            .bind(COUNTING_LOCK)
            .fetch_one(&mut *transaction)
            .await?;
        Ok(mine.then(|| SloMinuteClaim { store: self.clone(), transaction }))
    }
}

impl SloMinuteClaim {
    /// The versions that are counted.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn versions(&mut self) -> Result<Vec<SloProgress>, StoreError> {
        Ok(read_versions(&mut self.transaction).await?)
    }

    /// Drops the counts of versions that are not the newest of their objective, or no longer.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn forget_replaced(&mut self) -> Result<(), StoreError> {
        sqlx::query(FORGET).execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Begins to count a version, unless it is being counted, or is not the newest of its objective.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn begin(&mut self, progress: &SloProgress) -> Result<(), StoreError> {
        sqlx::query(BEGIN)
            .bind(&progress.of.slo)
            .bind(progress.of.version)
            .bind(progress.counted_from.to_datetime())
            .bind(progress.target_from.to_datetime())
            .execute(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Removes the marks of minutes that are no longer kept, and of slices whose rows may be gone at `now`: these are
    /// not counted again.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn drop_old_marks(&mut self, now: UnixNanos) -> Result<(), StoreError> {
        sqlx::query("delete from slo_dirty where minute < $1 or day <= $2")
            .bind((now - SLO_MINUTES_KEPT).to_datetime())
            .bind(self.store.rows_kept_from(now).to_datetime())
            .execute(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Removes all marks: nothing is counted.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn drop_marks(&mut self) -> Result<(), StoreError> {
        sqlx::query("delete from slo_dirty").execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Slices to be counted, with their marks removed: of minutes before `before`, or marked before `waited_since`. The
    /// latest minutes come first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn take_marks(
        &mut self,
        before: UnixNanos,
        waited_since: UnixNanos,
        limit: u32,
    ) -> Result<BTreeSet<Slice>, StoreError> {
        let rows = sqlx::query(TAKE_MARKS)
            .bind(before.to_datetime())
            .bind(waited_since.to_datetime())
            .bind(i64::from(limit))
            .fetch_all(&mut *self.transaction)
            .await?;
        Ok(rows.iter().map(read_slice).collect::<Result<_, _>>()?)
    }

    /// The requests of a slice.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn requests_of(&mut self, slice: Slice) -> Result<LabelledRequests, StoreError> {
        let observations = window::observations_of_slices(&mut self.transaction, &[slice], None).await?;
        Ok(self.labelled(observations).await?)
    }

    /// The requests of a window, whenever they arrived.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn requests_within(&mut self, window: Interval) -> Result<LabelledRequests, StoreError> {
        let observations = window::observations_within(&mut self.transaction, window).await?;
        Ok(self.labelled(observations).await?)
    }

    async fn labelled(&mut self, observations: Vec<Observation>) -> Result<LabelledRequests, sqlx::Error> {
        let labels = window::labels_of(&mut self.transaction, &self.store, &observations).await?;
        Ok((observations, labels))
    }

    /// Writes the counts of a slice in place of those that are there.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn replace_slice(
        &mut self,
        slice: Slice,
        of: &[SloVersion],
        rows: &[SloMinuteRow],
    ) -> Result<(), StoreError> {
        let minute = Interval { start: slice.minute, end: slice.minute + Slice::MINUTE };
        remove(&mut self.transaction, of, minute, Some(slice.day)).await?;
        Ok(write(&mut self.transaction, rows).await?)
    }

    /// Writes the counts of a window of whole minutes, which ends where counting began so far, and says that it now
    /// begins with the window.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn extend(
        &mut self,
        window: Interval,
        of: &[SloVersion],
        rows: &[SloMinuteRow],
    ) -> Result<(), StoreError> {
        remove(&mut self.transaction, of, window, None).await?;
        write(&mut self.transaction, rows).await?;
        let (slos, versions) = columns(of);
        sqlx::query(
            "update slo_counting set counted_from = $3 from unnest($1::text[], $2::int4[]) as counting (slo, version)
             where slo_counting.slo = counting.slo and slo_counting.version = counting.version",
        )
        .bind(slos)
        .bind(versions)
        .bind(window.start.to_datetime())
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    /// Makes it all happen.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing has happened then.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}

/// Drops counts that are older than they are kept, by their minute or, where a clock was in the future, their arrival.
pub(super) async fn drop_old(connection: &mut PgConnection, now: UnixNanos) -> Result<u64, sqlx::Error> {
    let dropped = sqlx::query("delete from slo_minute where minute < $1 or day < $1")
        .bind((now - SLO_MINUTES_KEPT).to_datetime())
        .execute(connection)
        .await?;
    Ok(dropped.rows_affected())
}

fn columns(versions: &[SloVersion]) -> (Vec<String>, Vec<i32>) {
    versions.iter().map(|one| (one.slo.clone(), one.version)).unzip()
}

/// Removes what is counted of the minutes of a window; with a day only that of the requests that arrived on it.
async fn remove(
    connection: &mut PgConnection,
    of: &[SloVersion],
    window: Interval,
    day: Option<UnixNanos>,
) -> Result<(), sqlx::Error> {
    let (slos, versions) = columns(of);
    sqlx::query(REMOVE)
        .bind(slos)
        .bind(versions)
        .bind(window.start.to_datetime())
        .bind(window.end.to_datetime())
        .bind(day.map(UnixNanos::to_datetime))
        .execute(connection)
        .await?;
    Ok(())
}

async fn write(connection: &mut PgConnection, rows: &[SloMinuteRow]) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let count = |of: fn(&OutcomeCounts) -> i64| rows.iter().map(|row| of(&row.counts)).collect::<Vec<_>>();
    sqlx::query(WRITE)
        .bind(rows.iter().map(|row| row.of.slo.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.of.version).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.slice.day.to_datetime()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.slice.minute.to_datetime()).collect::<Vec<_>>())
        .bind(count(|counts| counts.good))
        .bind(count(|counts| counts.bad))
        .bind(count(|counts| counts.left_out))
        .bind(count(|counts| counts.missing))
        .execute(connection)
        .await?;
    Ok(())
}

async fn read_versions(connection: &mut PgConnection) -> Result<Vec<SloProgress>, sqlx::Error> {
    let rows = sqlx::query(VERSIONS).fetch_all(connection).await?;
    rows.iter().map(read_progress).collect()
}

fn read_progress(row: &PgRow) -> Result<SloProgress, sqlx::Error> {
    let [counted, target]: [DateTime<Utc>; 2] = [row.try_get("counted_from")?, row.try_get("target_from")?];
    Ok(SloProgress {
        of: SloVersion { slo: row.try_get("slo")?, version: row.try_get("version")? },
        counted_from: UnixNanos::from_datetime(counted),
        target_from: UnixNanos::from_datetime(target),
    })
}
