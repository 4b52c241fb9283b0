//! Reading what is stored, by trace.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::arrival::{self, Arrival, ArrivalKind, MAX_TRACE_BYTES, StoredArrival};
use super::encode;
use super::error::StoreError;
use super::pool::Store;
use super::request::{self, COLUMNS, RequestRow};
use model::{EventLog, Key, TraceArrivals, TraceId, UnixNanos};

/// How many arrivals of one trace are loaded; a trace that comes in more pieces is flagged as too large.
const MAX_TRACE_ARRIVALS: i64 = 4096;

/// The limit inside keeps the plan at one index probe a key, whatever the planner believes of a table that has just
/// begun to grow, and bounds what one trace may cost. Bodies beyond [`MAX_TRACE_BYTES`] stay where they are: only their
/// lengths are read.
const LOAD_ARRIVALS: &str = "
    select wanted.key, found.received_at, found.kind, found.body
    from unnest($1::uuid[]) as wanted (key)
    cross join lateral (
        select received_at, kind, case when sum(octet_length(body)) over running <= $4 then body end as body
        from (
            select received_at, kind, body from arrival
            where arrival.key = wanted.key and arrival.received_at >= $2
            limit $3
        ) as held
        window running as (rows unbounded preceding)
    ) as found";

/// How many arrivals of one key are searched for those that come again.
const MAX_SEARCHED: i64 = 1 << 16;

/// What is held under a key is read once, however many of its kind are asked for: thousands of records under one id
/// would else each read all the others.
const KNOWN: &str = "
    select wanted.key, found.identity, found.kind
    from unnest($1::uuid[], $2::timestamptz[]) as wanted (key, since)
    cross join lateral (
        select identity, kind from arrival
        where arrival.key = wanted.key and arrival.received_at >= wanted.since and identity is not null
        limit $3
    ) as found";

/// As [`LOAD_ARRIVALS`], of event lines only.
const LINES: &str = "
    select wanted.key, found.body
    from unnest($1::uuid[]) as wanted (key)
    cross join lateral (
        select body, sum(octet_length(body)) over (rows unbounded preceding) as running
        from (
            select body from arrival
            where arrival.key = wanted.key and arrival.received_at >= $2 and arrival.kind = $5
            limit $3
        ) as held
    ) as found
    where found.running <= $4";

/// Before anything arrived, and still a time that PostgreSQL can hold, which the calendar's first is not.
pub(super) const BEFORE_ALL: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The two sides of a request, and two uploads of one record, may be this far apart from what their clocks say.
const CLOCK_TOLERANCE: chrono::Duration = chrono::Duration::days(1);

impl Store {
    /// Everything that arrived of a trace; `None` where nothing is kept of it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn trace(&self, trace_id: TraceId) -> Result<Option<TraceArrivals>, StoreError> {
        let key = *trace_id.as_bytes();
        Ok(self.arrivals(&[key]).await?.remove(&key))
    }

    /// Everything that arrived under some keys.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn arrivals(&self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        Ok(load_arrivals(&mut connection, keys, BEFORE_ALL).await?)
    }

    /// The requests of a trace, as they were joined last.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn rows_of(&self, trace_id: TraceId) -> Result<Vec<RequestRow>, StoreError> {
        let statement = format!("select {COLUMNS} from request where trace_id = $1 order by client_span");
        let query = sqlx::query(AssertSqlSafe(statement)).bind(Uuid::from_bytes(*trace_id.as_bytes()));
        let rows = query.fetch_all(&self.pool).await?;
        Ok(self.decode_requests(&rows).await?)
    }

    /// Whether the same as each of these, told by its key, kind and identity, is stored already. What does not say of
    /// which time it speaks is looked for in all that is kept.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn known(&self, arrivals: &[&Arrival]) -> Result<Vec<bool>, StoreError> {
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let mut since: HashMap<Uuid, DateTime<Utc>> = HashMap::new();
        for arrival in arrivals {
            let from = searched_from(arrival.since);
            let held = since.entry(Uuid::from_bytes(arrival.key)).or_insert(from);
            *held = from.min(*held);
        }
        let (keys, since): (Vec<Uuid>, Vec<DateTime<Utc>>) = since.into_iter().unzip();
        let asked = |arrival: &&Arrival| (Uuid::from_bytes(arrival.key), arrival.identity, arrival.kind as i16);
        let mut known: HashMap<(Uuid, i64, i16), bool> =
            arrivals.iter().map(|arrival| (asked(arrival), false)).collect();
        let mut held = sqlx::query_as(KNOWN).bind(keys).bind(since).bind(MAX_SEARCHED).fetch(&self.pool);
        while let Some(held) = held.try_next().await? {
            known.entry(held).and_modify(|known| *known = true);
        }
        Ok(arrivals.iter().map(|arrival| known.get(&asked(arrival)).copied().unwrap_or_default()).collect())
    }

    /// The event lines that are stored under some keys, where they speak of times from `since` on. Of a log that is too
    /// large to be joined only a part is looked at.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn lines(&self, keys: &[Key], since: Option<UnixNanos>) -> Result<Vec<EventLog>, StoreError> {
        let wanted: BTreeSet<Uuid> = keys.iter().copied().map(Uuid::from_bytes).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query(LINES)
            .bind(wanted.into_iter().collect::<Vec<_>>())
            .bind(searched_from(since))
            .bind(MAX_TRACE_ARRIVALS)
            .bind(MAX_TRACE_BYTES as i64)
            .bind(ArrivalKind::Events as i16);
        let mut rows = query.fetch(&self.pool);
        let mut logs = Vec::new();
        while let Some(row) = rows.try_next().await? {
            let Ok(trace_id) = TraceId::from_bytes(row.try_get::<Uuid, _>("key")?.into_bytes()) else { continue };
            match encode::decode_events(trace_id, row.try_get("body")?) {
                Ok(log) => logs.push(log),
                Err(error) => tracing::error!(%trace_id, %error, "a stored arrival cannot be read"),
            }
        }
        Ok(logs)
    }

    /// Completes rows of [`COLUMNS`] by their labels.
    pub(super) async fn decode_requests(&self, rows: &[PgRow]) -> Result<Vec<RequestRow>, sqlx::Error> {
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            ids.push(row.try_get::<i64, _>("dims")?);
        }
        let tuples = self.dictionary.tuples(&self.pool, &ids).await?;
        let labels = |id: &i64| tuples.get(id).cloned().unwrap_or_default();
        rows.iter().zip(&ids).map(|(row, id)| request::decode(row, labels(id))).collect()
    }
}

/// A time in the future by a wrong clock must not hide what arrived before it.
fn searched_from(told: Option<UnixNanos>) -> DateTime<Utc> {
    let Some(told) = told else {
        return BEFORE_ALL;
    };
    told.min(UnixNanos::now()).to_datetime() - CLOCK_TOLERANCE
}

/// Loads the arrivals of some keys, in the order of their arrival.
pub(super) async fn load_arrivals(
    connection: &mut PgConnection,
    keys: &[Key],
    since: DateTime<Utc>,
) -> Result<HashMap<Key, TraceArrivals>, sqlx::Error> {
    let wanted: Vec<Uuid> = keys.iter().copied().map(Uuid::from_bytes).collect();
    let query =
        sqlx::query(LOAD_ARRIVALS).bind(wanted).bind(since).bind(MAX_TRACE_ARRIVALS).bind(MAX_TRACE_BYTES as i64);
    let mut rows = query.fetch(connection);
    let mut stored: Vec<StoredArrival> = Vec::new();
    let mut found: HashMap<Key, TraceArrivals> = HashMap::new();
    while let Some(row) = rows.try_next().await? {
        let arrival = read_arrival(&row)?;
        // All rows of a key follow one another.
        if stored.last().is_some_and(|last| last.key != arrival.key) {
            gather(&mut stored, &mut found);
        }
        stored.push(arrival);
    }
    gather(&mut stored, &mut found);
    Ok(found)
}

fn gather(stored: &mut Vec<StoredArrival>, found: &mut HashMap<Key, TraceArrivals>) {
    let truncated = stored.len() as i64 >= MAX_TRACE_ARRIVALS;
    // Stable: rows of one commit keep the order in which they were sent.
    stored.sort_by_key(|arrival| arrival.received_at);
    for arrival in stored.drain(..) {
        let start = || TraceArrivals::starting(arrival.received_at);
        let trace = found.entry(arrival.key).or_insert_with(start);
        trace.truncated |= truncated;
        arrival::add(trace, &arrival);
    }
}

/// By place, since looking up columns by name is a good part of reading so small a row.
fn read_arrival(row: &PgRow) -> Result<StoredArrival, sqlx::Error> {
    let key: Uuid = row.try_get(0)?;
    let received_at: DateTime<Utc> = row.try_get(1)?;
    Ok(StoredArrival {
        key: key.into_bytes(),
        received_at: UnixNanos::from_datetime(received_at),
        kind: row.try_get(2)?,
        body: row.try_get(3)?,
    })
}
