//! Alerts: what there is to tell about an objective, under which stable labels, and when it starts and ends.
//!
//! A [`Trouble`] is one thing that can be wrong. Its [`Labels`] never hold a number that changes, so that a receiver knows
//! the alert again each time; what changes stands in its [`Annotations`].

pub mod advice;
pub mod rule;
#[cfg(test)]
mod tests;
mod text;
mod trouble;

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::objective::Objective;
use model::UnixNanos;

pub use rule::{Change, Condition, Presence, Watch};
pub use text::{Annotations, Facts, annotations, resolution, state_url, unseen};
pub use trouble::{Severity, Source, Trouble, length};

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

    /// The labels by name, as a receiver gets them.
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
