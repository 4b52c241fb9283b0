//! The objectives of a database, with their versions.

mod plan;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use self::plan::{Plan, Planned};
use crate::store::{Store, StoreError, StoredObjective};
use model::UnixNanos;
use slo::document;
use slo::objective::{Objective, ObjectiveId};

#[cfg(test)]
mod tests;

/// How often objectives are read again, so that what another instance changed is soon known here.
const REFRESH: Duration = Duration::from_secs(3);

/// How many versions of an objective are shown.
const VERSIONS_SHOWN: u32 = 1000;

/// An objective as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned {
    /// What it says.
    pub objective: Arc<Objective>,
    /// Counted from 1.
    pub version: i32,
    /// When it became so.
    pub since: UnixNanos,
    /// Who made it so: a token's name, or `local`.
    pub changed_by: String,
}

/// One version of an objective, perhaps not the newest.
#[derive(Debug, Clone, PartialEq)]
pub struct PastVersion {
    /// Counted from 1.
    pub version: i32,
    /// What it said, as stored; `None` where this version is its deletion.
    pub document: Option<Value>,
    /// When it became so.
    pub changed_at: UnixNanos,
    /// Who made it so.
    pub changed_by: String,
}

/// What became of one objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It was not there.
    Created,
    /// It has a new version.
    Changed,
    /// It says the same as before, so its version stays.
    Unchanged,
    /// It is no more.
    Deleted,
}

impl Action {
    /// The name in the API and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
        }
    }
}

/// A field that says something else than before.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// Its path, such as `spec.threshold_ms`.
    pub field: String,
    /// What it said; `None` where it was not there.
    pub before: Option<Value>,
    /// What it says; `None` where it is no longer there.
    pub after: Option<Value>,
}

/// What a change did to one objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub id: ObjectiveId,
    /// In a word.
    pub action: Action,
    /// The version that it has now.
    pub version: i32,
    /// When it got this version.
    pub since: UnixNanos,
    /// Who gave it this version.
    pub changed_by: String,
    /// What differs, where it was changed.
    pub fields: Vec<FieldChange>,
}

/// Why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is none of this name.
    #[error("there is no objective `{0}`; `tracejoin slo list` and GET /api/v1/slos name those that there are")]
    Unknown(String),
    /// It belongs to a budget, which is changed as a whole.
    #[error("`{id}` is a part of the budget `{budget}`; change or delete `{budget}`, which takes its parts along")]
    PartOfBudget {
        /// The part.
        id: String,
        budget: String,
    },
    /// The name that a budget's part would have is taken.
    #[error(
        "the budget `{budget}` would have a part `{id}`, and there is an objective of that name; delete it, or name the budget otherwise"
    )]
    NameTaken {
        /// The part.
        id: String,
        budget: String,
    },
    /// There would be too many.
    #[error("there would be {wanted} objectives, and {limit} is the limit; delete those that nobody needs")]
    TooMany {
        /// How many there would be.
        wanted: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// Why objectives could not be read or changed.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The change is refused; nothing has happened.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The objectives of a database. What is current is kept in memory; any instance may change it.
pub struct Catalogue {
    store: Store,
    current: watch::Sender<Arc<[Versioned]>>,
    /// The names of those that are stored and cannot be read.
    unreadable: watch::Sender<Vec<String>>,
    /// The versions that `current` was made from. Held while they are read, so that an older reading never comes last.
    seen: Mutex<Vec<(String, i32)>>,
}

impl Catalogue {
    /// Of a store. Empty until [`Catalogue::refresh`] or [`Catalogue::run`].
    pub fn new(store: Store) -> Self {
        let (current, unreadable) = (watch::Sender::new(Arc::default()), watch::Sender::default());
        Self { store, current, unreadable, seen: Mutex::default() }
    }

    /// The objectives as they were when last read, in the order of their names.
    pub fn current(&self) -> Arc<[Versioned]> {
        Arc::clone(&self.current.borrow())
    }

    /// The names of all objectives when last read, of those too that cannot be read.
    pub async fn names(&self) -> HashSet<String> {
        // Keeps both lists as one reading left them.
        let _reading = self.seen.lock().await;
        let readable = self.current().iter().map(|versioned| versioned.objective.id.to_string()).collect::<Vec<_>>();
        self.unreadable.borrow().iter().cloned().chain(readable).collect()
    }

    /// What keeps some of the objectives from being judged, with what to do about it.
    pub fn trouble(&self) -> Option<String> {
        let unreadable = self.unreadable.borrow();
        let names = (!unreadable.is_empty()).then(|| unreadable.join(", "))?;
        Some(format!(
            "these objectives cannot be read and are not judged: {names}; apply them again, or use the version that wrote them"
        ))
    }

    /// Reads what is current. What cannot be read is left out and logged: a newer version of this program may have
    /// written it.
    ///
    /// # Errors
    /// [`StoreError::Database`]; what was current stays.
    pub async fn refresh(&self) -> Result<Arc<[Versioned]>, StoreError> {
        let mut seen = self.seen.lock().await;
        let stored = self.store.objectives().await?;
        let versions: Vec<_> = stored.iter().map(|one| (one.id.clone(), one.version)).collect();
        if *seen != versions {
            let (current, unreadable) = sort_out(&stored);
            self.current.send_replace(current.into());
            self.unreadable.send_replace(unreadable);
            *seen = versions;
        }
        Ok(self.current())
    }

    /// Reads what is current every few seconds, until it is told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.refresh().await {
                warn!(%error, "objectives cannot be read; those known before stay in force");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REFRESH) => {}
            }
        }
    }

    /// Puts a set in the place of the objective `whole` and, where that is a budget's whole, its parts: all at once or
    /// not at all. Says what became of each, the parts that are no more included.
    ///
    /// # Errors
    /// [`Refusal::PartOfBudget`], [`Refusal::NameTaken`], [`Refusal::TooMany`], or the database's.
    pub async fn put(
        &self,
        whole: &ObjectiveId,
        set: &[Objective],
        changed_by: &str,
    ) -> Result<Vec<Change>, CatalogueError> {
        self.change(changed_by, |plan| plan.replace(whole, set)).await
    }

    /// Deletes an objective, and its parts where it is a budget's whole.
    ///
    /// # Errors
    /// [`Refusal::Unknown`], [`Refusal::PartOfBudget`], or the database's.
    pub async fn delete(&self, id: &ObjectiveId, changed_by: &str) -> Result<Vec<Change>, CatalogueError> {
        self.change(changed_by, |plan| plan.delete(id)).await
    }

    async fn change(
        &self,
        changed_by: &str,
        make: impl FnOnce(&Plan<'_>) -> Result<Planned, Refusal>,
    ) -> Result<Vec<Change>, CatalogueError> {
        let mut change = self.store.change_objectives().await?;
        let planned = make(&Plan { stored: change.objectives().await?, at: now(), changed_by })?;
        for version in &planned.versions {
            change.add(version).await?;
        }
        change.commit().await?;
        // The change is made: that it cannot be read yet is no failure of it.
        if let Err(error) = self.refresh().await {
            warn!(%error, "objectives were changed and cannot be read again yet");
        }
        Ok(planned.changes)
    }

    /// All that an objective ever was, newest first, at most the newest thousand; also of one that is deleted.
    ///
    /// # Errors
    /// [`Refusal::Unknown`], or the database's.
    pub async fn versions(&self, id: &ObjectiveId) -> Result<Vec<PastVersion>, CatalogueError> {
        let stored = self.store.objective_versions(id.as_str(), VERSIONS_SHOWN).await?;
        if stored.is_empty() {
            return Err(Refusal::Unknown(id.to_string()).into());
        }
        let past = |one: StoredObjective| PastVersion {
            version: one.version,
            document: one.document,
            changed_at: one.changed_at,
            changed_by: one.changed_by,
        };
        Ok(stored.into_iter().map(past).collect())
    }
}

/// The time of day as the database keeps it, to the microsecond, so that an answer tells what is stored.
fn now() -> UnixNanos {
    UnixNanos(UnixNanos::now().0.div_euclid(1000) * 1000)
}

/// What is stored and not deleted: what can be read, and the names of what cannot.
fn sort_out(stored: &[StoredObjective]) -> (Vec<Versioned>, Vec<String>) {
    let (mut current, mut unreadable) = (Vec::new(), Vec::new());
    for one in stored {
        let Some(document) = &one.document else { continue };
        let Some(objective) = read_document(document) else {
            error!(id = one.id, version = one.version, "a stored objective cannot be read and is not judged");
            unreadable.push(one.id.clone());
            continue;
        };
        current.push(Versioned {
            objective: Arc::new(objective),
            version: one.version,
            since: one.changed_at,
            changed_by: one.changed_by.clone(),
        });
    }
    (current, unreadable)
}

/// The one objective that a stored document tells.
fn read_document(document: &Value) -> Option<Objective> {
    let mut set = document::read(&document.to_string()).ok()?;
    if set.len() == 1 { set.pop() } else { None }
}
