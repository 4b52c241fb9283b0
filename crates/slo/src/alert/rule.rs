//! When an alert fires, holds and resolves.
//!
//! Only evidence that all is well resolves an alert. Where the evidence decides neither way, it stays as it is: neither a storm of errors
//! nor missing spans make a firing alert go away.

use super::trouble::{Source, Trouble};
use crate::burn::BurnState;
use crate::objective::{Alerting, Confirm, Objective};
use crate::verdict::{Gap, Status, Verdict};
use model::{Nanos, UnixNanos};

/// A source that has been silent for longer than this is not expected to speak.
const SPOKE_WITHIN: Nanos = Nanos(86_400_000_000_000);

/// The least number of client records that must lack their server side before that side counts as silent.
const LEAST_RECORDS: u64 = 10;

/// What the evidence says of one trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The evidence shows the trouble.
    Present,
    /// The evidence decides neither way.
    Unknown,
    /// The evidence shows that the trouble is over.
    Absent,
}

/// What becomes of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// The alert starts.
    Fired,
    /// The alert ends.
    Resolved,
}

impl Change {
    /// The name of the state that follows, in the API and in notifications.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Fired => "firing",
            Self::Resolved => "resolved",
        }
    }
}

impl Condition {
    /// What becomes of an alert that is `firing` or not; `None` where it stays as it is.
    pub const fn change(self, firing: bool) -> Option<Change> {
        match (self, firing) {
            (Self::Present, false) => Some(Change::Fired),
            (Self::Absent, true) => Some(Change::Resolved),
            _ => None,
        }
    }

    /// Whether a trouble of an objective is there. `burn` is what the windows of a burn say, where they could be read; the
    /// presence that of the last `silent_after`.
    pub fn of(
        trouble: &Trouble,
        objective: &Objective,
        verdict: &Verdict,
        burn: Option<&BurnState>,
        (watch, presence): (&Watch, &Presence),
        now: UnixNanos,
    ) -> Self {
        let (status, alerting) = (&verdict.status, &objective.alerting);
        match trouble {
            Trouble::Broken => Self::of_verdict(alerting.confirm, status, verdict.confirmed),
            Trouble::Burn(_) => burn.map_or(Self::Unknown, Self::of_burn),
            Trouble::NoVerdict => watch.lacks_verdict(alerting, objective.window, status, now),
            Trouble::Silent(source) => {
                let is_silent = |after| watch.is_silent(*source, presence, after, now);
                alerting.silent_after.map_or(Self::Unknown, is_silent)
            }
        }
    }

    /// Whether a verdict tells that the objective is broken. `confirmed` says whether its whole interval is past the
    /// threshold.
    pub const fn of_verdict(confirm: Confirm, status: &Status, confirmed: bool) -> Self {
        match status {
            Status::Ok { .. } => Self::Absent,
            Status::Broken if confirmed || matches!(confirm, Confirm::Verdict) => Self::Present,
            Status::Broken | Status::NoVerdict(_) => Self::Unknown,
        }
    }

    /// Whether a budget burns too fast. One window below the factor is enough to resolve.
    pub fn of_burn(state: &BurnState) -> Self {
        if state.fires {
            return Self::Present;
        }
        let slow = |rate: Option<f64>| rate.is_some_and(|rate| rate < state.factor);
        if slow(state.long_rate) || slow(state.short_rate) { Self::Absent } else { Self::Unknown }
    }
}

/// Which sides reported requests of the last `silent_after`, whatever became of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Presence {
    /// Client records, those that are not settled included.
    pub client_records: u64,
    /// Client records that are settled.
    pub settled: u64,
    /// How many of these have a server side.
    pub with_server: u64,
}

impl Presence {
    /// Whether a side was heard; `None` where that cannot be known.
    fn heard(&self, source: Source) -> Option<bool> {
        match source {
            Source::Client => Some(self.client_records > 0),
            Source::Server if self.with_server > 0 => Some(true),
            Source::Server => (self.settled >= LEAST_RECORDS).then_some(false),
        }
    }
}

/// What is remembered of an objective between two evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    /// Since when there has been traffic and no verdict.
    pub no_verdict_since: Option<UnixNanos>,
    /// When a client was last heard.
    pub client_heard_at: Option<UnixNanos>,
    /// When a server was last heard.
    pub server_heard_at: Option<UnixNanos>,
}

impl Watch {
    /// What is remembered after an evaluation.
    #[must_use]
    pub fn after(self, verdict: &Verdict, presence: &Presence, now: UnixNanos) -> Self {
        let heard = |source, before| if presence.heard(source) == Some(true) { Some(now) } else { before };
        let traffic = presence.settled > 0 || verdict.evidence.client_records > 0;
        let undecided = traffic && matches!(verdict.status, Status::NoVerdict(_));
        Self {
            no_verdict_since: if undecided { self.no_verdict_since.or(Some(now)) } else { None },
            client_heard_at: heard(Source::Client, self.client_heard_at),
            server_heard_at: heard(Source::Server, self.server_heard_at),
        }
    }

    /// Whether there has been no verdict for too long.
    pub fn lacks_verdict(&self, alerting: &Alerting, window: Nanos, status: &Status, now: UnixNanos) -> Condition {
        let Status::NoVerdict(gaps) = status else { return Condition::Absent };
        let (Some(since), Some(after)) = (self.no_verdict_since, alerting.no_verdict_after) else {
            return Condition::Unknown;
        };
        // A burst is seen in part of a window until the window has passed it: that long it lacks no verdict.
        let partly = gaps.iter().any(|gap| matches!(gap, Gap::WindowNotFull { .. }));
        let patience = if partly { after + window } else { after };
        if now - since >= patience { Condition::Present } else { Condition::Unknown }
    }

    /// Whether a source that spoke is silent. `presence` is that of the last `silent_after`.
    pub fn is_silent(&self, source: Source, presence: &Presence, silent_after: Nanos, now: UnixNanos) -> Condition {
        let heard_at = match source {
            Source::Client => self.client_heard_at,
            Source::Server => self.server_heard_at,
        };
        let expected = heard_at.is_some_and(|at| now - at <= SPOKE_WITHIN + silent_after);
        match presence.heard(source) {
            Some(true) => Condition::Absent,
            Some(false) if expected => Condition::Present,
            Some(false) | None => Condition::Unknown,
        }
    }
}
