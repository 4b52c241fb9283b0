//! What a replay is asked and says, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::serve::slos::status::BurnAnswer;
use crate::serve::verdict::VerdictAnswer;
use api::rfc3339;
use model::Nanos;
use slo::dry_run::{DryRunQuestion, Firing, Noticed, Replayed, noticed};

/// What no replay can know.
const HINDSIGHT: &str =
    "data that came late counts as if it had been there in time; sources that fell silent are not replayed";

/// What is to be replayed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DryRunRequest)]
pub struct DryRunBody {
    /// Objectives: a list of documents as JSON, one document, or text with YAML documents.
    pub objectives: Value,
    /// The first evaluation: RFC 3339, or relative to now such as `-24h`.
    pub from: String,
    /// The last one; now where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How far evaluations are apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(default = "30s")]
    pub every: Option<String>,
    /// When people noticed that something was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noticed: Vec<String>,
}

/// What objectives would have told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DryRuns)]
pub struct DryRunsAnswer {
    /// One for each objective, in their order.
    pub dry_runs: Vec<DryRunAnswer>,
}

/// What one objective would have told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DryRun)]
pub struct DryRunAnswer {
    /// The objective.
    #[schema(example = "queue-p95")]
    pub slo: String,
    /// What it limits.
    #[schema(example = "gpu_queue")]
    pub phase: String,
    /// The first evaluation.
    #[schema(format = DateTime)]
    pub from: String,
    /// The last may be as late as this.
    #[schema(format = DateTime)]
    pub to: String,
    /// How many evaluations there were.
    pub evaluations: u64,
    /// How many of them had which verdict.
    pub verdicts: VerdictCountsAnswer,
    /// The part of them at which nobody could tell.
    pub no_verdict_share: Option<f64>,
    /// Alerts that would have been told, in the order of their start.
    pub firings: Vec<FiringAnswer>,
    /// For each time at which people noticed, the alert that was about it.
    pub noticed: Vec<NoticedAnswer>,
    /// What a replay cannot know.
    pub remark: String,
}

/// Evaluations by their verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VerdictCounts)]
pub struct VerdictCountsAnswer {
    /// It held.
    pub ok: u64,
    /// It held, though the interval straddled the threshold.
    pub at_risk: u64,
    /// It was broken.
    pub broken: u64,
    /// Nobody could tell.
    pub no_verdict: u64,
}

/// An alert that would have been told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Firing)]
pub struct FiringAnswer {
    /// Its name.
    #[schema(example = "TracejoinObjectiveBroken")]
    pub alert: String,
    /// How much of a hurry there is.
    #[schema(example = "page")]
    pub severity: String,
    /// When it would have fired.
    #[schema(format = DateTime)]
    pub from: String,
    /// When it would have resolved; null where it still fired at the end.
    #[schema(format = DateTime)]
    pub to: Option<String>,
    /// The verdict when it fired.
    pub verdict: VerdictAnswer,
    /// How fast the budget burned then, of an alert on it.
    pub burn: Option<BurnAnswer>,
}

/// A time at which people noticed, and the alert about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Noticed)]
pub struct NoticedAnswer {
    /// The time.
    #[schema(format = DateTime)]
    pub at: String,
    /// The first alert that fired at that time, else the nearest within 6 hours; null where there is none.
    pub alert: Option<String>,
    /// When it fired.
    #[schema(format = DateTime)]
    pub fired_at: Option<String>,
    /// How many seconds before the time it fired; negative where it fired after.
    pub seconds_before: Option<f64>,
    /// Whether it fired at that time.
    pub fired_then: bool,
}

impl DryRunAnswer {
    pub fn of(asked: &DryRunQuestion, found: &Replayed) -> Self {
        let verdicts = &found.verdicts;
        Self {
            slo: asked.objective.id.to_string(),
            phase: asked.objective.indicator.name().to_owned(),
            from: rfc3339(asked.window.start),
            to: rfc3339(asked.window.end),
            evaluations: verdicts.all(),
            verdicts: VerdictCountsAnswer {
                ok: verdicts.ok,
                at_risk: verdicts.at_risk,
                broken: verdicts.broken,
                no_verdict: verdicts.no_verdict,
            },
            no_verdict_share: verdicts.no_verdict_share(),
            firings: found.firings.iter().map(|firing| FiringAnswer::of(asked, firing)).collect(),
            noticed: asked.noticed.iter().map(|at| NoticedAnswer::of(&noticed(*at, &found.firings))).collect(),
            remark: HINDSIGHT.to_owned(),
        }
    }
}

impl FiringAnswer {
    fn of(asked: &DryRunQuestion, firing: &Firing) -> Self {
        Self {
            alert: firing.trouble.name().to_owned(),
            severity: firing.trouble.severity().name().to_owned(),
            from: rfc3339(firing.start),
            to: firing.end.map(rfc3339),
            verdict: VerdictAnswer::of(&asked.objective, &firing.verdict),
            burn: firing.burn.as_ref().map(BurnAnswer::of),
        }
    }
}

impl NoticedAnswer {
    fn of(noticed: &Noticed<'_>) -> Self {
        Self {
            at: rfc3339(noticed.at),
            alert: noticed.firing.map(|firing| firing.trouble.name().to_owned()),
            fired_at: noticed.firing.map(|firing| rfc3339(firing.start)),
            seconds_before: noticed.before.map(Nanos::as_secs),
            fired_then: noticed.firing.is_some_and(|firing| firing.is_on(noticed.at)),
        }
    }
}
