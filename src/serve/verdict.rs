//! A verdict as JSON: what was decided, and every number that decided it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use api::rfc3339;
use model::Unit;
use slo::evidence::smaller;
use slo::objective::Goal;
use slo::{Evidence, Gap, Objective, Status, Verdict};
use stats::summary::Ends;

/// An objective's verdict over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Verdict)]
pub struct VerdictAnswer {
    /// The objective.
    #[schema(example = "queue-p95")]
    pub slo: String,
    /// What it limits.
    #[schema(example = "gpu_queue")]
    pub phase: String,
    /// Whom it is for.
    pub owner: Option<String>,
    /// The budget of which it is the whole or a part.
    pub budget: Option<String>,
    /// Which number is compared with the threshold: `p95`, `share` of requests, `ratio` of requests within a `limit`, or
    /// `pooled` share of time.
    #[schema(example = "p95")]
    pub goal: String,
    /// The least share of good requests; null where time is shared and not requests.
    pub target: Option<f64>,
    /// `ok`, `broken` or `no_verdict`.
    #[schema(example = "broken")]
    pub verdict: String,
    /// Whether it is `ok` though the interval straddles the threshold.
    pub at_risk: bool,
    /// Whether the whole interval lies past the threshold.
    pub confirmed: bool,
    /// Why there is no verdict.
    pub reasons: Vec<ReasonAnswer>,
    /// Start of what was read.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// The threshold and what is compared with it.
    #[serde(flatten)]
    pub measured: MeasuredAnswer,
    /// Of a ratio, what each request must keep, in milliseconds or tokens a second or as a share; its threshold is the
    /// share of requests that must.
    pub limit: Option<f64>,
    /// Why the value or an end of the interval is not there.
    pub ci_reason: Option<String>,
    /// The exact probability with which such an interval encloses the truth, if requests are independent; null where
    /// there is no interval, as of a share of time.
    pub ci_coverage: Option<f64>,
    /// Why a bound is not there.
    pub bounds_reason: Option<String>,
    /// Requests that decide: good and bad ones, or those whose time is shared.
    pub n: u64,
    /// Within the threshold.
    pub good: u64,
    /// Past it, those included that were cut off after it.
    pub bad: u64,
    /// Cut off before it, so that they could have become either.
    pub left_out: u64,
    /// Client records without a value.
    pub missing: u64,
    /// Client records that may be among them or not: no spans came that would tell a label of the conditions.
    pub unplaced: u64,
    /// Requests that have not settled, in no other count.
    pub pending: u64,
    /// Settled client records that the objective is about.
    pub client_records: u64,
    /// The matched ones among them, as a share; null without any.
    pub join_coverage: Option<f64>,
    /// The conditions by which `join_coverage` is not filtered, since no client in the window tells these labels.
    pub not_filtered_by: Vec<String>,
    /// Those that tell a value, as a share; null without any.
    pub phase_coverage: Option<f64>,
    /// The part of the window's tenths with traffic; null where the window is whole by definition.
    pub filled: Option<f64>,
    /// `exact`, or from a `digest`.
    pub method: String,
    /// How many requests `good` and `bad` may be off: 0 unless they are from a digest.
    pub rank_error: u64,
}

/// One reason for which there is no verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = VerdictReason)]
pub struct ReasonAnswer {
    /// `too_few`, `low_coverage`, `window_not_full` or `bounds_straddle`.
    pub reason: String,
    /// The numbers, in words.
    pub detail: String,
}

/// The numbers of a verdict in the objective's unit. An end that does not exist is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = VerdictNumbers)]
pub enum MeasuredAnswer {
    /// A time.
    Millis {
        /// The limit.
        threshold_ms: f64,
        /// What is compared with it.
        value_ms: Option<f64>,
        /// Its 95 % interval.
        ci_ms: [Option<f64>; 2],
        /// How far the missing could move it.
        bounds_ms: [Option<f64>; 2],
    },
    /// Tokens a second.
    Speed {
        /// The limit.
        threshold_tps: f64,
        /// What is compared with it.
        value_tps: Option<f64>,
        /// Its 95 % interval.
        ci_tps: [Option<f64>; 2],
        /// How far the missing could move it.
        bounds_tps: [Option<f64>; 2],
    },
    /// A part of a whole.
    Share {
        /// The limit.
        threshold: f64,
        /// What is compared with it.
        value: Option<f64>,
        /// Its 95 % interval.
        ci: [Option<f64>; 2],
        /// How far the missing could move it.
        bounds: [Option<f64>; 2],
    },
}

/// The same numbers whatever their unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// `ms`, `tokens/s`, or nothing for shares.
    pub unit: &'static str,
    /// The limit.
    pub threshold: f64,
    /// What is compared with it.
    pub value: Option<f64>,
    /// Its 95 % interval.
    pub interval: [Option<f64>; 2],
}

impl VerdictAnswer {
    /// Of a verdict on an objective.
    pub fn of(objective: &Objective, verdict: &Verdict) -> Self {
        let evidence = &verdict.evidence;
        let reasons = match &verdict.status {
            Status::NoVerdict(gaps) => gaps.iter().map(ReasonAnswer::of).collect(),
            Status::Ok { .. } | Status::Broken => Vec::new(),
        };
        Self {
            slo: objective.id.to_string(),
            phase: objective.indicator.name().to_owned(),
            owner: objective.owner.clone(),
            budget: objective.budget.as_ref().map(ToString::to_string),
            goal: goal(objective.goal),
            target: objective.goal.target().map(|target| target.as_f64()),
            verdict: verdict.status.name().to_owned(),
            at_risk: verdict.status == Status::Ok { at_risk: true },
            confirmed: verdict.confirmed,
            reasons,
            from: rfc3339(evidence.window.start),
            to: rfc3339(evidence.window.end),
            measured: MeasuredAnswer::of(objective, evidence),
            limit: matches!(objective.goal, Goal::Ratio { .. })
                .then(|| objective.indicator.unit().shown(objective.threshold)),
            ci_coverage: evidence.interval_coverage,
            ci_reason: evidence.interval.absence.map(|absence| absence.to_string()),
            bounds_reason: evidence.bounds.absence.map(|absence| absence.to_string()),
            n: evidence.n,
            good: evidence.tally.good,
            bad: evidence.tally.bad,
            left_out: evidence.tally.left_out,
            missing: evidence.tally.missing,
            unplaced: evidence.unplaced,
            pending: evidence.pending,
            client_records: evidence.client_records,
            join_coverage: evidence.join_coverage,
            not_filtered_by: evidence.not_filtered_by.iter().map(|label| label.name().to_owned()).collect(),
            phase_coverage: evidence.phase_coverage,
            filled: evidence.filled,
            method: evidence.method.name().to_owned(),
            rank_error: evidence.rank_error,
        }
    }

    /// The smaller of its two coverages: the one that an objective's minimum is compared with.
    pub fn coverage(&self) -> Option<f64> {
        smaller(self.join_coverage, self.phase_coverage)
    }
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::Quantile { target } => target.field().replace('_', "."),
        Goal::Ratio { .. } => "ratio".to_owned(),
        Goal::Share { .. } => "share".to_owned(),
        Goal::Pooled => "pooled".to_owned(),
    }
}

impl ReasonAnswer {
    fn of(gap: &Gap) -> Self {
        Self { reason: gap.code().to_owned(), detail: gap.to_string() }
    }
}

impl MeasuredAnswer {
    fn of(objective: &Objective, evidence: &Evidence) -> Self {
        let (unit, threshold) = match objective.goal {
            Goal::Ratio { target } => (Unit::Share, target.as_f64()),
            _ => (objective.indicator.unit(), objective.threshold),
        };
        let ends = |ends: &Ends| [ends.lower, ends.upper].map(|end| end.map(|value| unit.shown(value)));
        let (threshold, value) = (unit.shown(threshold), evidence.value.map(|value| unit.shown(value)));
        let (ci, bounds) = (ends(&evidence.interval), ends(&evidence.bounds));
        match unit {
            Unit::Nanos | Unit::Millis => {
                Self::Millis { threshold_ms: threshold, value_ms: value, ci_ms: ci, bounds_ms: bounds }
            }
            Unit::TokensPerSecond => {
                Self::Speed { threshold_tps: threshold, value_tps: value, ci_tps: ci, bounds_tps: bounds }
            }
            Unit::Share => Self::Share { threshold, value, ci, bounds },
        }
    }

    /// Without the unit in their names.
    pub fn numbers(&self) -> Numbers {
        let (unit, threshold, value, interval) = match *self {
            Self::Millis { threshold_ms, value_ms, ci_ms, .. } => ("ms", threshold_ms, value_ms, ci_ms),
            Self::Speed { threshold_tps, value_tps, ci_tps, .. } => ("tokens/s", threshold_tps, value_tps, ci_tps),
            Self::Share { threshold, value, ci, .. } => ("", threshold, value, ci),
        };
        Numbers { unit, threshold, value, interval }
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use model::{Interval, Metric, UnixNanos};
    use slo::{Indicator, ObjectiveId, Tally, fixtures};
    use stats::Quantile;
    use stats::summary::Absence;

    /// An objective on the 0.95-quantile of a metric, or on a share.
    pub fn objective(name: &str, indicator: Indicator, threshold: f64) -> Objective {
        let target = Quantile::P95;
        let goal = match indicator {
            Indicator::Metric(_) => Goal::Quantile { target },
            Indicator::UnattributedShare => Goal::Pooled,
            _ => Goal::Share { target },
        };
        let id = ObjectiveId::new(name).expect("a name");
        Objective { id, min_coverage: 0.9, ..fixtures::objective(indicator, goal, threshold) }
    }

    /// A verdict on 400 of 428 requests, in the stored unit.
    pub fn verdict(status: Status, value: f64) -> Verdict {
        let window = Interval { start: UnixNanos(0), end: UnixNanos(60_000_000_000) };
        let tally = Tally { good: 372, bad: 28, left_out: 1, missing: 27 };
        let evidence = Evidence {
            client_records: 428,
            join_coverage: Some(400.0 / 428.0),
            value: Some(value),
            interval: Ends { lower: Some(0.9 * value), upper: Some(1.25 * value), absence: None },
            bounds: Ends { lower: Some(0.5 * value), upper: None, absence: Some(Absence::MissingAbove) },
            ..Evidence::of_tally(window, tally)
        };
        Verdict { status, confirmed: false, evidence }
    }

    #[test]
    fn a_verdict_is_read_back_as_it_was_written() {
        let queue = objective("queue-p95", Indicator::Metric(Metric::GpuQueue), 250e6);
        let gaps = vec![Gap::TooFew { n: 400, min_n: 500 }, Gap::LowCoverage { coverage: None, min_coverage: 0.95 }];
        let answer = VerdictAnswer::of(&queue, &verdict(Status::NoVerdict(gaps), 380e6));
        let written = serde_json::to_value(&answer).expect("JSON");
        assert_eq!(written["threshold_ms"], json!(250.0));
        assert_eq!(written["ci_ms"], json!([342.0, 475.0]));
        assert_eq!(written["bounds_ms"], json!([190.0, null]));
        assert_eq!(written["reasons"][0]["detail"], "400 requests decide, and 500 are asked for");
        assert_eq!(serde_json::from_value::<VerdictAnswer>(written).expect("a verdict"), answer);
        assert_eq!(answer.coverage(), Some(400.0 / 428.0));
    }

    #[test]
    fn a_ratio_is_a_share_of_requests_within_a_limit() {
        let goal = Goal::Ratio { target: Quantile::P95 };
        let ratio = Objective { goal, ..objective("queue", Indicator::Metric(Metric::GpuQueue), 250e6) };
        let answer = VerdictAnswer::of(&ratio, &verdict(Status::Broken, 0.93));
        assert_eq!((answer.goal.as_str(), answer.limit), ("ratio", Some(250.0)));
        let written = serde_json::to_value(&answer).expect("JSON");
        assert_eq!((&written["threshold"], &written["value"]), (&json!(0.95), &json!(0.93)));
        assert_eq!(written["threshold_ms"], json!(null));
    }

    #[test]
    fn every_unit_has_names_of_its_own() {
        let at_risk = || verdict(Status::Ok { at_risk: true }, 0.5);
        let share = VerdictAnswer::of(&objective("errors", Indicator::JoinCoverage, 0.95), &at_risk());
        assert_eq!((share.goal.as_str(), share.at_risk), ("share", true));
        let speed = VerdictAnswer::of(&objective("speed", Indicator::Metric(Metric::RateStream), 30.0), &at_risk());
        for (answer, unit, field) in [(share, "", "threshold"), (speed, "tokens/s", "threshold_tps")] {
            let written = serde_json::to_value(&answer).expect("JSON");
            assert!(written[field].is_f64(), "{written}");
            assert_eq!(serde_json::from_value::<VerdictAnswer>(written).expect("a verdict"), answer);
            assert_eq!((answer.measured.numbers().unit, answer.measured.numbers().value), (unit, Some(0.5)));
        }
    }
}
