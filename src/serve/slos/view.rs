//! Objectives as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::objectives::catalogue::{Change, FieldChange, PastVersion, Versioned};
use crate::serve::error::ApiError;
use api::rfc3339;
use slo::{Objective, ObjectiveId, document};

/// All objectives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Slos)]
pub struct SlosAnswer {
    /// In the order of their names.
    pub slos: Vec<ObjectiveAnswer>,
}

/// An objective as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Slo)]
pub struct ObjectiveAnswer {
    /// Its name.
    #[schema(example = "queue-p95")]
    pub id: String,
    /// Counted from 1.
    #[schema(example = 1)]
    pub version: i32,
    /// When it became so.
    #[schema(format = DateTime)]
    pub since: String,
    /// Who made it so: the name of a token, or `local`.
    #[schema(example = "local")]
    pub changed_by: String,
    /// The budget of which it is the whole or a part.
    pub budget: Option<String>,
    /// What it says, with all defaults written out. What is put in its place has this form, or leaves defaults out.
    pub document: Value,
}

impl ObjectiveAnswer {
    /// Of an objective.
    pub fn of(versioned: &Versioned) -> Self {
        Self {
            id: versioned.objective.id.to_string(),
            version: versioned.version,
            since: rfc3339(versioned.since),
            changed_by: versioned.changed_by.clone(),
            budget: versioned.objective.budget.as_ref().map(ToString::to_string),
            document: document::to_json(&versioned.objective),
        }
    }
}

/// An objective with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloWithParts)]
pub struct WholeAnswer {
    /// Itself.
    #[serde(flatten)]
    pub slo: ObjectiveAnswer,
    /// Its parts, where it is the whole of a budget.
    pub parts: Vec<ObjectiveAnswer>,
    /// What its author should know, such as burn windows that can never fire.
    pub notes: Vec<String>,
}

impl WholeAnswer {
    /// The objective of a name among all; `None` where there is none.
    pub fn of(current: &[Versioned], id: &ObjectiveId) -> Option<Self> {
        let whole = current.iter().find(|versioned| versioned.objective.id == *id)?;
        let is_part = |one: &&Versioned| one.objective.id != *id && one.objective.budget.as_ref() == Some(id);
        let parts: Vec<&Versioned> = current.iter().filter(is_part).collect();
        let set = [whole].into_iter().chain(parts.iter().copied());
        let set: Vec<Objective> = set.map(|versioned| versioned.objective.as_ref().clone()).collect();
        Some(Self {
            slo: ObjectiveAnswer::of(whole),
            parts: parts.into_iter().map(ObjectiveAnswer::of).collect(),
            notes: document::notes(&set),
        })
    }
}

/// What became of an objective, and of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloChanged)]
pub struct ChangedAnswer {
    /// What became of it.
    #[serde(flatten)]
    pub whole: ChangeAnswer,
    /// What became of its parts, where it is or was the whole of a budget.
    pub parts: Vec<ChangeAnswer>,
    /// What its author should know, such as burn windows that can never fire.
    pub notes: Vec<String>,
}

impl ChangedAnswer {
    /// Of the changes that were made to the set of `id`.
    pub(super) fn of(id: &ObjectiveId, changes: &[Change], set: &[Objective]) -> Result<Self, ApiError> {
        let whole = changes.iter().find(|change| change.id == *id);
        let whole = whole.ok_or_else(|| ApiError::internal("a change says nothing of what was to be changed"))?;
        Ok(Self {
            whole: ChangeAnswer::of(whole),
            parts: changes.iter().filter(|change| change.id != *id).map(ChangeAnswer::of).collect(),
            notes: document::notes(set),
        })
    }
}

/// What became of one objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloChange)]
pub struct ChangeAnswer {
    /// Its name.
    #[schema(example = "queue-p95")]
    pub id: String,
    /// `created`, `changed`, `unchanged` or `deleted`.
    #[schema(example = "changed")]
    pub action: String,
    /// The version that it has now; a deletion is one too.
    #[schema(example = 2)]
    pub version: i32,
    /// When it got this version.
    #[schema(format = DateTime)]
    pub since: String,
    /// Who gave it this version.
    #[schema(example = "local")]
    pub changed_by: String,
    /// The fields that say something else than before.
    pub changed: Vec<FieldChangeAnswer>,
}

impl ChangeAnswer {
    fn of(change: &Change) -> Self {
        Self {
            id: change.id.to_string(),
            action: change.action.name().to_owned(),
            version: change.version,
            since: rfc3339(change.since),
            changed_by: change.changed_by.clone(),
            changed: change.fields.iter().map(FieldChangeAnswer::of).collect(),
        }
    }
}

/// A field that says something else than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloFieldChange)]
pub struct FieldChangeAnswer {
    /// Its path in the document.
    #[schema(example = "spec.threshold_ms")]
    pub field: String,
    /// What it said; null where it was not there.
    #[schema(example = 250.0)]
    pub before: Value,
    /// What it says; null where it is no longer there.
    #[schema(example = 300.0)]
    pub after: Value,
}

impl FieldChangeAnswer {
    fn of(change: &FieldChange) -> Self {
        let told = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
        Self { field: change.field.clone(), before: told(&change.before), after: told(&change.after) }
    }
}

/// What an objective was over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloVersions)]
pub struct VersionsAnswer {
    /// Its name.
    #[schema(example = "queue-p95")]
    pub id: String,
    /// Newest first.
    pub versions: Vec<PastVersionAnswer>,
}

impl VersionsAnswer {
    pub(super) fn of(id: &ObjectiveId, versions: Vec<PastVersion>) -> Self {
        let answer = |past: PastVersion| PastVersionAnswer {
            version: past.version,
            deleted: past.document.is_none(),
            document: past.document.unwrap_or(Value::Null),
            changed_at: rfc3339(past.changed_at),
            changed_by: past.changed_by,
        };
        Self { id: id.to_string(), versions: versions.into_iter().map(answer).collect() }
    }
}

/// One version of an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SloVersion)]
pub struct PastVersionAnswer {
    /// Counted from 1.
    #[schema(example = 1)]
    pub version: i32,
    /// Whether this version is its deletion.
    pub deleted: bool,
    /// What it said; null where this version is its deletion.
    pub document: Value,
    /// When it became so.
    #[schema(format = DateTime)]
    pub changed_at: String,
    /// Who made it so.
    #[schema(example = "local")]
    pub changed_by: String,
}
