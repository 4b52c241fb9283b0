//! What can be wrong with an objective.

use crate::indicator::Indicator;
use crate::objective::{BurnWindow, Objective};
use model::Nanos;

/// From this factor on a burning budget wakes somebody up.
const PAGE_FACTOR: f64 = 6.0;

/// One of the two sides that tell of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The senders of client records.
    Client,
    /// The senders of spans.
    Server,
}

impl Source {
    /// As a label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// How much of a hurry there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Wakes the person on call.
    Page,
    /// Somebody should look in working hours.
    Ticket,
}

impl Severity {
    /// As a label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Ticket => "ticket",
        }
    }
}

/// One thing that can be wrong with an objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trouble {
    /// Its verdict is `broken`.
    Broken,
    /// Its budget burns too fast.
    Burn(BurnWindow),
    /// There is traffic, and no verdict for long.
    NoVerdict,
    /// A side that spoke says nothing any more.
    Silent(Source),
}

impl Trouble {
    /// All that an objective alerts about. What finished runs report is judged once, by a gate.
    pub fn of(objective: &Objective) -> Vec<Self> {
        if objective.indicator == Indicator::DroppedIterations {
            return Vec::new();
        }
        let mut all = vec![Self::Broken];
        if objective.goal.target().is_some() {
            all.extend(objective.burn.windows.iter().copied().map(Self::Burn));
        }
        if objective.alerting.no_verdict_after.is_some() {
            all.push(Self::NoVerdict);
        }
        if objective.alerting.silent_after.is_some() {
            all.extend(sources(objective).into_iter().map(Self::Silent));
        }
        all
    }

    /// The name of the alert.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Broken => "TracejoinObjectiveBroken",
            Self::Burn(_) => "TracejoinBudgetBurn",
            Self::NoVerdict => "TracejoinNoVerdict",
            Self::Silent(_) => "TracejoinSourceSilent",
        }
    }

    /// How much of a hurry there is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Broken => Severity::Page,
            Self::Burn(window) if window.factor >= PAGE_FACTOR => Severity::Page,
            Self::Burn(_) | Self::NoVerdict | Self::Silent(_) => Severity::Ticket,
        }
    }
}

/// The sides without which an objective says nothing. The whole of a budget speaks for its parts where clients are silent.
fn sources(objective: &Objective) -> Vec<Source> {
    let mut sources = Vec::new();
    let is_part = objective.budget.as_ref().is_some_and(|budget| *budget != objective.id);
    if !is_part {
        sources.push(Source::Client);
    }
    if objective.indicator.needs_server() || objective.indicator == Indicator::JoinCoverage {
        sources.push(Source::Server);
    }
    sources
}

/// A window's length as people and Prometheus write it: `30s`, `5m`, `6h`, `3d`.
pub fn length(length: Nanos) -> String {
    const SECOND: i64 = 1_000_000_000;
    let seconds = length.0 / SECOND;
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m")] {
        if seconds > 0 && seconds % unit == 0 {
            return format!("{}{name}", seconds / unit);
        }
    }
    if length.0 % SECOND == 0 { format!("{seconds}s") } else { format!("{}ms", length.0 / 1_000_000) }
}
