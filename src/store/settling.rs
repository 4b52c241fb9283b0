//! Where a run lies in time, and what of it has not settled yet.

use chrono::{DateTime, Utc};

use super::error::StoreError;
use super::pool::Store;
use model::{Interval, Nanos, State, UnixNanos};

/// The first and the last request of a run: one probe of the window's index for each end and label tuple.
const RUN_WINDOW: &str = "
    select min(first), max(last) from dimension
    cross join lateral (
        select min(window_at) as first, max(window_at) as last from request where dims = dimension.id
    ) as ends
    where labels ->> 'run' = $1";

const PENDING: &str = "
    select count(*) from dimension
    cross join lateral (
        select from request
        where dims = dimension.id and window_at >= $1 and window_at < $2 and state = $3
    ) as waiting
    where $4::text is null or labels ->> 'run' = $4";

const WAITING: &str = "
    select coalesce(sum(octet_length(keys) / 16), 0)::int8 from join_queue where due_at <= $1";

/// Times are kept to the microsecond.
const RESOLUTION: Nanos = Nanos(1_000);

/// What keeps a window from being read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unsettled {
    /// Traces of any window that came before a certain time and are not joined yet.
    pub traces: u64,
    /// Requests of the window that wait for their other side.
    pub pending: u64,
}

impl Unsettled {
    /// Whether nothing does.
    pub const fn is_settled(&self) -> bool {
        self.traces == 0 && self.pending == 0
    }
}

impl Store {
    /// The smallest window with all requests of a run, by its label; `None` where none is kept.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn window_of_run(&self, run: &str) -> Result<Option<Interval>, StoreError> {
        let (first, last): (Option<DateTime<Utc>>, Option<DateTime<Utc>>) =
            sqlx::query_as(RUN_WINDOW).bind(run).fetch_one(&self.pool).await?;
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        let end = UnixNanos::from_datetime(last) + RESOLUTION;
        Ok(Some(Interval { start: UnixNanos::from_datetime(first), end }))
    }

    /// What has not settled of what came before a time: of a window, or of a run inside it.
    ///
    /// A trace of which more comes while it settles is put back, so what is due up to one settling time later counts as
    /// well: a test's last spans often leave their exporter after its client is done.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn unsettled(
        &self,
        received_before: UnixNanos,
        window: Option<Interval>,
        run: Option<&str>,
    ) -> Result<Unsettled, StoreError> {
        let due = received_before.to_datetime() + 2 * self.options.settle;
        let traces: i64 = sqlx::query_scalar(WAITING).bind(due).fetch_one(&self.pool).await?;
        let Some(window) = window else { return Ok(Unsettled { traces: traces.unsigned_abs(), pending: 0 }) };
        let pending: i64 = sqlx::query_scalar(PENDING)
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime())
            .bind(State::Pending as i16)
            .bind(run)
            .fetch_one(&self.pool)
            .await?;
        Ok(Unsettled { traces: traces.unsigned_abs(), pending: pending.unsigned_abs() })
    }
}
