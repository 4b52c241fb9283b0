//! Runs of load generators.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::error::StoreError;
use super::pool::Store;
use model::{Interval, Iterations, Run, RunEnd, UnixNanos};

const READ: &str = "select * from run where id = $1";

const CONFIGURE: &str = "
    insert into run (id, configuration, configured_at) values ($1, $2, $3)
    on conflict (id) do update set configuration = excluded.configuration, configured_at = excluded.configured_at
    returning *";

const FINISH: &str = "
    insert into run (id, finished_at, planned_iterations, dropped_iterations, planned_rate, real_rate)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (id) do update set
        finished_at = excluded.finished_at,
        planned_iterations = excluded.planned_iterations,
        dropped_iterations = excluded.dropped_iterations,
        planned_rate = excluded.planned_rate,
        real_rate = excluded.real_rate
    returning *";

const ITERATIONS: &str = "
    select
        count(*) filter (where told) as runs,
        count(*) filter (where not told) as untold,
        coalesce(sum(planned_iterations - dropped_iterations) filter (where told), 0)::int8 as started,
        coalesce(sum(dropped_iterations) filter (where told), 0)::int8 as dropped
    from (
        select *, planned_iterations is not null and dropped_iterations is not null as told
        from run
        where finished_at >= $1 and finished_at < $2 and ($3::text[] is null or id = any($3))
    ) as finished";

impl Store {
    /// A run; `None` where nothing was ever told of it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn run(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let row = sqlx::query(READ).bind(id).fetch_optional(&self.pool).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// Keeps a run's configuration in the place of an earlier one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn configure_run(&self, id: &str, configuration: &Value, at: UnixNanos) -> Result<Run, StoreError> {
        let query = sqlx::query(CONFIGURE).bind(id).bind(configuration).bind(at.to_datetime());
        Ok(read(&query.fetch_one(&self.pool).await?)?)
    }

    /// Keeps how a run ended in the place of an earlier telling, so that it can be told again after a lost answer.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn finish_run(&self, id: &str, end: &RunEnd) -> Result<Run, StoreError> {
        let query = sqlx::query(FINISH)
            .bind(id)
            .bind(end.finished_at.to_datetime())
            .bind(end.planned_iterations.map(stored))
            .bind(end.dropped_iterations.map(stored))
            .bind(end.planned_rate)
            .bind(end.real_rate);
        Ok(read(&query.fetch_one(&self.pool).await?)?)
    }

    /// The iterations of the runs that finished in a window, of all or only of those named.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn iterations(&self, window: Interval, runs: Option<&[String]>) -> Result<Iterations, StoreError> {
        let query = sqlx::query(ITERATIONS).bind(window.start.to_datetime()).bind(window.end.to_datetime()).bind(runs);
        let row = query.fetch_one(&self.pool).await?;
        Ok(Iterations {
            runs: count(&row, "runs")?.unwrap_or_default(),
            untold: count(&row, "untold")?.unwrap_or_default(),
            started: count(&row, "started")?.unwrap_or_default(),
            dropped: count(&row, "dropped")?.unwrap_or_default(),
        })
    }
}

/// A count as the database keeps it; what does not fit was never counted.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(row: &PgRow, column: &str) -> Result<Option<u64>, sqlx::Error> {
    let count: Option<i64> = row.try_get(column)?;
    Ok(count.map(|count| count.unsigned_abs()))
}

fn read(row: &PgRow) -> Result<Run, sqlx::Error> {
    let time = |column: &str| -> Result<Option<UnixNanos>, sqlx::Error> {
        let at: Option<DateTime<Utc>> = row.try_get(column)?;
        Ok(at.map(UnixNanos::from_datetime))
    };
    let end = match time("finished_at")? {
        Some(finished_at) => Some(RunEnd {
            finished_at,
            planned_iterations: count(row, "planned_iterations")?,
            dropped_iterations: count(row, "dropped_iterations")?,
            planned_rate: row.try_get("planned_rate")?,
            real_rate: row.try_get("real_rate")?,
        }),
        None => None,
    };
    let (configuration, configured_at) = (row.try_get("configuration")?, time("configured_at")?);
    Ok(Run { id: row.try_get("id")?, configuration, configured_at, end })
}
