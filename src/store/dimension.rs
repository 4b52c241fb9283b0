//! The dictionary of label tuples.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::NaiveDate;
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgExecutor, PgPool};
use sqlx::types::Json;

use model::{Dimensions, Request};

/// The id that all tuples share which came when the dictionary was full.
pub const OVERFLOW_DIMS: i64 = 0;

/// All labels of a request, and those among them that its client told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DimensionTuple {
    pub client: Dimensions,
    /// The client's labels, completed by the server's.
    pub labels: Dimensions,
}

impl DimensionTuple {
    /// A request's labels.
    pub fn of(request: &Request) -> Self {
        Self { client: request.client_dimensions.clone(), labels: request.dimensions.clone() }
    }

    /// The first eight bytes of the tuple's SHA-256, the same in every instance; never [`OVERFLOW_DIMS`].
    pub fn id(&self) -> i64 {
        let mut hasher = Sha256::new();
        for dimensions in [&self.client, &self.labels] {
            hasher.update((dimensions.0.len() as u64).to_be_bytes());
            for (dimension, label) in &dimensions.0 {
                for text in [dimension.name(), label] {
                    hasher.update((text.len() as u64).to_be_bytes());
                    hasher.update(text);
                }
            }
        }
        let mut head = [0; 8];
        head.copy_from_slice(&hasher.finalize()[..8]);
        match i64::from_be_bytes(head) {
            OVERFLOW_DIMS => 1,
            id => id,
        }
    }
}

/// What this process knows of the dictionary.
pub(super) struct Dictionary {
    max_tuples: u32,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// The day for which `ids` are known to be marked as used.
    day: NaiveDate,
    ids: HashMap<DimensionTuple, i64>,
    tuples: HashMap<i64, Arc<DimensionTuple>>,
    /// Whether the dictionary is full, and `ids` is all of it.
    full: bool,
}

type TupleRow = (i64, Json<Dimensions>, Json<Dimensions>);

/// Tuples that are there stay; of the new ones as many are added as there is room. In the order of their ids, so that
/// two instances cannot wait for each other.
const REMEMBER: &str = "
    with wanted as (
        select tuple.*, known.id is not null as known
        from unnest($1::int8[], $2::jsonb[], $3::jsonb[]) as tuple (id, client, labels)
        left join dimension as known on known.id = tuple.id
    ), ranked as (
        select *, row_number() over (partition by known order by id) as place from wanted
    )
    insert into dimension (id, last_used, client, labels)
    select id, $4, client, labels from ranked
    where known or place <= $5 - (select count(*) from dimension where id <> 0)
    order by id
    on conflict (id) do update set last_used = greatest(dimension.last_used, excluded.last_used)
    returning id";

impl Dictionary {
    pub(super) fn new(max_tuples: u32) -> Self {
        Self { max_tuples, cache: Mutex::default() }
    }

    /// The ids to store, one for each tuple, in their order. New tuples are committed on a connection of their own: a
    /// long transaction that held them would make other instances wait.
    pub(super) async fn ids(
        &self,
        pool: &PgPool,
        tuples: &[DimensionTuple],
        today: NaiveDate,
    ) -> Result<Vec<i64>, sqlx::Error> {
        let unknown = self.unknown(tuples, today);
        if !unknown.is_empty() {
            self.remember(pool, unknown, today).await?;
        }
        let cache = self.lock();
        Ok(tuples.iter().map(|tuple| cache.ids.get(tuple).copied().unwrap_or(OVERFLOW_DIMS)).collect())
    }

    /// The tuples of ids. What was forgotten, or never fitted, has no labels.
    pub(super) async fn tuples(
        &self,
        executor: impl PgExecutor<'_>,
        ids: &[i64],
    ) -> Result<HashMap<i64, Arc<DimensionTuple>>, sqlx::Error> {
        let missing: Vec<i64> = {
            let cache = self.lock();
            ids.iter().copied().filter(|id| !cache.tuples.contains_key(id)).collect()
        };
        if !missing.is_empty() {
            let query = sqlx::query_as("select id, client, labels from dimension where id = any($1)");
            let rows: Vec<TupleRow> = query.bind(missing).fetch_all(executor).await?;
            let mut cache = self.lock();
            for (id, client, labels) in rows {
                cache.tuples.insert(id, Arc::new(DimensionTuple { client: client.0, labels: labels.0 }));
            }
        }
        let cache = self.lock();
        Ok(ids.iter().map(|id| (*id, cache.tuples.get(id).cloned().unwrap_or_default())).collect())
    }

    fn unknown(&self, tuples: &[DimensionTuple], today: NaiveDate) -> Vec<DimensionTuple> {
        let mut cache = self.lock();
        if cache.day != today {
            *cache = Cache { day: today, ..Cache::default() };
        }
        if cache.full {
            return Vec::new();
        }
        let mut unknown: Vec<DimensionTuple> =
            tuples.iter().filter(|tuple| !cache.ids.contains_key(*tuple)).cloned().collect();
        unknown.sort();
        unknown.dedup();
        unknown
    }

    async fn remember(&self, pool: &PgPool, unknown: Vec<DimensionTuple>, today: NaiveDate) -> Result<(), sqlx::Error> {
        let ids: Vec<i64> = unknown.iter().map(DimensionTuple::id).collect();
        let stored: Vec<i64> = sqlx::query_scalar(REMEMBER)
            .bind(&ids)
            .bind(unknown.iter().map(|tuple| Json(&tuple.client)).collect::<Vec<_>>())
            .bind(unknown.iter().map(|tuple| Json(&tuple.labels)).collect::<Vec<_>>())
            .bind(today)
            .bind(i64::from(self.max_tuples))
            .fetch_all(pool)
            .await?;
        if stored.len() < ids.len() {
            return self.load_full(pool).await;
        }
        let mut cache = self.lock();
        for (tuple, id) in unknown.into_iter().zip(ids) {
            cache.tuples.insert(id, Arc::new(tuple.clone()));
            cache.ids.insert(tuple, id);
        }
        Ok(())
    }

    /// The dictionary is full: from now on, until the day ends, what is not in it overflows without asking again.
    async fn load_full(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let query = sqlx::query_as("select id, client, labels from dimension where id <> 0");
        let rows: Vec<TupleRow> = query.fetch_all(pool).await?;
        tracing::warn!(limit = self.max_tuples, "the label dictionary is full: further label tuples share one bucket");
        let mut cache = self.lock();
        cache.full = true;
        for (id, client, labels) in rows {
            let tuple = DimensionTuple { client: client.0, labels: labels.0 };
            cache.tuples.insert(id, Arc::new(tuple.clone()));
            cache.ids.insert(tuple, id);
        }
        Ok(())
    }

    /// A panic while the lock was held cannot leave the cache half changed in a way that matters.
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Dimension;

    fn labels(pairs: &[(Dimension, &str)]) -> Dimensions {
        Dimensions(pairs.iter().map(|(dimension, label)| (*dimension, (*label).to_owned())).collect())
    }

    #[test]
    fn the_id_tells_tuples_apart_and_stays() {
        let both = labels(&[(Dimension::Model, "m-7b"), (Dimension::Pool, "a100")]);
        let tuple = DimensionTuple { client: Dimensions::default(), labels: both.clone() };
        assert_eq!(tuple.id(), tuple.clone().id());
        assert_ne!(tuple.id(), DimensionTuple { client: both, labels: Dimensions::default() }.id());
        let shifted = labels(&[(Dimension::Model, "m-7bp"), (Dimension::Pool, "oola100")]);
        assert_ne!(tuple.id(), DimensionTuple { client: Dimensions::default(), labels: shifted }.id());
        assert_ne!(DimensionTuple::default().id(), OVERFLOW_DIMS);
    }
}
