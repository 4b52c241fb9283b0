//! Alerts: what there is to tell about an objective, under which stable labels, and when it starts and ends.
//!
//! A [`Trouble`] is one thing that can be wrong. Its [`Labels`] never hold a number that changes, so that a receiver knows
//! the alert again each time; what changes stands in its [`Annotations`].

pub mod advice;
pub mod rule;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::indicator::Indicator;
use super::objective::{BurnWindow, Objective};
use model::{Nanos, UnixNanos};

pub use rule::{Change, Condition, Presence, Watch};
pub use text::{Annotations, Facts, annotations, resolution, state_url, unseen};

/// From this factor on a burning budget wakes somebody up.
const PAGE_FACTOR: f64 = 6.0;

/// One of the two sides that tell of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Whoever sends client records.
    Client,
    /// Whoever sends spans.
    Server,
}

impl Source {
    /// The label's value.
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
    /// Somebody should look now.
    Page,
    /// Somebody should look in working hours.
    Ticket,
}

impl Severity {
    /// The label's value.
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
    /// All that an objective asks to be told of. What finished runs tell of is judged once, by a gate.
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

/// What tells an alert from every other, whatever its numbers are at the moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Of a trouble of an objective. Conditions with one value are labels too; names of these never meet ours.
    pub fn of(objective: &Objective, trouble: &Trouble) -> Self {
        let mut labels = BTreeMap::new();
        let mut set = |name: &str, value: &str| {
            // Alertmanager takes an empty label for one that is not there.
            if !value.is_empty() {
                labels.insert(name.to_owned(), text::safe(value));
            }
        };
        for (dimension, values) in &objective.conditions.labels {
            if let (Some(value), 1) = (values.first(), values.len()) {
                set(dimension.name(), value);
            }
        }
        set("alertname", trouble.name());
        set("slo", objective.id.as_str());
        set("phase", objective.indicator.name());
        set("severity", trouble.severity().name());
        set("owner", objective.owner.as_deref().unwrap_or_default());
        set("budget", objective.budget.as_ref().map_or("", |budget| budget.as_str()));
        match trouble {
            Trouble::Burn(window) => {
                set("long_window", &length(window.long));
                set("short_window", &length(window.short));
            }
            Trouble::Silent(source) => set("source", source.name()),
            Trouble::Broken | Trouble::NoVerdict => {}
        }
        Self(labels)
    }

    /// The same, read back from where it was stored.
    pub const fn stored(labels: BTreeMap<String, String>) -> Self {
        Self(labels)
    }

    /// By name.
    pub const fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// A digest of all labels, the same in every process and every version.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut digest = Sha256::new();
        for part in self.0.iter().flat_map(|(name, value)| [name, value]) {
            // Lengths in front keep `ab`, `c` apart from `a`, `bc`.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Fingerprint(first_16(&digest.finalize()))
    }
}

/// The name under which an alert is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub Uuid);

impl Fingerprint {
    /// The key of an alert's transition, the `number`-th since it was first known: the same whoever computes it.
    pub fn transition(self, number: i64, at: UnixNanos) -> Uuid {
        let mut digest = Sha256::new();
        digest.update(self.0.as_bytes());
        digest.update(number.to_be_bytes());
        digest.update(at.0.to_be_bytes());
        first_16(&digest.finalize())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

fn first_16(digest: &[u8]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // Marked as made by a rule of our own (RFC 9562, section 5.8).
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
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
