//! Telling of alerts: Alertmanagers again and again how everything stands, webhooks once of each change.
//!
//! What is owed to whom lies in the database, written with the change itself. So a restart loses nothing, several instances
//! share the work, and a receiver that is unavailable is told when it is back. It may be told twice, under the same key.

mod alertmanager;
mod backoff;
mod error;
mod post;
mod receiver;
#[cfg(test)]
mod tests;
mod webhook;

pub use error::NotifyError;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Client;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::backoff::backoff;
use self::post::Failure;
use self::receiver::{Kind, Receiver};
use self::webhook::Key;
use crate::store::{Store, StoreError};
use model::{Nanos, UnixNanos};

/// How often the outbox is looked into.
const PAUSE: Duration = Duration::from_secs(1);

/// How long one who sends keeps others from sending the same: longer than it can take.
const CLAIM: Nanos = Nanos(30_000_000_000);

/// How long Alertmanagers are told again of what was resolved.
const RESOLVED_RESENT: Nanos = Nanos(300_000_000_000);

/// Who is told, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Addresses of Alertmanagers, perhaps with a user and a password.
    pub alertmanagers: Vec<String>,
    /// Addresses of webhooks, perhaps with a user and a password.
    pub webhooks: Vec<String>,
    /// The key that signs what webhooks are sent, as `whsec_` and base64.
    pub webhook_secret: Option<String>,
    /// How often Alertmanagers are told again.
    pub resend: Duration,
}

/// The receivers of [`Options`], parsed: nothing about them can fail once alerts are sent except their answers.
#[derive(Clone)]
pub struct Receivers {
    client: Client,
    list: Arc<[Receiver]>,
    key: Option<Arc<Key>>,
    resend: Duration,
}

impl Receivers {
    /// Parses the settings; opens no connection.
    ///
    /// # Errors
    /// All of [`NotifyError`].
    pub fn read(options: &Options) -> Result<Self, NotifyError> {
        let mut receivers = receiver::read(Kind::Alertmanager, &options.alertmanagers)?;
        receivers.extend(receiver::read(Kind::Webhook, &options.webhooks)?);
        receivers.dedup_by(|one, other| one.id == other.id);
        let key = options.webhook_secret.as_deref().map(Key::read).transpose()?;
        if key.is_none() && !options.webhooks.is_empty() {
            return Err(NotifyError::Secret("is missing"));
        }
        let client = post::client().map_err(NotifyError::Client)?;
        Ok(Self { client, list: receivers.into(), key: key.map(Arc::new), resend: options.resend })
    }
}

/// Tells receivers what they are owed.
#[derive(Clone)]
pub struct Notifier {
    store: Store,
    client: Client,
    receivers: Arc<[Receiver]>,
    key: Option<Arc<Key>>,
    resend: Duration,
}

impl Notifier {
    /// For the alerts of a store.
    pub fn new(store: Store, receivers: Receivers) -> Self {
        let Receivers { client, list, key, resend } = receivers;
        Self { store, client, receivers: list, key, resend }
    }

    /// The names under which receivers are owed something: kind, host and a digest of the address.
    pub fn receivers(&self) -> Vec<String> {
        self.receivers.iter().map(|receiver| receiver.id.clone()).collect()
    }

    /// Tells until `stop`. Each receiver has a task of its own, so that none waits for another.
    pub async fn run(&self, stop: CancellationToken) {
        let each = self.receivers.iter().map(|receiver| async {
            while !stop.is_cancelled() {
                self.deliver_to(receiver, UnixNanos::now()).await;
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        });
        join_all(each).await;
    }

    /// Tells every receiver what is due by `now`, each until it fails.
    pub async fn deliver(&self, now: UnixNanos) {
        join_all(self.receivers.iter().map(|receiver| self.deliver_to(receiver, now))).await;
    }

    async fn deliver_to(&self, receiver: &Receiver, now: UnixNanos) {
        let done = match receiver.kind {
            Kind::Alertmanager => self.tell_alertmanager(receiver, now).await,
            Kind::Webhook => self.tell_webhook(receiver, now).await,
        };
        if let Err(error) = done {
            tracing::warn!(receiver = receiver.id, %error, "what a receiver is owed cannot be read or noted");
        }
    }

    async fn tell_webhook(&self, receiver: &Receiver, now: UnixNanos) -> Result<(), StoreError> {
        let Some(key) = &self.key else { return Ok(()) };
        while let Some(delivery) = self.store.claim_delivery(&receiver.id, now, now + CLAIM).await? {
            let keys = [delivery.transition.key];
            let sent = webhook::send(&self.client, receiver, key, &delivery.transition, now).await;
            let Err(failure) = sent else {
                told(receiver, 1);
                self.store.delivered(&receiver.id, &keys, now).await?;
                continue;
            };
            let next_at = now + failed(receiver, &failure, delivery.attempts, &keys);
            self.store.not_delivered(&receiver.id, &keys, next_at, &failure.reason).await?;
            break;
        }
        Ok(())
    }

    async fn tell_alertmanager(&self, receiver: &Receiver, now: UnixNanos) -> Result<(), StoreError> {
        let resolved_after = now - RESOLVED_RESENT;
        let claim = self.store.claim_resend(&receiver.id, now, now + CLAIM, resolved_after).await?;
        let Some(resend) = claim else { return Ok(()) };
        let sent = alertmanager::send(&self.client, receiver, &resend.alerts, now, self.resend).await;
        self.store.tried(&receiver.id, &resend.keys).await?;
        match sent {
            Ok(()) => {
                told(receiver, resend.keys.len());
                self.store.delivered(&receiver.id, &resend.keys, now).await?;
                self.store.resent(&receiver.id, now + Nanos::from(self.resend), 0).await
            }
            Err(failure) => {
                let attempts = resend.attempts.saturating_add(1);
                let next_at = now + failed(receiver, &failure, attempts, &resend.keys);
                self.store.not_delivered(&receiver.id, &resend.keys, next_at, &failure.reason).await?;
                self.store.resent(&receiver.id, next_at, attempts).await
            }
        }
    }
}

fn told(receiver: &Receiver, transitions: usize) {
    let labels = [("receiver", receiver.id.clone()), ("result", "delivered".to_owned())];
    metrics::counter!("tracejoin_alert_notifications_total", &labels).increment(transitions as u64);
}

/// Counts and logs a failure, and says how long to wait.
fn failed(receiver: &Receiver, failure: &Failure, attempts: i32, keys: &[Uuid]) -> Nanos {
    let wait = backoff(attempts, failure.retry_after, rand::random());
    let labels = [("receiver", receiver.id.clone()), ("result", "failed".to_owned())];
    metrics::counter!("tracejoin_alert_notifications_total", &labels).increment(1);
    tracing::warn!(
        receiver = receiver.id,
        attempts,
        transitions = keys.len(),
        wait = ?wait,
        reason = failure.reason,
        "a receiver could not be told of alerts"
    );
    Nanos::from(wait)
}
