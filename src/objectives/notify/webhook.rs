//! Webhooks after the Standard Webhooks specification: an id that repetitions share, a time, and a signature.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use sha2::Sha256;

use super::error::NotifyError;
use super::post::{self, Failure};
use super::receiver::Receiver;
use crate::store::AlertTransition;
use model::UnixNanos;

/// The key that signs.
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    /// From `whsec_` and base64.
    ///
    /// # Errors
    /// [`NotifyError::Secret`], without the key.
    pub(super) fn read(text: &str) -> Result<Self, NotifyError> {
        let encoded = text.strip_prefix("whsec_").ok_or(NotifyError::Secret("does not begin with whsec_"))?;
        let bytes = STANDARD.decode(encoded).map_err(|_| NotifyError::Secret("is not base64"))?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(NotifyError::Secret("is too short or too long"));
        }
        let mac = Hmac::new_from_slice(&bytes).map_err(|_| NotifyError::Secret("cannot be used"))?;
        Ok(Self(mac))
    }

    /// The header `webhook-signature`: of id, time in whole seconds and body, with dots between.
    pub(super) fn signature(&self, id: &str, seconds: i64, body: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// What a webhook is sent.
#[derive(Debug, Serialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: EventData<'a>,
}

#[derive(Debug, Serialize)]
struct EventData<'a> {
    key: String,
    fingerprint: String,
    state: &'static str,
    slo: &'a str,
    labels: &'a BTreeMap<String, String>,
    annotations: &'a BTreeMap<String, String>,
    starts_at: String,
    ends_at: Option<String>,
    generator_url: Option<&'a str>,
}

impl<'a> Event<'a> {
    /// Of one transition; the same each time.
    pub(super) fn of(transition: &'a AlertTransition) -> Self {
        let time = |at: UnixNanos| at.to_datetime().to_rfc3339();
        let (kind, state) = if transition.firing { ("alert.firing", "firing") } else { ("alert.resolved", "resolved") };
        Self {
            kind,
            timestamp: time(transition.at),
            data: EventData {
                key: transition.key.to_string(),
                fingerprint: transition.fingerprint.simple().to_string(),
                state,
                slo: &transition.slo,
                labels: &transition.labels,
                annotations: &transition.annotations,
                starts_at: time(transition.starts_at),
                ends_at: (!transition.firing).then(|| time(transition.at)),
                generator_url: transition.generator_url.as_deref(),
            },
        }
    }
}

/// Tells of one transition.
pub(super) async fn send(
    client: &Client,
    receiver: &Receiver,
    key: &Key,
    transition: &AlertTransition,
    now: UnixNanos,
) -> Result<(), Failure> {
    let body = serde_json::to_string(&Event::of(transition)).map_err(|error| Failure {
        reason: format!("the alert cannot be written as JSON: {error}"),
        retry_after: None,
    })?;
    let (id, seconds) = (transition.key.to_string(), now.0.div_euclid(1_000_000_000));
    let request = client
        .post(receiver.url.clone())
        .header(CONTENT_TYPE, "application/json")
        .header("webhook-signature", key.signature(&id, seconds, &body))
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-id", id)
        .body(body);
    post::send(request, now).await
}
