//! Objectives: every version of each. What a document says is known to those who write it, not here.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Row, Transaction};

use super::error::StoreError;
use super::pool::Store;
use model::UnixNanos;

/// The advisory lock under which objectives change; the number is arbitrary but must not change.
const CHANGE_LOCK: i64 = 0x0074_726a_6f62_6a65;

/// The newest version of each, deletions too.
const NEWEST: &str = "
    select distinct on (id) id, version, budget, document, changed_at, changed_by
    from objective order by id, version desc";

const VERSIONS: &str = "
    select id, version, budget, document, changed_at, changed_by
    from objective where id = $1 order by version desc limit $2";

const ADD: &str = "
    insert into objective (id, version, budget, document, changed_at, changed_by) values ($1, $2, $3, $4, $5, $6)";

/// One version of an objective.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredObjective {
    /// Its name.
    pub id: String,
    /// Counted from 1.
    pub version: i32,
    /// The budget of which it is the whole or a part.
    pub budget: Option<String>,
    /// What it says; `None` where this version is its deletion.
    pub document: Option<Value>,
    /// When it became so, to the microsecond.
    pub changed_at: UnixNanos,
    pub changed_by: String,
}

/// A change of objectives, in a transaction that keeps other changes waiting. Dropped without
/// [`ObjectiveChange::commit`], nothing of it has happened.
pub struct ObjectiveChange {
    transaction: Transaction<'static, Postgres>,
}

impl Store {
    /// The newest version of every objective, in the order of their names; the deleted ones too.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn objectives(&self) -> Result<Vec<StoredObjective>, StoreError> {
        let rows = sqlx::query(NEWEST).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// The versions of one objective, newest first; empty where there never was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn objective_versions(&self, id: &str, limit: u32) -> Result<Vec<StoredObjective>, StoreError> {
        let rows = sqlx::query(VERSIONS).bind(id).bind(i64::from(limit)).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Begins a change, once no other instance is in the middle of one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn change_objectives(&self) -> Result<ObjectiveChange, StoreError> {
        // What is read after the lock must include what was committed before it.
        let mut transaction = self.pool.begin_with("begin isolation level read committed").await?;
        sqlx::query("select pg_advisory_xact_lock($1)").bind(CHANGE_LOCK).execute(&mut *transaction).await?;
        Ok(ObjectiveChange { transaction })
    }
}

impl ObjectiveChange {
    /// The newest version of every objective, the deleted ones too.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn objectives(&mut self) -> Result<Vec<StoredObjective>, StoreError> {
        let rows = sqlx::query(NEWEST).fetch_all(&mut *self.transaction).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Adds a version.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing of the change has happened then.
    pub async fn add(&mut self, version: &StoredObjective) -> Result<(), StoreError> {
        sqlx::query(ADD)
            .bind(&version.id)
            .bind(version.version)
            .bind(&version.budget)
            .bind(&version.document)
            .bind(version.changed_at.to_datetime())
            .bind(&version.changed_by)
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

fn read(row: &PgRow) -> Result<StoredObjective, sqlx::Error> {
    Ok(StoredObjective {
        id: row.try_get("id")?,
        version: row.try_get("version")?,
        budget: row.try_get("budget")?,
        document: row.try_get("document")?,
        changed_at: UnixNanos::from_datetime(row.try_get::<DateTime<Utc>, _>("changed_at")?),
        changed_by: row.try_get("changed_by")?,
    })
}
