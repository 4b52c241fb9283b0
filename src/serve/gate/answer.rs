//! From what a gate found to what it says.

use super::said::said;
use super::view::{
    BaselineAnswer, ExplanationAnswer, GateAnswer, MeansAnswer, MovedAnswer, PartAnswer, PastAnswer, SlowAnswer,
    UnsettledAnswer,
};
use crate::objectives::gates::{GateQuestion, Judged};
use crate::serve::verdict::VerdictAnswer;
use api::rfc3339;
use slo::Status;
use slo::explain::{Baseline, Explanation, Means, Moved, Past, Slow, Splits, moved};
use slo::gate::GateOutcome;

/// What verdicts that were not to be given yet are called.
pub const UNSETTLED: &str = "unsettled";

impl GateAnswer {
    pub fn of(asked: &GateQuestion, found: &Judged) -> Self {
        let settled = found.unsettled.is_settled();
        let verdicts = found.verdicts.as_deref().unwrap_or_default();
        let outcome = match found.verdicts {
            None => UNSETTLED,
            Some(_) => GateOutcome::of(verdicts.iter().map(|(_, verdict)| verdict), settled).name(),
        };
        let mut broken_phases: Vec<String> = Vec::new();
        for (objective, verdict) in verdicts {
            let phase = objective.indicator.name();
            if verdict.status == Status::Broken && !broken_phases.iter().any(|known| known == phase) {
                broken_phases.push(phase.to_owned());
            }
        }
        let unsettled = UnsettledAnswer { traces: found.unsettled.traces, pending: found.unsettled.pending };
        let of_run = asked.run.is_some();
        Self {
            outcome: outcome.to_owned(),
            reasons: reasons(
                verdicts.iter().map(|(objective, verdict)| (objective.id.as_str(), &verdict.status)),
                unsettled,
            ),
            run: asked.run.clone(),
            from: found.window.map(|window| rfc3339(window.start)),
            to: found.window.map(|window| rfc3339(window.end)),
            received_before: rfc3339(asked.received_before),
            unsettled,
            broken_phases,
            verdicts: verdicts.iter().map(|(objective, verdict)| VerdictAnswer::of(objective, verdict)).collect(),
            explanations: found.explanations.iter().map(|one| ExplanationAnswer::of(one, of_run)).collect(),
        }
    }
}

fn reasons<'a>(verdicts: impl Iterator<Item = (&'a str, &'a Status)>, unsettled: UnsettledAnswer) -> Vec<String> {
    let undecided: Vec<&str> =
        verdicts.filter(|(_, status)| matches!(status, Status::NoVerdict(_))).map(|(name, _)| name).collect();
    let mut reasons = Vec::new();
    if unsettled.traces > 0 {
        reasons.push(format!("{} traces that came in time are not joined yet", unsettled.traces));
    }
    if unsettled.pending > 0 {
        reasons.push(format!("{} requests wait for their other side", unsettled.pending));
    }
    if !undecided.is_empty() {
        reasons.push(format!("no verdict on {}", undecided.join(", ")));
    }
    reasons
}

impl ExplanationAnswer {
    fn of(explanation: &Explanation, of_run: bool) -> Self {
        let means = |splits: &Splits| Means::of(explanation.pair, &splits.splits).filter(|_| splits.unread.is_none());
        let now = means(&explanation.now);
        let slow = Slow::of(explanation.pair, &explanation.now.splits).filter(|_| now.is_some());
        let before = explanation.baseline.as_ref().and_then(|baseline| means(&baseline.splits));
        let moved = before.as_ref().zip(now.as_ref()).map(|(before, now)| moved(before, now)).unwrap_or_default();
        Self {
            slos: explanation.objectives.iter().map(ToString::to_string).collect(),
            whole: explanation.pair.whole().column().to_owned(),
            said: said(explanation, now.as_ref(), slow.as_ref(), of_run),
            now: now.map(|means| MeansAnswer::of(&means, explanation.now.coverage())),
            baseline: explanation.baseline.as_ref().map(|baseline| BaselineAnswer::of(baseline, before.as_ref())),
            moved: moved.iter().map(MovedAnswer::of).collect(),
            slow: slow.as_ref().map(SlowAnswer::of),
            broken: explanation.broken.iter().map(PastAnswer::of).collect(),
        }
    }
}

fn millis(nanos: f64) -> f64 {
    nanos / 1e6
}

impl MeansAnswer {
    fn of(means: &Means, coverage: Option<f64>) -> Self {
        let part = |part: &slo::explain::PartMean| PartAnswer {
            phase: part.metric.column().to_owned(),
            mean_ms: millis(part.mean),
            known: part.known,
        };
        Self { n: means.n, coverage, whole_ms: millis(means.whole), phases: means.parts.iter().map(part).collect() }
    }
}

impl BaselineAnswer {
    fn of(baseline: &Baseline, means: Option<&Means>) -> Self {
        let Splits { window, .. } = baseline.splits;
        Self {
            run: baseline.run.clone(),
            from: rfc3339(window.start),
            to: rfc3339(window.end),
            means: means.map(|means| MeansAnswer::of(means, baseline.splits.coverage())),
        }
    }
}

impl MovedAnswer {
    fn of(moved: &Moved) -> Self {
        Self {
            phase: moved.metric.column().to_owned(),
            before_ms: millis(moved.before),
            now_ms: millis(moved.now),
            by_ms: millis(moved.by()),
            by_ci_ms: [moved.by() - moved.give_or_take, moved.by() + moved.give_or_take].map(millis),
        }
    }
}

impl SlowAnswer {
    fn of(slow: &Slow) -> Self {
        Self {
            past_ms: millis(slow.past),
            slow: MeansAnswer::of(&slow.slow, None),
            rest: MeansAnswer::of(&slow.rest, None),
        }
    }
}

impl PastAnswer {
    fn of(past: &Past) -> Self {
        Self {
            slo: past.objective.to_string(),
            phase: past.indicator.name().to_owned(),
            past: past.means.as_ref().map(|means| MeansAnswer::of(means, None)),
        }
    }
}
