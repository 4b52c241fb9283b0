//! Alertmanager's API, version 2: `POST {base}/api/v2/alerts`.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Client;
use serde::Serialize;

use super::RESOLVED_RESENT;
use super::post::{self, Failure};
use super::receiver::Receiver;
use crate::store::StoredAlert;
use model::{Nanos, UnixNanos};

/// Alerts of one call.
const BATCH: usize = 500;

/// How many times an alert that fires may miss being sent again before Alertmanager takes it for resolved.
const MISSES: u32 = 4;

/// One alert, as Alertmanager takes it. It removes doubles by the labels.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostedAlert<'a> {
    labels: &'a BTreeMap<String, String>,
    annotations: &'a BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "Option::is_none")]
    generator_url: Option<&'a str>,
}

impl<'a> PostedAlert<'a> {
    /// One that fires ends by itself some time after nobody has told of it any more.
    pub(super) fn of(alert: &'a StoredAlert, now: UnixNanos, resend: Duration) -> Self {
        let time = |at: UnixNanos| at.to_datetime().to_rfc3339();
        let kept = Nanos::from(resend * MISSES).max(RESOLVED_RESENT);
        Self {
            labels: &alert.labels,
            annotations: &alert.annotations,
            starts_at: time(alert.starts_at),
            ends_at: time(alert.ends_at.unwrap_or(now + kept)),
            generator_url: alert.generator_url.as_deref(),
        }
    }
}

/// Tells how these alerts stand.
pub(super) async fn send(
    client: &Client,
    receiver: &Receiver,
    alerts: &[StoredAlert],
    now: UnixNanos,
    resend: Duration,
) -> Result<(), Failure> {
    let mut url = receiver.url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["api", "v2", "alerts"]);
    }
    for batch in alerts.chunks(BATCH) {
        let posted: Vec<PostedAlert<'_>> = batch.iter().map(|alert| PostedAlert::of(alert, now, resend)).collect();
        post::send(client.post(url.clone()).json(&posted), now).await?;
    }
    Ok(())
}
