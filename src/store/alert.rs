//! Alerts: how they stand, what changed, and what is owed to whom.

mod delivery;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::types::Json;
use sqlx::{Row, Transaction};
use uuid::Uuid;

use super::error::StoreError;
use super::pool::Store;
use model::UnixNanos;

pub use delivery::{Delivery, DeliveryState, Resend};

/// The advisory lock under which alerts are evaluated; the number is arbitrary but must not change.
const EVALUATION_LOCK: i64 = 0x7472_6a73_6c6f;

const PUT: &str = "
    insert into alert (fingerprint, slo, labels, annotations, generator_url, firing, transitions, starts_at, ends_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict (fingerprint) do update set
        annotations = excluded.annotations, generator_url = excluded.generator_url, firing = excluded.firing,
        transitions = excluded.transitions, starts_at = excluded.starts_at, ends_at = excluded.ends_at";

const RECORD: &str = "
    insert into alert_transition
        (key, fingerprint, number, at, firing, slo, labels, annotations, generator_url, starts_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

const OWE: &str = "
    insert into alert_delivery (key, receiver, fingerprint, number, next_at)
    select $1, receiver, $2, $3, $4 from unnest($5::text[]) as receiver";

const PUT_WATCHES: &str = "
    insert into alert_watch (slo, version, no_verdict_since, client_heard_at, server_heard_at)
    select * from unnest($1::text[], $2::int4[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[])
    on conflict (slo) do update set
        version = excluded.version, no_verdict_since = excluded.no_verdict_since,
        client_heard_at = excluded.client_heard_at, server_heard_at = excluded.server_heard_at";

/// How an alert stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAlert {
    /// A digest of its labels.
    pub fingerprint: Uuid,
    /// The objective's name.
    pub slo: String,
    /// Its identity.
    pub labels: BTreeMap<String, String>,
    /// What it says.
    pub annotations: BTreeMap<String, String>,
    /// Where its objective's state is shown.
    pub generator_url: Option<String>,
    /// Whether it fires.
    pub firing: bool,
    /// How many transitions there have been.
    pub transitions: i64,
    /// When it fired last.
    pub starts_at: UnixNanos,
    /// When it was resolved; `None` while it fires.
    pub ends_at: Option<UnixNanos>,
}

/// One change of an alert, as it was told.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertTransition {
    /// What receivers tell repetitions by.
    pub key: Uuid,
    /// The alert.
    pub fingerprint: Uuid,
    /// Counted from 1 for each alert.
    pub number: i64,
    /// When it happened.
    pub at: UnixNanos,
    /// Whether it fires from then on.
    pub firing: bool,
    /// The objective's name.
    pub slo: String,
    /// The alert's identity.
    pub labels: BTreeMap<String, String>,
    /// What it said at that time.
    pub annotations: BTreeMap<String, String>,
    /// Where its objective's state is shown.
    pub generator_url: Option<String>,
    /// When it had fired.
    pub starts_at: UnixNanos,
}

/// What is remembered of an objective between two evaluations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWatch {
    /// The objective's name.
    pub slo: String,
    pub version: i32,
    /// Since when there has been traffic and no verdict.
    pub no_verdict_since: Option<UnixNanos>,
    /// When a client was last heard.
    pub client_heard_at: Option<UnixNanos>,
    /// When a server was last heard.
    pub server_heard_at: Option<UnixNanos>,
}

/// The right to evaluate, in a transaction that holds the lock. Dropped without [`AlertClaim::commit`], nothing of it has
/// happened.
pub struct AlertClaim {
    transaction: Transaction<'static, Postgres>,
}

impl Store {
    /// Claims the evaluation of alerts; `None` where another instance has it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim_alerts(&self) -> Result<Option<AlertClaim>, StoreError> {
        // Statements after the lock must see what was committed before it: not one snapshot for all.
        let mut transaction = self.pool.begin_with("begin isolation level read committed").await?;
        let mine: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock($1)")
            .bind(EVALUATION_LOCK)
            .fetch_one(&mut *transaction)
            .await?;
        Ok(mine.then_some(AlertClaim { transaction }))
    }

    /// Alerts by when they started, newest first; only those that fire, or do not, where that is asked for.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn alerts(&self, firing: Option<bool>) -> Result<Vec<StoredAlert>, StoreError> {
        let statement = "select * from alert where $1 is null or firing = $1 order by starts_at desc, fingerprint";
        let rows = sqlx::query(statement).bind(firing).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(read_alert).collect::<Result<_, _>>()?)
    }

    /// The transitions of a stretch of time, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn alert_history(
        &self,
        from: UnixNanos,
        to: UnixNanos,
        limit: u32,
    ) -> Result<Vec<AlertTransition>, StoreError> {
        let statement = "select * from alert_transition where at >= $1 and at < $2 order by at desc, fingerprint, number desc limit $3";
        let query = sqlx::query(statement).bind(from.to_datetime()).bind(to.to_datetime()).bind(i64::from(limit));
        Ok(query.fetch_all(&self.pool).await?.iter().map(read_transition).collect::<Result<_, _>>()?)
    }

    /// Forgets transitions from before a time, with what is still owed of them, and alerts that have been resolved since.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn forget_alerts(&self, before: UnixNanos) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        for statement in [
            "delete from alert_delivery where key in (select key from alert_transition where at < $1)",
            "delete from alert_transition where at < $1",
            "delete from alert where not firing and ends_at < $1",
            "delete from alert_receiver where next_at < $1",
        ] {
            sqlx::query(statement).bind(before.to_datetime()).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }
}

impl AlertClaim {
    /// All alerts, by their fingerprints.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn alerts(&mut self) -> Result<HashMap<Uuid, StoredAlert>, StoreError> {
        let rows = sqlx::query("select * from alert").fetch_all(&mut *self.transaction).await?;
        let alerts = rows.iter().map(|row| read_alert(row).map(|alert| (alert.fingerprint, alert)));
        Ok(alerts.collect::<Result<_, _>>()?)
    }

    /// What earlier evaluations remembered, by the names of the objectives.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn watches(&mut self) -> Result<HashMap<String, StoredWatch>, StoreError> {
        let rows = sqlx::query("select * from alert_watch").fetch_all(&mut *self.transaction).await?;
        let watches = rows.iter().map(|row| read_watch(row).map(|watch| (watch.slo.clone(), watch)));
        Ok(watches.collect::<Result<_, _>>()?)
    }

    /// Writes how an alert stands.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the claim must then be dropped.
    pub async fn put(&mut self, alert: &StoredAlert) -> Result<(), StoreError> {
        sqlx::query(PUT)
            .bind(alert.fingerprint)
            .bind(&alert.slo)
            .bind(Json(&alert.labels))
            .bind(Json(&alert.annotations))
            .bind(&alert.generator_url)
            .bind(alert.firing)
            .bind(alert.transitions)
            .bind(alert.starts_at.to_datetime())
            .bind(alert.ends_at.map(UnixNanos::to_datetime))
            .execute(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Records a transition, and that each of these receivers is to be told of it.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the claim must then be dropped.
    pub async fn record(&mut self, transition: &AlertTransition, receivers: &[String]) -> Result<(), StoreError> {
        let at = transition.at.to_datetime();
        sqlx::query(RECORD)
            .bind(transition.key)
            .bind(transition.fingerprint)
            .bind(transition.number)
            .bind(at)
            .bind(transition.firing)
            .bind(&transition.slo)
            .bind(Json(&transition.labels))
            .bind(Json(&transition.annotations))
            .bind(&transition.generator_url)
            .bind(transition.starts_at.to_datetime())
            .execute(&mut *self.transaction)
            .await?;
        let query = sqlx::query(OWE).bind(transition.key).bind(transition.fingerprint).bind(transition.number);
        query.bind(at).bind(receivers).execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Remembers these, and forgets objectives other than `known`.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the claim must then be dropped.
    pub async fn remember(&mut self, watches: &[StoredWatch], known: &[String]) -> Result<(), StoreError> {
        let times = |of: fn(&StoredWatch) -> Option<UnixNanos>| -> Vec<Option<DateTime<Utc>>> {
            watches.iter().map(|watch| of(watch).map(UnixNanos::to_datetime)).collect()
        };
        sqlx::query(PUT_WATCHES)
            .bind(watches.iter().map(|watch| watch.slo.as_str()).collect::<Vec<_>>())
            .bind(watches.iter().map(|watch| watch.version).collect::<Vec<_>>())
            .bind(times(|watch| watch.no_verdict_since))
            .bind(times(|watch| watch.client_heard_at))
            .bind(times(|watch| watch.server_heard_at))
            .execute(&mut *self.transaction)
            .await?;
        let forget = sqlx::query("delete from alert_watch where slo <> all($1)").bind(known);
        forget.execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Says that the claim is still at work: the server ends a transaction that says nothing for a minute.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the claim must then be dropped.
    pub async fn keep(&mut self) -> Result<(), StoreError> {
        sqlx::query("select").execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Makes it all happen.
    ///
    /// # Errors
    /// [`StoreError::Database`]; nothing has happened then, unless the connection broke at the very end.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}

fn time(row: &PgRow, column: &str) -> Result<UnixNanos, sqlx::Error> {
    row.try_get(column).map(UnixNanos::from_datetime)
}

fn optional_time(row: &PgRow, column: &str) -> Result<Option<UnixNanos>, sqlx::Error> {
    Ok(row.try_get::<Option<DateTime<Utc>>, _>(column)?.map(UnixNanos::from_datetime))
}

fn texts(row: &PgRow, column: &str) -> Result<BTreeMap<String, String>, sqlx::Error> {
    Ok(row.try_get::<Json<BTreeMap<String, String>>, _>(column)?.0)
}

fn read_alert(row: &PgRow) -> Result<StoredAlert, sqlx::Error> {
    Ok(StoredAlert {
        fingerprint: row.try_get("fingerprint")?,
        slo: row.try_get("slo")?,
        labels: texts(row, "labels")?,
        annotations: texts(row, "annotations")?,
        generator_url: row.try_get("generator_url")?,
        firing: row.try_get("firing")?,
        transitions: row.try_get("transitions")?,
        starts_at: time(row, "starts_at")?,
        ends_at: optional_time(row, "ends_at")?,
    })
}

fn read_transition(row: &PgRow) -> Result<AlertTransition, sqlx::Error> {
    Ok(AlertTransition {
        key: row.try_get("key")?,
        fingerprint: row.try_get("fingerprint")?,
        number: row.try_get("number")?,
        at: time(row, "at")?,
        firing: row.try_get("firing")?,
        slo: row.try_get("slo")?,
        labels: texts(row, "labels")?,
        annotations: texts(row, "annotations")?,
        generator_url: row.try_get("generator_url")?,
        starts_at: time(row, "starts_at")?,
    })
}

fn read_watch(row: &PgRow) -> Result<StoredWatch, sqlx::Error> {
    Ok(StoredWatch {
        slo: row.try_get("slo")?,
        version: row.try_get("version")?,
        no_verdict_since: optional_time(row, "no_verdict_since")?,
        client_heard_at: optional_time(row, "client_heard_at")?,
        server_heard_at: optional_time(row, "server_heard_at")?,
    })
}
