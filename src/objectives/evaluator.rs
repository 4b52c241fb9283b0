//! Judges every objective, again and again, and keeps its alerts.
//!
//! A round is one transaction under one lock: several instances never work on the same alerts, and a change is written
//! together with what each receiver is owed of it.

mod judged;
mod options;
mod round;
mod scope;

pub use options::EvaluatorOptions;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use self::judged::Judged;
use self::round::Round;
use self::scope::Scopes;
use super::assess::assess;
use super::catalogue::{Catalogue, Versioned};
use super::minutes::MinuteCounts;
use crate::reader::{ReadError, Reader};
use crate::store::{Store, StoreError};
use model::{Interval, UnixNanos};
use slo::alert::Watch;
use slo::burn::BurnState;
use slo::indicator::Indicator;
use slo::live::live_end;

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evaluated {
    /// Objectives that were judged.
    pub judged: usize,
    /// Objectives that could not be judged; their alerts stay as they are.
    pub failed: usize,
    /// Alerts that fired or were resolved.
    pub changes: usize,
    /// Alerts that fire now.
    pub firing: usize,
}

/// Judges objectives and keeps their alerts.
#[derive(Clone)]
pub struct Evaluator {
    store: Store,
    reader: Reader,
    catalogue: Arc<Catalogue>,
    minutes: MinuteCounts,
    options: EvaluatorOptions,
}

/// Burn rates by the name of their objective.
type BurnStates = HashMap<String, Vec<BurnState>>;

impl Evaluator {
    /// For the objectives of `catalogue`, which is that of `store`.
    pub fn new(store: Store, catalogue: Arc<Catalogue>, options: EvaluatorOptions) -> Self {
        let (reader, minutes) = (Reader::new(store.clone()), MinuteCounts::new(store.clone()));
        Self { store, reader, catalogue, minutes, options }
    }

    /// Judges every so often until `stop`. A failure is logged and counted, and the next round tries again.
    pub async fn run(&self, every: Duration, stop: CancellationToken) {
        loop {
            let started = Instant::now();
            match self.evaluate(UnixNanos::now()).await {
                Ok(Some(done)) => report(&done, started.elapsed()),
                Ok(None) => tracing::debug!("another instance judges the objectives"),
                Err(error) => {
                    metrics::counter!("tracejoin_slo_rounds_failed_total").increment(1);
                    tracing::warn!(%error, "objectives could not be judged; trying again in the next round");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every.saturating_sub(started.elapsed())) => {}
            }
        }
    }

    /// Judges every objective as of `now`, and records what changes; `None` where another instance is at it.
    ///
    /// # Errors
    /// [`StoreError::Database`]; no alert has changed then.
    pub async fn evaluate(&self, now: UnixNanos) -> Result<Option<Evaluated>, StoreError> {
        // Counting has a lock of its own, and may take longer than an open transaction should.
        let known = self.catalogue.refresh().await?;
        if let Err(error) = self.minutes.count(&known, now).await {
            tracing::warn!(%error, "requests could not be counted by minute; burn rates are read without that");
        }
        let Some(claim) = self.store.claim_alerts().await? else { return Ok(None) };
        // Read again under the lock: an alert that another instance has raised belongs to an objective known by then.
        let current = self.catalogue.refresh().await?;
        let mut round = Round::begin(claim, &self.options, now).await?;
        let mut burn = self.burn_states(&current, now).await;
        let mut scopes = Scopes::new(&self.reader, live_end(self.store.options().settle.into(), now));
        let mut done = Evaluated::default();
        let mut verdicts = Vec::new();
        for versioned in current.iter().filter(|one| one.objective.indicator != Indicator::DroppedIterations) {
            let burn = burn.remove(versioned.objective.id.as_str()).unwrap_or_default();
            match self.judge(versioned, round.watch(versioned), burn, &mut scopes, now).await {
                Ok(judged) => {
                    done.judged += 1;
                    verdicts.push((versioned.objective.id.clone(), judged.verdict.status.clone()));
                    round.apply(&judged, &self.reader, &mut scopes).await?;
                }
                Err(error) => {
                    done.failed += 1;
                    round.leave(versioned).await?;
                    tracing::warn!(slo = versioned.objective.id.as_str(), %error, "an objective could not be judged");
                }
            }
        }
        round.end_orphans(self.catalogue.names().await).await?;
        (done.changes, done.firing) = round.commit().await?;
        self.options.verdicts.replace(now, verdicts);
        Ok(Some(done))
    }

    /// What the burn windows of all objectives say. Those that cannot be read are left out, so their alerts hold.
    async fn burn_states(&self, current: &[Versioned], now: UnixNanos) -> BurnStates {
        let mut states = BurnStates::new();
        let mut reading = match self.minutes.for_burn(current, now).await {
            Ok(reading) => reading,
            Err(error) => {
                tracing::warn!(%error, "burn rates cannot be read");
                return states;
            }
        };
        for versioned in current {
            match reading.burn(versioned).await {
                Ok(burn) => drop(states.insert(versioned.objective.id.to_string(), burn)),
                Err(error) => {
                    tracing::debug!(slo = versioned.objective.id.as_str(), %error, "there is no burn rate");
                }
            }
        }
        states
    }

    /// Judges one objective. `before` is what earlier rounds remember of it.
    async fn judge(
        &self,
        versioned: &Versioned,
        before: Watch,
        burn: Vec<BurnState>,
        scopes: &mut Scopes<'_>,
        now: UnixNanos,
    ) -> Result<Judged, ReadError> {
        let objective = &versioned.objective;
        let window = Interval { start: scopes.end() - objective.window, end: scopes.end() };
        let verdict = assess(&self.reader, objective, window, true).await?;
        let silent_after = objective.alerting.silent_after.unwrap_or(objective.window);
        let presence = scopes.presence(&objective.conditions.labels, silent_after).await?;
        let watch = before.after(&verdict, &presence, now);
        Ok(Judged { versioned: versioned.clone(), verdict, burn, presence, watch })
    }
}

fn report(done: &Evaluated, took: Duration) {
    let count = |result| metrics::counter!("tracejoin_slo_evaluations_total", "result" => result);
    count("ok").increment(done.judged as u64);
    count("failed").increment(done.failed as u64);
    metrics::histogram!("tracejoin_slo_round_seconds").record(took);
    metrics::gauge!("tracejoin_alerts_firing").set(done.firing as f64);
}
