//! Judging objectives, and telling of alerts.

use std::sync::Arc;

use anyhow::Context;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Hidden, SloSettings};
use crate::objectives::catalogue::Catalogue;
use crate::objectives::evaluator::{self, Evaluator};
use crate::objectives::latest::LatestVerdicts;
use crate::objectives::notify::{self, Notifier, Receivers};
use crate::store::Store;

/// Parses who receives alerts.
///
/// # Errors
/// Where an address or the key cannot be used; the message says what to change.
pub(super) fn receivers(settings: &SloSettings) -> anyhow::Result<Receivers> {
    let texts = |hidden: &[Hidden]| hidden.iter().map(|one| one.reveal().to_owned()).collect();
    let options = notify::Options {
        alertmanagers: texts(&settings.alertmanager),
        webhooks: texts(&settings.webhook),
        webhook_secret: settings.webhook_secret.as_ref().map(|secret| secret.reveal().to_owned()),
        resend: settings.alert_resend,
    };
    Receivers::read(&options).context("cannot tell of alerts")
}

/// Starts what keeps the alerts of a store and sends them, until `stop`.
pub(super) fn start(
    settings: &SloSettings,
    receivers: Receivers,
    store: &Store,
    catalogue: &Arc<Catalogue>,
    verdicts: Arc<LatestVerdicts>,
    workers: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let notifier = Notifier::new(store.clone(), receivers);
    let told = evaluator::EvaluatorOptions {
        receivers: notifier.receivers(),
        public_url: settings.public_url.clone(),
        verdicts,
    };
    let evaluator = Evaluator::new(store.clone(), Arc::clone(catalogue), told);

    let (every, stopping) = (settings.slo_evaluation, stop.clone());
    workers.spawn(async move { evaluator.run(every, stopping).await });
    let stopping = stop.clone();
    workers.spawn(async move { notifier.run(stopping).await });
}
