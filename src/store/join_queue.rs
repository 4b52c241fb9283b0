//! Claiming settled traces, so that two joiners never work on one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::postgres::Postgres;
use sqlx::{AssertSqlSafe, raw_sql};
use uuid::Uuid;

use super::arrival::{self, Arrival, COPY_ARRIVALS, bucket_of};
use super::copy::CopyRows;
use super::dimension::DimensionTuple;
use super::error::StoreError;
use super::pool::Store;
use super::read::{BEFORE_ALL, load_arrivals};
use super::request::{self, COLUMNS, RequestRow};
use super::rollup;
use model::{Alias, Key, Side, Slice, TraceArrivals, TraceId, UnixNanos};

/// The class of our advisory locks on buckets; the number is arbitrary but must not change.
const BUCKET_LOCKS: i32 = 0x7472_6a71;

/// Keys loaded by one statement.
const KEYS_PER_LOAD: usize = 512;

/// Stored bytes after which a claim takes no more traces and leaves the rest for the next.
const MAX_CLAIM_BYTES: usize = 64 << 20;

/// Everything that a claim reads has an index. A statement that was planned while a day's partition was empty would
/// else be run as a scan of all of it, many times a second, until statistics are taken.
const BEGIN: &str = "begin; set local enable_seqscan = off";

/// Taking is deleting: a claim that fails rolls it back.
const TAKE: &str = "
    delete from join_queue where ctid = any (array(
        select ctid from join_queue where bucket = $1 and due_at <= $2 order by due_at limit $3 for update skip locked
    ))
    returning due_at, since, records, keys";

const PUT_BACK: &str = "
    insert into join_queue (bucket, due_at, since, records, keys)
    select * from unnest($1::int2[], $2::timestamptz[], $3::timestamptz[], $4::int4[], $5::bytea[])";

#[derive(Debug, Clone, sqlx::FromRow)]
struct Work {
    due_at: DateTime<Utc>,
    since: DateTime<Utc>,
    records: i32,
    keys: Vec<u8>,
}

/// Due work of one bucket, in a transaction that holds the bucket's lock. Dropped without [`Claim::commit`], nothing of
/// it has happened.
pub struct Claim {
    store: Store,
    connection: PoolConnection<Postgres>,
    bucket: i16,
    /// Not loaded yet.
    work: Vec<Work>,
    taken: HashSet<Key>,
    bytes: usize,
    since: HashMap<Key, DateTime<Utc>>,
    span: Option<(UnixNanos, UnixNanos)>,
    existing: HashSet<TraceId>,
    changed: BTreeSet<Slice>,
    put_back: Vec<Work>,
    requeued: BTreeMap<(i16, DateTime<Utc>, DateTime<Utc>), Vec<u8>>,
    aliases: Vec<Arrival>,
    committed: bool,
}

impl Store {
    /// The buckets with work that is due.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn due_buckets(&self, now: UnixNanos) -> Result<Vec<i16>, StoreError> {
        let query = sqlx::query_scalar("select distinct bucket from join_queue where due_at <= $1 order by bucket");
        Ok(query.bind(now.to_datetime()).fetch_all(&self.pool).await?)
    }

    /// Claims up to `limit` rows of due work of a bucket; `None` where nothing is due or another joiner has the bucket.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim(&self, bucket: i16, now: UnixNanos, limit: u32) -> Result<Option<Claim>, StoreError> {
        let mut claim = Claim::begin(self.clone(), bucket).await?;
        if claim.lock().await? {
            claim.take(now, limit).await?;
        }
        if claim.work.is_empty() {
            claim.finish("rollback").await?;
            return Ok(None);
        }
        Ok(Some(claim))
    }

    /// How many client records came whose traces have not been joined yet.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn unsettled_records(&self) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar("select coalesce(sum(records), 0)::int8 from join_queue");
        let records: i64 = query.fetch_one(&self.pool).await?;
        Ok(records.unsigned_abs())
    }

    /// How long the oldest work has been due.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn join_lag(&self, now: UnixNanos) -> Result<Duration, StoreError> {
        let query = sqlx::query_scalar("select min(due_at) from join_queue");
        let oldest: Option<DateTime<Utc>> = query.fetch_one(&self.pool).await?;
        Ok(oldest.and_then(|due_at| (now.to_datetime() - due_at).to_std().ok()).unwrap_or_default())
    }
}

impl Claim {
    async fn begin(store: Store, bucket: i16) -> Result<Self, sqlx::Error> {
        let connection = store.pool.acquire().await?;
        let mut claim = Self {
            store,
            connection,
            bucket,
            work: Vec::new(),
            taken: HashSet::new(),
            bytes: 0,
            since: HashMap::new(),
            span: None,
            existing: HashSet::new(),
            changed: BTreeSet::new(),
            put_back: Vec::new(),
            requeued: BTreeMap::new(),
            aliases: Vec::new(),
            committed: false,
        };
        raw_sql(BEGIN).execute(&mut *claim.connection).await?;
        Ok(claim)
    }

    async fn lock(&mut self) -> Result<bool, sqlx::Error> {
        let query = sqlx::query_scalar("select pg_try_advisory_xact_lock($1, $2)");
        query.bind(BUCKET_LOCKS).bind(i32::from(self.bucket)).fetch_one(&mut *self.connection).await
    }

    async fn take(&mut self, now: UnixNanos, limit: u32) -> Result<(), sqlx::Error> {
        let query = sqlx::query_as(TAKE).bind(self.bucket).bind(now.to_datetime()).bind(i64::from(limit));
        self.work = query.fetch_all(&mut *self.connection).await?;
        self.work.sort_by_key(|work| work.due_at);
        for work in &self.work {
            let (keys, _) = work.keys.as_chunks::<16>();
            for key in keys {
                let since = self.since.entry(*key).or_insert(work.since);
                *since = work.since.min(*since);
            }
        }
        Ok(())
    }

    /// The keys whose traces may have settled, each once.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.since.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// Whether there are traces that [`Claim::arrivals`] has not looked for yet.
    pub fn has_more(&self) -> bool {
        !self.work.is_empty()
    }

    /// Loads what arrived of the next claimed traces, some hundreds at a time, so that a claim takes little memory and
    /// what it takes stays in the processor's caches. What exceeds the claim's bound is left for a later claim and is
    /// not in the answer; nor is a trace of which nothing is kept any more.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn arrivals(&mut self) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        if self.bytes >= MAX_CLAIM_BYTES {
            self.put_back.append(&mut self.work);
            return Ok(HashMap::new());
        }
        let keys = self.next_keys();
        let found = self.load(keys).await?;
        for trace in found.values() {
            self.bytes += trace.stored_bytes;
            self.cover(trace.first_arrival, trace.last_arrival);
        }
        Ok(found)
    }

    /// The keys of the next rows, those aside that were taken before.
    fn next_keys(&mut self) -> HashSet<Key> {
        let mut keys = HashSet::new();
        let mut rows = 0;
        while let Some(work) = self.work.get(rows)
            && keys.len() < KEYS_PER_LOAD
        {
            keys.extend(work.keys.as_chunks::<16>().0);
            rows += 1;
        }
        self.work.drain(..rows);
        keys.retain(|key| self.taken.insert(*key));
        keys
    }

    async fn load(&mut self, keys: HashSet<Key>) -> Result<HashMap<Key, TraceArrivals>, sqlx::Error> {
        let since = keys.iter().filter_map(|key| self.since.get(key)).min().copied().unwrap_or_default();
        let keys: Vec<Key> = keys.into_iter().collect();
        load_arrivals(&mut self.connection, &keys, since).await
    }

    fn cover(&mut self, first: UnixNanos, last: UnixNanos) {
        let (from, to) = self.span.unwrap_or((first, last));
        self.span = Some((from.min(first), to.max(last)));
    }

    /// The rows that these traces have already. Must follow [`Claim::arrivals`].
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn existing_rows(&mut self, traces: &[TraceId]) -> Result<Vec<RequestRow>, StoreError> {
        let Some((from, to)) = self.span else {
            return Ok(Vec::new());
        };
        let statement = format!(
            "select {COLUMNS} from request where trace_id = any($1) and arrived_at between $2 and $3 \
             order by trace_id, client_span"
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(uuids(traces.iter()));
        let rows = query.bind(from.to_datetime()).bind(to.to_datetime()).fetch_all(&mut *self.connection).await?;
        let rows = self.store.decode_requests(&rows).await?;
        self.existing.extend(rows.iter().map(|row| row.request.trace_id));
        Ok(rows)
    }

    /// Writes rows in place of those that [`Claim::existing_rows`] found of the same traces. A trace named without a row
    /// loses those it had. Returns the rows as they were written.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the claim must then be dropped.
    pub async fn replace(
        &mut self,
        traces: &[TraceId],
        mut rows: Vec<RequestRow>,
    ) -> Result<Vec<RequestRow>, StoreError> {
        self.delete(traces).await?;
        if rows.is_empty() {
            return Ok(rows);
        }
        // Neighbours in the window's index are written together.
        rows.sort_by_key(|row| row.request.window_at);
        let tuples: Vec<DimensionTuple> = rows.iter().map(|row| DimensionTuple::of(&row.request)).collect();
        let today = UnixNanos::now().to_datetime().date_naive();
        let dims = self.store.dictionary.ids(&self.store.pool, &tuples, today).await?;
        let mut copy = CopyRows::with_capacity(rows.len() * request::ROW_BYTES);
        for (row, dims) in rows.iter_mut().zip(dims) {
            row.dims = dims;
            self.changed.insert(Slice::of(row.arrived_at, row.request.window_at));
            request::encode(row, &mut copy);
        }
        let statement = format!("copy request ({COLUMNS}) from stdin (format binary)");
        copy.send(&mut self.connection, &statement).await?;
        Ok(rows)
    }

    async fn delete(&mut self, traces: &[TraceId]) -> Result<(), sqlx::Error> {
        let stale = uuids(traces.iter().filter(|trace| self.existing.contains(trace)));
        let (Some((from, to)), false) = (self.span, stale.is_empty()) else {
            return Ok(());
        };
        let gone: Vec<(DateTime<Utc>, DateTime<Utc>)> = sqlx::query_as(
            "delete from request where trace_id = any($1) and arrived_at between $2 and $3 \
             returning arrived_at, window_at",
        )
        .bind(stale)
        .bind(from.to_datetime())
        .bind(to.to_datetime())
        .fetch_all(&mut *self.connection)
        .await?;
        let slice = |(arrived_at, window_at)| {
            Slice::of(UnixNanos::from_datetime(arrived_at), UnixNanos::from_datetime(window_at))
        };
        self.changed.extend(gone.into_iter().map(slice));
        Ok(())
    }

    /// Loads what arrived of traces that were not claimed, such as those that share a request id with one that was.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn others(&mut self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        Ok(load_arrivals(&mut self.connection, keys, BEFORE_ALL).await?)
    }

    /// Brings a trace back at a later time, such as its join deadline; or another trace that this one bears upon.
    pub fn requeue(&mut self, key: Key, due_at: UnixNanos) {
        let since = self.since.get(&key).copied().unwrap_or(BEFORE_ALL);
        self.requeued.entry((bucket_of(&key), due_at.to_datetime(), since)).or_default().extend_from_slice(&key);
    }

    /// Says under a request id where the server's side of a request is kept, and has that looked at.
    pub fn alias(&mut self, request_id: &str, server: TraceId, now: UnixNanos) {
        let arrival = Arrival::alias(request_id, Alias { side: Side::Server, trace_id: server }, None);
        self.requeue(arrival.key, now);
        self.aliases.push(arrival);
    }

    /// Makes it all happen.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing has happened then, unless the connection broke at the very end.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        rollup::mark(&mut self.connection, &self.changed).await?;
        if !self.aliases.is_empty() {
            let aliases: Vec<&Arrival> = self.aliases.iter().collect();
            arrival::encode(&aliases, UnixNanos::now()).send(&mut self.connection, COPY_ARRIVALS).await?;
        }
        let requeued = std::mem::take(&mut self.requeued).into_iter();
        // Their records were counted as waiting until now; from now on their rows say that they are pending.
        let again = requeued.map(|((bucket, due_at, since), keys)| (bucket, Work { due_at, since, records: 0, keys }));
        // What nobody loaded is left for a later claim as well.
        let left = std::mem::take(&mut self.work).into_iter().chain(std::mem::take(&mut self.put_back));
        let work: Vec<(i16, Work)> = left.map(|work| (self.bucket, work)).chain(again).collect();
        self.put_back(work).await?;
        Ok(self.finish("commit").await?)
    }

    async fn put_back(&mut self, work: Vec<(i16, Work)>) -> Result<(), sqlx::Error> {
        if work.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(PUT_BACK)
            .bind(work.iter().map(|(bucket, _)| *bucket).collect::<Vec<_>>())
            .bind(work.iter().map(|(_, work)| work.due_at).collect::<Vec<_>>())
            .bind(work.iter().map(|(_, work)| work.since).collect::<Vec<_>>())
            .bind(work.iter().map(|(_, work)| work.records).collect::<Vec<_>>())
            .bind(work.into_iter().map(|(_, work)| work.keys).collect::<Vec<_>>());
        query.execute(&mut *self.connection).await?;
        Ok(())
    }

    async fn finish(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(statement).execute(&mut *self.connection).await?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.committed {
            // An open transaction, or a COPY cut short, must not come back to the pool.
            self.connection.close_on_drop();
        }
    }
}

fn uuids<'a>(traces: impl Iterator<Item = &'a TraceId>) -> Vec<Uuid> {
    traces.map(|trace| Uuid::from_bytes(*trace.as_bytes())).collect()
}
