//! One round: alerts as they stood, and every change of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::judged::Judged;
use super::options::EvaluatorOptions;
use super::scope::Scopes;
use crate::objectives::catalogue::Versioned;
use crate::reader::Reader;
use crate::store::{AlertClaim, AlertTransition, StoreError, StoredAlert, StoredWatch};
use model::UnixNanos;
use slo::alert::{Annotations, Change, Condition, Facts, Fingerprint, Labels, Trouble, Watch, annotations};
use slo::alert::{resolution, state_url};

/// The name of the text that says why an alert was resolved.
const RESOLVED: &str = "resolved";

/// The work of one round.
pub(super) struct Round<'a> {
    claim: AlertClaim,
    options: &'a EvaluatorOptions,
    now: UnixNanos,
    alerts: HashMap<Uuid, StoredAlert>,
    before: HashMap<String, StoredWatch>,
    watches: Vec<StoredWatch>,
    /// The alerts that the objectives judged in this round can raise.
    asked_for: HashSet<Uuid>,
    /// Objectives that could not be judged.
    left: HashSet<String>,
    changes: usize,
}

impl<'a> Round<'a> {
    /// Reads what earlier rounds left.
    pub(super) async fn begin(
        mut claim: AlertClaim,
        options: &'a EvaluatorOptions,
        now: UnixNanos,
    ) -> Result<Self, StoreError> {
        let (alerts, before) = (claim.alerts().await?, claim.watches().await?);
        let (watches, asked_for, left) = (Vec::new(), HashSet::new(), HashSet::new());
        Ok(Self { claim, options, now, alerts, before, watches, asked_for, left, changes: 0 })
    }

    /// What is remembered of an objective; nothing of another version.
    pub(super) fn watch(&self, versioned: &Versioned) -> Watch {
        let stored = self.before.get(versioned.objective.id.as_str());
        stored.filter(|watch| watch.version == versioned.version).map_or_else(Watch::default, |watch| Watch {
            no_verdict_since: watch.no_verdict_since,
            client_heard_at: watch.client_heard_at,
            server_heard_at: watch.server_heard_at,
        })
    }

    /// Leaves the alerts of an objective that could not be judged as they are.
    pub(super) async fn leave(&mut self, versioned: &Versioned) -> Result<(), StoreError> {
        let id = versioned.objective.id.as_str();
        self.watches.extend(self.before.get(id).cloned());
        self.left.insert(id.to_owned());
        self.claim.keep().await
    }

    /// Brings the alerts of an objective up to date.
    pub(super) async fn apply(
        &mut self,
        judged: &Judged,
        reader: &Reader,
        scopes: &mut Scopes<'_>,
    ) -> Result<(), StoreError> {
        self.claim.keep().await?;
        self.watches.push(stored(judged));
        for trouble in Trouble::of(judged.objective()) {
            let labels = Labels::of(judged.objective(), &trouble);
            let fingerprint = labels.fingerprint();
            self.asked_for.insert(fingerprint.0);
            let condition = judged.condition(&trouble, self.now);
            let known = self.alerts.get(&fingerprint.0).cloned();
            let firing = known.as_ref().is_some_and(|alert| alert.firing);
            let change = condition.change(firing);
            if change.is_none() && condition != Condition::Present {
                continue;
            }
            let texts = self.texts(judged, &trouble, change, reader, scopes).await;
            let mut alert = known.unwrap_or_else(|| self.new_alert(judged, &labels, fingerprint));
            match change {
                Some(Change::Resolved) => drop(alert.annotations.insert(RESOLVED.to_owned(), texts.resolved)),
                Some(Change::Fired) | None => alert.annotations = texts.annotations,
            }
            match change {
                Some(change) => self.change(alert, change).await?,
                None => self.claim.put(&alert).await?,
            }
        }
        Ok(())
    }

    /// What an alert says now, and why it ends where it does.
    async fn texts(
        &self,
        judged: &Judged,
        trouble: &Trouble,
        change: Option<Change>,
        reader: &Reader,
        scopes: &mut Scopes<'_>,
    ) -> Texts {
        let objective = judged.objective();
        let told = |error: &dyn std::fmt::Display| {
            tracing::warn!(slo = objective.id.as_str(), %error, "an alert is told without its examples");
        };
        let mut exemplars = Vec::new();
        let mut traffic_share = None;
        if change != Some(Change::Resolved) {
            let found = judged.exemplars(trouble, reader).await;
            exemplars = found.inspect_err(|error| told(error)).unwrap_or_default();
            let share = scopes.traffic_share(&objective.conditions.labels, objective.window).await;
            traffic_share = share.inspect_err(|error| told(error)).unwrap_or_default();
        }
        let facts = Facts {
            objective,
            trouble,
            verdict: &judged.verdict,
            burn: judged.burn_of(trouble),
            traffic_share,
            exemplars: &exemplars,
            public_url: self.options.public_url.as_ref(),
        };
        Texts { annotations: annotations(&facts), resolved: resolution(&facts) }
    }

    fn new_alert(&self, judged: &Judged, labels: &Labels, fingerprint: Fingerprint) -> StoredAlert {
        let public = self.options.public_url.as_ref();
        StoredAlert {
            fingerprint: fingerprint.0,
            slo: judged.objective().id.to_string(),
            labels: labels.as_map().clone(),
            annotations: BTreeMap::new(),
            generator_url: public.and_then(|base| state_url(base, judged.objective())).map(String::from),
            firing: false,
            transitions: 0,
            starts_at: self.now,
            ends_at: None,
        }
    }

    /// Ends what nobody asks for any more: alerts of objectives that are not among the `living`, or have another identity.
    pub(super) async fn end_orphans(&mut self, living: HashSet<String>) -> Result<(), StoreError> {
        let firing = self.alerts.values().filter(|alert| alert.firing);
        let orphans: Vec<StoredAlert> = firing.filter(|alert| self.is_orphan(alert, &living)).cloned().collect();
        for mut alert in orphans {
            let reason = if living.contains(&alert.slo) {
                "its objective was changed and no longer asks for it"
            } else {
                "its objective was deleted"
            };
            alert.annotations.insert(RESOLVED.to_owned(), reason.to_owned());
            self.change(alert, Change::Resolved).await?;
        }
        Ok(())
    }

    /// An objective that is there but was not judged keeps its alerts: it may be of a newer version of this program.
    fn is_orphan(&self, alert: &StoredAlert, living: &HashSet<String>) -> bool {
        let was_judged = self.watches.iter().any(|watch| watch.slo == alert.slo) && !self.left.contains(&alert.slo);
        !living.contains(&alert.slo) || (was_judged && !self.asked_for.contains(&alert.fingerprint))
    }

    async fn change(&mut self, mut alert: StoredAlert, change: Change) -> Result<(), StoreError> {
        alert.firing = change == Change::Fired;
        alert.transitions += 1;
        if alert.firing {
            (alert.starts_at, alert.ends_at) = (self.now, None);
        } else {
            alert.ends_at = Some(self.now);
        }
        let transition = AlertTransition {
            key: Fingerprint(alert.fingerprint).transition(alert.transitions, self.now),
            fingerprint: alert.fingerprint,
            number: alert.transitions,
            at: self.now,
            firing: alert.firing,
            slo: alert.slo.clone(),
            labels: alert.labels.clone(),
            annotations: alert.annotations.clone(),
            generator_url: alert.generator_url.clone(),
            starts_at: alert.starts_at,
        };
        self.claim.put(&alert).await?;
        self.claim.record(&transition, &self.options.receivers).await?;
        metrics::counter!("tracejoin_alert_transitions_total", "state" => change.state()).increment(1);
        let name = alert.labels.get("alertname").cloned().unwrap_or_default();
        tracing::info!(alert = name, slo = alert.slo, state = change.state(), "an alert changed");
        self.alerts.insert(alert.fingerprint, alert);
        self.changes += 1;
        Ok(())
    }

    /// Makes it all happen; returns how many alerts changed, and how many fire.
    pub(super) async fn commit(mut self) -> Result<(usize, usize), StoreError> {
        let known: Vec<String> = self.watches.iter().map(|watch| watch.slo.clone()).collect();
        self.claim.remember(&self.watches, &known).await?;
        self.claim.commit().await?;
        Ok((self.changes, self.alerts.values().filter(|alert| alert.firing).count()))
    }
}

/// What an alert says.
struct Texts {
    annotations: Annotations,
    resolved: String,
}

fn stored(judged: &Judged) -> StoredWatch {
    let Watch { no_verdict_since, client_heard_at, server_heard_at } = judged.watch;
    let (slo, version) = (judged.objective().id.to_string(), judged.versioned.version);
    StoredWatch { slo, version, no_verdict_since, client_heard_at, server_heard_at }
}
