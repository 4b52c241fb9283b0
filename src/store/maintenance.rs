//! The regular upkeep of the tables.

use super::error::StoreError;
use super::pool::Store;
use super::{partition, slo_minute};
use model::{Nanos, UnixNanos};

/// An advisory lock of ours; the number is arbitrary but must not change. 0x…01 is taken by partitions.
const MAINTENANCE_LOCK: i64 = 0x7472_6163_6502;

/// What a maintenance run did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maintenance {
    /// Partitions made.
    pub created: Vec<String>,
    /// Partitions dropped, their retention being over.
    pub dropped: Vec<String>,
    /// Label tuples that nothing has named for longer than anything is kept.
    pub tuples_removed: u64,
    /// Counts by minute that are older than they are kept.
    pub minutes_removed: u64,
}

impl Store {
    /// Makes the partitions of the coming days, drops those past retention, and forgets unused label tuples and old
    /// counts. One instance does it at a time; the others find nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the next run takes up what is left.
    pub async fn maintain(&self, now: UnixNanos) -> Result<Maintenance, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let created = partition::ensure(&mut connection, now).await?;
        let mine: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
            .bind(MAINTENANCE_LOCK)
            .fetch_one(&mut *connection)
            .await?;
        if !mine {
            return Ok(Maintenance { created, ..Maintenance::default() });
        }
        // The lock belongs to the session: whatever happens, the session ends with this function.
        connection.close_on_drop();
        let kept = self.options.retention.max(self.options.rollup_retention);
        let mut dropped =
            partition::drop_expired(&mut connection, &partition::ROW_TABLES, now - Nanos::from(self.options.retention))
                .await?;
        dropped.extend(
            partition::drop_expired(&mut connection, &partition::ROLLUP_TABLES, now - Nanos::from(kept)).await?,
        );
        let unused_since = (now - Nanos::from(kept)).to_datetime().date_naive();
        let removed = sqlx::query("delete from dimension where last_used < $1")
            .bind(unused_since)
            .execute(&mut *connection)
            .await?;
        let minutes_removed = slo_minute::drop_old(&mut connection, now).await?;
        Ok(Maintenance { created, dropped, tuples_removed: removed.rows_affected(), minutes_removed })
    }
}
