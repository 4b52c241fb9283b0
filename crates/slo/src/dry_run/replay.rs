//! One evaluation after the other, by the evaluator's rules.

use super::history::{History, Moving};
use super::question::DryRunQuestion;
use super::replayed::{Firing, Replayed};
use crate::alert::{Change, Condition, Presence, Trouble, Watch};
use crate::burn::{BurnState, Part, counted_target};
use crate::evidence::Evidence;
use crate::live::live_end;
use crate::objective::{BurnWindow, Objective};
use crate::verdict::Verdict;
use model::{Interval, Nanos, Slice, UnixNanos};

/// Replays an objective over requests that are in order; `settle` is how long one takes to settle.
pub fn replay(asked: &DryRunQuestion, history: &History, settle: Nanos) -> Replayed {
    let objective = &asked.objective;
    let mut moving = history.window();
    let (mut watch, unheard) = (Watch::default(), Presence::default());
    let mut alerts: Vec<Alert> = Trouble::of(objective).into_iter().filter(is_replayed).map(Alert::new).collect();
    let mut replayed = Replayed::default();
    let mut now = asked.window.start;
    while now <= asked.window.end {
        let end = live_end(settle, now);
        let evidence = moving.evidence(Interval { start: end - objective.window, end });
        let verdict = Verdict::of(objective, evidence);
        watch = watch.after(&verdict, &unheard, now);
        replayed.verdicts.add(&verdict.status);
        for alert in &mut alerts {
            let burn = alert.burn(objective, history, end);
            let condition = Condition::of(&alert.trouble, objective, &verdict, burn.as_ref(), (&watch, &unheard), now);
            match condition.change(alert.firing.is_some()) {
                Some(Change::Fired) => {
                    alert.firing = Some(replayed.firings.len());
                    let verdict = with_value(&verdict, &moving);
                    replayed.firings.push(Firing { trouble: alert.trouble, start: now, end: None, verdict, burn });
                }
                Some(Change::Resolved) => {
                    let firing = alert.firing.take().and_then(|at| replayed.firings.get_mut(at));
                    if let Some(firing) = firing {
                        firing.end = Some(now);
                    }
                }
                None => {}
            }
        }
        now = now + asked.every;
    }
    replayed
}

/// Who is silent now says nothing of who was: uploads of the past are not known by the time at which they came.
fn is_replayed(trouble: &Trouble) -> bool {
    !matches!(trouble, Trouble::Silent(_))
}

fn with_value(verdict: &Verdict, moving: &Moving<'_>) -> Verdict {
    let value = moving.value(&verdict.evidence);
    Verdict { evidence: Evidence { value, ..verdict.evidence.clone() }, ..verdict.clone() }
}

struct Alert {
    trouble: Trouble,
    /// Where its firing stands among all.
    firing: Option<usize>,
}

impl Alert {
    const fn new(trouble: Trouble) -> Self {
        Self { trouble, firing: None }
    }

    /// How fast the budget burned up to the last whole minute before `end`.
    fn burn(&self, objective: &Objective, history: &History, end: UnixNanos) -> Option<BurnState> {
        let Trouble::Burn(pair) = &self.trouble else { return None };
        let target = counted_target(objective).ok()?;
        let end = Slice::minute_of(end);
        let BurnWindow { long, short, .. } = *pair;
        let [long, short] = [long, short].map(|length| part(history, Interval { start: end - length, end }));
        Some(BurnState::of(pair, &objective.burn, target, &long, &short))
    }
}

fn part(history: &History, window: Interval) -> Part {
    let first = history.first_minute().unwrap_or(window.end);
    let there = Interval { start: first.max(window.start).min(window.end), end: window.end };
    Part { window, there, tally: history.tally_of_minutes(there) }
}
