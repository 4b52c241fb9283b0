//! Reading requests by window.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use sqlx::postgres::{PgConnection, PgRow, Postgres};
use sqlx::{AssertSqlSafe, Row, Transaction};

use super::error::StoreError;
use super::pool::Store;
use super::request::{CLIENT, COLUMNS, RHYTHM, RequestRow, read_join_method};
use model::{
    Completeness, Flags, Interval, Labels, Metric, Observation, Order, OrderKey, Readings, ResultClass, Selection,
    Slice, State, Unit, UnixNanos,
};

/// The labels that requests of a window have. The limits inside keep the plan at one index probe for each tuple,
/// whatever the window's length; as `exists` they would be turned into a scan of all requests.
const LABELS_WITHIN: &str = "
    select id from dimension
    cross join lateral (
        (select from request where dims = dimension.id and window_at >= $1 and window_at < $2 limit 1)
        union all
        (select from rollup where $3 and dims = dimension.id and minute >= $1 and minute < $2 limit 1)
        limit 1
    ) as used";

/// What an observation is read from.
static OBSERVED: LazyLock<String> = LazyLock::new(|| {
    let metrics = Metric::ALL.iter().map(|metric| format!("{} as {}", value(*metric), metric.column()));
    let metrics: Vec<String> = metrics.collect();
    format!(
        "dims, arrived_at, window_at, state, result, flags, sides, join_method, completeness, output_tokens, {}",
        metrics.join(", ")
    )
});

/// The requests of some labels in a window.
static IN_WINDOW: LazyLock<String> = LazyLock::new(|| {
    let observed = OBSERVED.as_str();
    format!("select {observed} from request where dims = any($1) and window_at >= $2 and window_at < $3")
});

/// All requests of a window, by the index of each label.
static WITHIN: LazyLock<String> = LazyLock::new(|| {
    let observed = OBSERVED.as_str();
    format!(
        "select {observed} from request
         where dims = any(array(select id from dimension)) and window_at >= $1 and window_at < $2"
    )
});

/// The requests of some labels and results in a window.
static OF_RESULTS: LazyLock<String> = LazyLock::new(|| {
    let wanted = "(dims, result) in (select * from unnest($4::int8[], $5::int2[]))";
    format!("{} and {wanted}", IN_WINDOW.as_str())
});

/// The requests of some labels in some slices; without labels all. The offset keeps the plan at an index scan for each
/// slice: without it the two are joined after a scan of everything.
static OF_SLICES: LazyLock<String> = LazyLock::new(|| {
    let observed = OBSERVED.as_str();
    format!(
        "select found.* from unnest($1::timestamptz[], $2::timestamptz[]) as slice (day, minute)
         cross join lateral (
             select {observed} from request
             where dims = any(coalesce($3, array(select id from dimension)))
                 and window_at >= slice.minute and window_at < slice.minute + interval '1 minute'
                 and arrived_at >= slice.day and arrived_at < slice.day + interval '24 hours'
             offset 0
         ) as found"
    )
});

/// A metric in SQL: its column, or how it follows from others. What follows takes no space.
fn value(metric: Metric) -> String {
    let follows = match metric {
        Metric::StallRate => "case when business_events > 1 then gaps_over_1s::float8 / (business_events - 1) end",
        Metric::BatchedShare => "case when business_events > 0 then batched_events::float8 / business_events end",
        Metric::HeadersToFirstToken => "case when ttft_ns >= headers_ns then ttft_ns - headers_ns end",
        Metric::UnattributedShare => {
            "case when server_total_ns > 0 then unattributed_ns::float8 / server_total_ns::float8 end"
        }
        _ => return column(metric),
    };
    follows.to_owned()
}

fn column(metric: Metric) -> String {
    match metric.unit() {
        Unit::Nanos => format!("{}_ns", metric.column()),
        Unit::Millis | Unit::TokensPerSecond | Unit::Share => metric.column().to_owned(),
    }
}

/// One state of the database, for reads that belong together.
pub struct Snapshot {
    pub(super) store: Store,
    pub(super) transaction: Transaction<'static, Postgres>,
}

impl Store {
    /// Begins reads that all see the same state.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let transaction = self.pool.begin_with("begin isolation level repeatable read read only").await?;
        Ok(Snapshot { store: self.clone(), transaction })
    }

    /// The first requests of a selection; by a metric, only those that tell it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list(&self, selection: &Selection, order: Order, limit: u32) -> Result<Vec<RequestRow>, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let labels = snapshot.labels(selection.window, false).await?;
        drop(snapshot);
        let admitted = labels.into_iter().filter(|(_, labels)| selection.admits(&labels.all));
        let results: Vec<i16> = selection.results.iter().map(|result| *result as i16).collect();
        let query = sqlx::query(AssertSqlSafe(list_statement(order)))
            .bind(admitted.map(|(id, _)| id).collect::<Vec<i64>>())
            .bind(selection.window.start.to_datetime())
            .bind(selection.window.end.to_datetime())
            .bind(results.len() == ResultClass::ALL.len())
            .bind(results)
            .bind(i64::from(limit));
        let rows = query.fetch_all(&self.pool).await?;
        Ok(self.decode_requests(&rows).await?)
    }
}

fn list_statement(order: Order) -> String {
    let by = match order.key {
        OrderKey::WindowAt => "window_at".to_owned(),
        OrderKey::Metric(metric) => value(metric),
    };
    let direction = if order.descending { "desc" } else { "asc" };
    // A server alone cannot tell how its request ended: it is listed where every class is.
    format!(
        "select {COLUMNS} from request where dims = any($1) and window_at >= $2 and window_at < $3 \
         and (result = any($5) or ($4 and result is null)) and {by} is not null \
         order by {by} {direction}, trace_id, client_span limit $6"
    )
}

impl Snapshot {
    /// The labels of all requests in a window, by their ids; with `rollups`, of those too of which only rollups are left.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn labels(&mut self, window: Interval, rollups: bool) -> Result<BTreeMap<i64, Labels>, StoreError> {
        let ids: Vec<i64> = sqlx::query_scalar(LABELS_WITHIN)
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime())
            .bind(rollups)
            .fetch_all(&mut *self.transaction)
            .await?;
        Ok(read_labels(&mut self.transaction, &self.store, &ids).await?)
    }

    /// The requests of a window that have one of these labels.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn observations(&mut self, window: Interval, labels: &[i64]) -> Result<Vec<Observation>, StoreError> {
        let query = sqlx::query(AssertSqlSafe(IN_WINDOW.as_str()))
            .bind(labels)
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime());
        Ok(gather(query.fetch(&mut *self.transaction)).await?)
    }

    /// Hands on the requests of a window that have one of these labels, one by one and in no order, so that a long window
    /// takes no memory. Says whether that was all: after `limit` of them it stops.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn visit(
        &mut self,
        window: Interval,
        labels: &[i64],
        limit: u64,
        mut visit: impl FnMut(UnixNanos, Observation),
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(AssertSqlSafe(IN_WINDOW.as_str()))
            .bind(labels)
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime());
        let mut rows = query.fetch(&mut *self.transaction);
        let mut seen = 0;
        while let Some(row) = rows.try_next().await? {
            seen += 1;
            if seen > limit {
                return Ok(false);
            }
            let window_at: DateTime<Utc> = row.try_get("window_at")?;
            visit(UnixNanos::from_datetime(window_at), read_observation(&row)?);
        }
        Ok(true)
    }

    /// The requests of a window that have one of these labels together with that result.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn observations_of(
        &mut self,
        window: Interval,
        wanted: &BTreeSet<(i64, ResultClass)>,
    ) -> Result<Vec<Observation>, StoreError> {
        let labels: BTreeSet<i64> = wanted.iter().map(|(labels, _)| *labels).collect();
        let query = sqlx::query(AssertSqlSafe(OF_RESULTS.as_str()))
            .bind(labels.into_iter().collect::<Vec<_>>())
            .bind(window.start.to_datetime())
            .bind(window.end.to_datetime())
            .bind(wanted.iter().map(|(labels, _)| *labels).collect::<Vec<_>>())
            .bind(wanted.iter().map(|(_, result)| *result as i16).collect::<Vec<_>>());
        Ok(gather(query.fetch(&mut *self.transaction)).await?)
    }

    /// The requests of some slices that have one of these labels.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn observations_of_slices(
        &mut self,
        slices: &[Slice],
        labels: &[i64],
    ) -> Result<Vec<Observation>, StoreError> {
        Ok(observations_of_slices(&mut self.transaction, slices, Some(labels)).await?)
    }
}

async fn read_labels(
    connection: &mut PgConnection,
    store: &Store,
    ids: &[i64],
) -> Result<BTreeMap<i64, Labels>, sqlx::Error> {
    let tuples = store.dictionary.tuples(connection, ids).await?;
    let labels = |id: &i64| {
        let tuple = tuples.get(id).cloned().unwrap_or_default();
        (*id, Labels { client: tuple.client.clone(), all: tuple.labels.clone() })
    };
    Ok(ids.iter().map(labels).collect())
}

/// The labels that some requests have, by their ids.
pub(super) async fn labels_of(
    connection: &mut PgConnection,
    store: &Store,
    observations: &[Observation],
) -> Result<BTreeMap<i64, Labels>, sqlx::Error> {
    let ids: BTreeSet<i64> = observations.iter().map(|observation| observation.labels).collect();
    read_labels(connection, store, &ids.into_iter().collect::<Vec<_>>()).await
}

/// All requests of a window.
pub(super) async fn observations_within(
    connection: &mut PgConnection,
    window: Interval,
) -> Result<Vec<Observation>, sqlx::Error> {
    let query =
        sqlx::query(AssertSqlSafe(WITHIN.as_str())).bind(window.start.to_datetime()).bind(window.end.to_datetime());
    gather(query.fetch(connection)).await
}

pub(super) async fn observations_of_slices(
    connection: &mut PgConnection,
    slices: &[Slice],
    labels: Option<&[i64]>,
) -> Result<Vec<Observation>, sqlx::Error> {
    if slices.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(AssertSqlSafe(OF_SLICES.as_str()))
        .bind(slices.iter().map(|slice| slice.day.to_datetime()).collect::<Vec<_>>())
        .bind(slices.iter().map(|slice| slice.minute.to_datetime()).collect::<Vec<_>>())
        .bind(labels);
    gather(query.fetch(connection)).await
}

async fn gather(mut rows: BoxStream<'_, Result<PgRow, sqlx::Error>>) -> Result<Vec<Observation>, sqlx::Error> {
    let mut observations = Vec::new();
    while let Some(row) = rows.try_next().await? {
        observations.push(read_observation(&row)?);
    }
    Ok(observations)
}

fn read_observation(row: &PgRow) -> Result<Observation, sqlx::Error> {
    let [arrived_at, window_at]: [DateTime<Utc>; 2] = [row.try_get("arrived_at")?, row.try_get("window_at")?];
    let state = State::from_number(row.try_get("state")?);
    let state = state.ok_or_else(|| sqlx::Error::Decode("request.state holds a number that no state has".into()))?;
    let readings = read_metrics(row)?;
    let sides: i16 = row.try_get("sides")?;
    Ok(Observation {
        labels: row.try_get("dims")?,
        slice: Slice::of(UnixNanos::from_datetime(arrived_at), UnixNanos::from_datetime(window_at)),
        state,
        result: row.try_get::<Option<i16>, _>("result")?.and_then(ResultClass::from_number),
        flags: Flags::from_bits(row.try_get("flags")?),
        has_client: sides & CLIENT != 0,
        has_server: readings.get(Metric::ServerTotal).is_some(),
        join_method: read_join_method(row)?,
        completeness: row.try_get::<Option<i16>, _>("completeness")?.and_then(Completeness::from_number),
        tells_rhythm: sides & RHYTHM != 0,
        output_tokens: row.try_get("output_tokens")?,
        readings,
    })
}

fn read_metrics(row: &PgRow) -> Result<Readings, sqlx::Error> {
    /// The columns before the metrics.
    const FIRST: usize = 10;
    let mut readings = Readings::NONE;
    for (position, metric) in Metric::ALL.iter().enumerate() {
        let value = match metric.unit() {
            // Exact below 2^53 ns, which is 104 days.
            Unit::Nanos => row.try_get::<Option<i64>, _>(FIRST + position)?.map(|nanos| nanos as f64),
            Unit::Millis | Unit::TokensPerSecond | Unit::Share => row.try_get(FIRST + position)?,
        };
        readings.set(*metric, value);
    }
    Ok(readings)
}
