//! Objectives over one window that is over: whether a test run may pass.

use std::collections::BTreeSet;

use super::objective::Objective;
use super::verdict::{Status, Verdict};
use model::Dimension;

/// The answer of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateOutcome {
    /// Every objective held.
    Pass,
    /// At least one did not.
    Broken,
    /// None was broken, but at least one has no verdict, or not everything has settled.
    Inconclusive,
}

impl GateOutcome {
    pub const ALL: [Self; 3] = [Self::Pass, Self::Broken, Self::Inconclusive];

    /// Of verdicts. `settled` says whether they were read from everything that came: what is missing may hide that a
    /// budget is broken, but what is there has broken it already.
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>, settled: bool) -> Self {
        let mut outcome = if settled { Self::Pass } else { Self::Inconclusive };
        for verdict in verdicts {
            match verdict.status {
                Status::Broken => return Self::Broken,
                Status::NoVerdict(_) => outcome = Self::Inconclusive,
                Status::Ok { .. } => {}
            }
        }
        outcome
    }

    /// The name in the API and in summaries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Broken => "broken",
            Self::Inconclusive => "inconclusive",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// The objective as it is asked of one run alone, whatever run its conditions name.
#[must_use]
pub fn of_run(objective: &Objective, run: &str) -> Objective {
    let mut narrowed = objective.clone();
    narrowed.conditions.labels.insert(Dimension::Run, BTreeSet::from([run.to_owned()]));
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, Gap, Tally};
    use model::{Interval, UnixNanos};

    fn verdict(status: Status) -> Verdict {
        let window = Interval { start: UnixNanos(0), end: UnixNanos(1) };
        let evidence = Evidence::of_tally(window, Tally::default());
        Verdict { status, confirmed: false, evidence }
    }

    #[test]
    fn a_broken_budget_outweighs_what_nobody_can_tell() {
        let [ok, broken, unknown] =
            [Status::Ok { at_risk: true }, Status::Broken, Status::NoVerdict(vec![Gap::BoundsStraddle])].map(verdict);
        assert_eq!(GateOutcome::of([&ok, &ok], true), GateOutcome::Pass);
        assert_eq!(GateOutcome::of([&ok, &unknown], true), GateOutcome::Inconclusive);
        assert_eq!(GateOutcome::of([&unknown, &broken, &ok], true), GateOutcome::Broken);
    }

    #[test]
    fn what_has_not_settled_may_hide_a_broken_budget_but_not_mend_one() {
        let [ok, broken] = [Status::Ok { at_risk: false }, Status::Broken].map(verdict);
        assert_eq!(GateOutcome::of([&ok], false), GateOutcome::Inconclusive);
        assert_eq!(GateOutcome::of([&ok, &broken], false), GateOutcome::Broken);
    }
}
