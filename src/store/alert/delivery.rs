//! The outbox: claiming what is owed to a receiver, and noting what became of it.
//!
//! A claim is a time until which nobody else sends the same, not an open transaction: a receiver may be slow. A sender
//! that dies leaves its work to whoever comes after that time.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::Row;
use uuid::Uuid;

use super::{AlertTransition, StoredAlert, optional_time, read_alert, read_transition};
use crate::store::error::StoreError;
use crate::store::pool::Store;
use model::UnixNanos;

/// The first that is due of a receiver: no later transition of an alert goes before an earlier one.
const CLAIM: &str = "
    with due as (
        select key from alert_delivery as owed
        where receiver = $1 and delivered_at is null and next_at <= $2 and not exists (
            select from alert_delivery as earlier
            where earlier.receiver = owed.receiver and earlier.fingerprint = owed.fingerprint
                and earlier.number < owed.number and earlier.delivered_at is null
        )
        order by next_at, key limit 1
        for update skip locked
    ), claimed as (
        update alert_delivery set next_at = $3, attempts = attempts + 1
        where receiver = $1 and key in (select key from due)
        returning key, attempts
    )
    select alert_transition.*, claimed.attempts from claimed join alert_transition using (key)";

const SETTLE: &str = "
    update alert_delivery set delivered_at = $3, last_error = case when $3 is null then $5 end, next_at = $4
    where receiver = $1 and key = any($2) and delivered_at is null";

/// A receiver is due when its time has come, or something changed and it did not fail last.
const CLAIM_RESEND: &str = "
    insert into alert_receiver as known (receiver, next_at, attempts, claimed_until) values ($1, $2, 0, $3)
    on conflict (receiver) do update set claimed_until = excluded.claimed_until
    where known.claimed_until <= $2 and (
        known.next_at <= $2
        or known.attempts = 0 and exists (
            select from alert_delivery where receiver = $1 and delivered_at is null
        )
    )
    returning attempts";

const STANDING: &str = "
    select * from alert
    where firing or ends_at > $1 or fingerprint in (
        select fingerprint from alert_delivery where receiver = $2 and delivered_at is null
    )
    order by starts_at, fingerprint";

/// A transition that one receiver is to be told of, claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    pub transition: AlertTransition,
    /// How many times it has been tried, this time included.
    pub attempts: i32,
}

/// How everything stands, for a receiver that is told again and again; claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Resend {
    /// Alerts that fire, were resolved a moment ago, or changed since the receiver was last told.
    pub alerts: Vec<StoredAlert>,
    /// The transitions that are told by it.
    pub keys: Vec<Uuid>,
    /// How often it has failed since the last success.
    pub attempts: i32,
}

/// What became of what one receiver was owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryState {
    pub receiver: String,
    /// How many times it was tried.
    pub attempts: i32,
    pub delivered_at: Option<UnixNanos>,
    /// Why it was not, the last time.
    pub last_error: Option<String>,
}

impl Store {
    /// Claims what a receiver is to be told next, until `claimed_until`; `None` where nothing is due.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim_delivery(
        &self,
        receiver: &str,
        now: UnixNanos,
        claimed_until: UnixNanos,
    ) -> Result<Option<Delivery>, StoreError> {
        let query = sqlx::query(CLAIM).bind(receiver).bind(now.to_datetime()).bind(claimed_until.to_datetime());
        let Some(row) = query.fetch_optional(&self.pool).await? else { return Ok(None) };
        Ok(Some(Delivery { transition: read_transition(&row)?, attempts: row.try_get("attempts")? }))
    }

    /// Notes that a receiver has been told.
    ///
    /// # Errors
    /// [`StoreError::Database`]; it is then told again.
    pub async fn delivered(&self, receiver: &str, keys: &[Uuid], now: UnixNanos) -> Result<(), StoreError> {
        let query = sqlx::query(SETTLE).bind(receiver).bind(keys).bind(Some(now.to_datetime()));
        query.bind(now.to_datetime()).bind(None::<&str>).execute(&self.pool).await?;
        Ok(())
    }

    /// Notes that a receiver could not be told, why, and when to try again.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn not_delivered(
        &self,
        receiver: &str,
        keys: &[Uuid],
        next_at: UnixNanos,
        error: &str,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(SETTLE).bind(receiver).bind(keys).bind(None::<DateTime<Utc>>);
        query.bind(next_at.to_datetime()).bind(Some(error)).execute(&self.pool).await?;
        Ok(())
    }

    /// Claims the telling of how everything stands, until `claimed_until`; `None` where it is not due or another instance
    /// does it. Alerts that were resolved after `resolved_after` are among it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn claim_resend(
        &self,
        receiver: &str,
        now: UnixNanos,
        claimed_until: UnixNanos,
        resolved_after: UnixNanos,
    ) -> Result<Option<Resend>, StoreError> {
        let claim = sqlx::query_scalar(CLAIM_RESEND);
        let claim = claim.bind(receiver).bind(now.to_datetime()).bind(claimed_until.to_datetime());
        let Some(attempts) = claim.fetch_optional(&self.pool).await? else { return Ok(None) };
        // Read before the alerts: these are at least as new as every transition that is noted as told.
        let open = "select key from alert_delivery where receiver = $1 and delivered_at is null";
        let keys = sqlx::query_scalar(open).bind(receiver).fetch_all(&self.pool).await?;
        let standing = sqlx::query(STANDING).bind(resolved_after.to_datetime()).bind(receiver);
        let alerts = standing.fetch_all(&self.pool).await?.iter().map(read_alert).collect::<Result<_, _>>()?;
        Ok(Some(Resend { alerts, keys, attempts }))
    }

    /// Gives a claimed receiver back: when it is told again, and how often it has failed.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn resent(&self, receiver: &str, next_at: UnixNanos, attempts: i32) -> Result<(), StoreError> {
        let statement =
            "update alert_receiver set next_at = $2, attempts = $3, claimed_until = '-infinity' where receiver = $1";
        let query = sqlx::query(statement).bind(receiver).bind(next_at.to_datetime()).bind(attempts);
        query.execute(&self.pool).await?;
        Ok(())
    }

    /// Notes that transitions were tried once more; what is told again and again counts them here.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn tried(&self, receiver: &str, keys: &[Uuid]) -> Result<(), StoreError> {
        let statement = "update alert_delivery set attempts = attempts + 1 where receiver = $1 and key = any($2)";
        sqlx::query(statement).bind(receiver).bind(keys).execute(&self.pool).await?;
        Ok(())
    }

    /// What became of these transitions, by their keys.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn deliveries(&self, keys: &[Uuid]) -> Result<HashMap<Uuid, Vec<DeliveryState>>, StoreError> {
        let statement = "select * from alert_delivery where key = any($1) order by receiver";
        let mut all: HashMap<Uuid, Vec<DeliveryState>> = HashMap::new();
        for row in sqlx::query(statement).bind(keys).fetch_all(&self.pool).await? {
            all.entry(row.try_get("key")?).or_default().push(DeliveryState {
                receiver: row.try_get("receiver")?,
                attempts: row.try_get("attempts")?,
                delivered_at: optional_time(&row, "delivered_at")?,
                last_error: row.try_get("last_error")?,
            });
        }
        Ok(all)
    }
}
