//! Reading counts by minute, in one state of the database with the rows that they may have to be completed from.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{LabelledRequests, OutcomeCounts, SloProgress, SloVersion, read_versions};
use crate::store::StoreError;
use crate::store::rollup::read_slice;
use crate::store::window::{self, Snapshot};
use model::{Interval, Slice, UnixNanos};

/// A slice with a mark is counted from its rows instead, as long as these are surely there.
const SUMS: &str = "
    select counted.* from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as part (begins, ends, place)
    cross join lateral (
        select coalesce(sum(good), 0)::int8 as good, coalesce(sum(bad), 0)::int8 as bad,
            coalesce(sum(left_out), 0)::int8 as left_out, coalesce(sum(missing), 0)::int8 as missing
        from slo_minute as known
        where slo = $1 and version = $2 and minute >= part.begins and minute < part.ends and not exists (
            select from slo_dirty as dirty
            where dirty.minute = known.minute and dirty.day = known.day and dirty.day > $5
        )
    ) as counted
    order by place";

const FIRST: &str = "
    select min(minute) from slo_minute as known
    where slo = $1 and version = $2 and minute >= $3 and not exists (
        select from slo_dirty as dirty
        where dirty.minute = known.minute and dirty.day = known.day and dirty.day > $4
    )";

impl Snapshot {
    /// The versions that are counted.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn slo_versions(&mut self) -> Result<Vec<SloProgress>, StoreError> {
        Ok(read_versions(&mut self.transaction).await?)
    }

    /// The slices of a window whose rows have changed since they were counted, and are surely still there at `now`.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn uncounted_slices(&mut self, window: Interval, now: UnixNanos) -> Result<Vec<Slice>, StoreError> {
        let rows = sqlx::query(
            "select distinct day, minute from slo_dirty where minute >= $1 and minute < $2 and day > $3
             order by minute, day",
        )
        .bind(window.start.to_datetime())
        .bind(window.end.to_datetime())
        .bind(self.store.rows_kept_from(now).to_datetime())
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
        let labels = window::labels_of(&mut self.transaction, &self.store, &observations).await?;
        Ok((observations, labels))
    }

    /// The counts of each of some windows of whole minutes, but for [`Self::uncounted_slices`].
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn slo_counts(
        &mut self,
        of: &SloVersion,
        windows: &[Interval],
        now: UnixNanos,
    ) -> Result<Vec<OutcomeCounts>, StoreError> {
        let rows = sqlx::query(SUMS)
            .bind(&of.slo)
            .bind(of.version)
            .bind(windows.iter().map(|window| window.start.to_datetime()).collect::<Vec<_>>())
            .bind(windows.iter().map(|window| window.end.to_datetime()).collect::<Vec<_>>())
            .bind(self.store.rows_kept_from(now).to_datetime())
            .fetch_all(&mut *self.transaction)
            .await?;
        Ok(rows.iter().map(read_counts).collect::<Result<_, _>>()?)
    }

    /// The first minute from `from` on in which anything counts, but for [`Self::uncounted_slices`].
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn first_slo_minute(
        &mut self,
        of: &SloVersion,
        from: UnixNanos,
        now: UnixNanos,
    ) -> Result<Option<UnixNanos>, StoreError> {
        let first: Option<DateTime<Utc>> = sqlx::query_scalar(FIRST)
            .bind(&of.slo)
            .bind(of.version)
            .bind(from.to_datetime())
            .bind(self.store.rows_kept_from(now).to_datetime())
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(first.map(UnixNanos::from_datetime))
    }
}

fn read_counts(row: &PgRow) -> Result<OutcomeCounts, sqlx::Error> {
    Ok(OutcomeCounts {
        good: row.try_get("good")?,
        bad: row.try_get("bad")?,
        left_out: row.try_get("left_out")?,
        missing: row.try_get("missing")?,
    })
}
