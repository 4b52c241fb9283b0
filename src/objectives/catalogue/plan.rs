//! Which versions a change of objectives adds. Pure: what is stored and the time of day are given.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Action, Change, FieldChange, Refusal, read_document};
use crate::store::StoredObjective;
use model::UnixNanos;
use slo::document;
use slo::objective::{Objective, ObjectiveId};

/// How many objectives there may be: each is judged every few seconds.
const MAX_OBJECTIVES: usize = 1000;

/// What is there, and who changes it when.
pub(super) struct Plan<'a> {
    /// The newest version of each, the deleted ones too.
    pub(super) stored: Vec<StoredObjective>,
    /// The time of the change.
    pub(super) at: UnixNanos,
    pub(super) changed_by: &'a str,
}

/// What is to be written, and what is to be told.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) versions: Vec<StoredObjective>,
    /// What became of each objective that the change is about.
    pub(super) changes: Vec<Change>,
}

impl Plan<'_> {
    /// Puts a set in the place of `whole` and its parts.
    pub(super) fn replace(&self, whole: &ObjectiveId, set: &[Objective]) -> Result<Planned, Refusal> {
        for objective in set {
            self.check_name(whole, objective)?;
        }
        let mut planned = Planned::default();
        for objective in set {
            self.put(objective, &mut planned);
        }
        let stays = |stored: &StoredObjective| set.iter().any(|objective| objective.id.as_str() == stored.id);
        for stored in self.members(whole).filter(|stored| !stays(stored)) {
            self.remove(stored, &mut planned);
        }
        self.check_number(&planned)?;
        Ok(planned)
    }

    /// Deletes `id`, and its parts where it is a whole.
    pub(super) fn delete(&self, id: &ObjectiveId) -> Result<Planned, Refusal> {
        let Some(stored) = self.living().find(|stored| stored.id == id.as_str()) else {
            return Err(Refusal::Unknown(id.to_string()));
        };
        check_whole(id, stored)?;
        let mut planned = Planned::default();
        for member in self.members(id) {
            self.remove(member, &mut planned);
        }
        Ok(planned)
    }

    fn living(&self) -> impl Iterator<Item = &StoredObjective> {
        self.stored.iter().filter(|stored| stored.document.is_some())
    }

    /// The objective `whole` and all that are parts of it.
    fn members(&self, whole: &ObjectiveId) -> impl Iterator<Item = &StoredObjective> {
        let whole = whole.as_str();
        self.living().filter(move |stored| stored.id == whole || stored.budget.as_deref() == Some(whole))
    }

    /// Whether `objective` may be written with the set of `whole`.
    fn check_name(&self, whole: &ObjectiveId, objective: &Objective) -> Result<(), Refusal> {
        let id = objective.id.to_string();
        if let Some(budget) = objective.budget.as_ref().filter(|budget| *budget != whole) {
            return Err(Refusal::PartOfBudget { id, budget: budget.to_string() });
        }
        let Some(stored) = self.living().find(|stored| stored.id == id) else { return Ok(()) };
        if objective.id == *whole {
            return check_whole(whole, stored);
        }
        match &stored.budget {
            Some(budget) if budget == whole.as_str() => Ok(()),
            _ => Err(Refusal::NameTaken { id, budget: whole.to_string() }),
        }
    }

    fn check_number(&self, planned: &Planned) -> Result<(), Refusal> {
        let count = |action| planned.changes.iter().filter(|change| change.action == action).count();
        let wanted = self.living().count() + count(Action::Created) - count(Action::Deleted);
        if count(Action::Created) > 0 && wanted > MAX_OBJECTIVES {
            return Err(Refusal::TooMany { wanted, limit: MAX_OBJECTIVES });
        }
        Ok(())
    }

    fn put(&self, objective: &Objective, planned: &mut Planned) {
        let stored = self.stored.iter().find(|stored| stored.id == objective.id.as_str());
        let before = stored.and_then(|stored| Some((stored, stored.document.as_ref()?)));
        let known = before.and_then(|(_, document)| read_document(document));
        if let (Some((stored, _)), Some(known)) = (before, &known)
            && known == objective
        {
            planned.changes.push(told(&objective.id, Action::Unchanged, stored));
            return;
        }
        let document = document::to_json(objective);
        let version = self.next(objective.id.as_str(), stored, objective.budget.as_ref(), Some(document));
        let action = if before.is_some() { Action::Changed } else { Action::Created };
        let mut change = told(&objective.id, action, &version);
        if let (Some(known), Some(document)) = (&known, &version.document) {
            change.fields = differences(&document::to_json(known), document);
        }
        planned.changes.push(change);
        planned.versions.push(version);
    }

    fn remove(&self, stored: &StoredObjective, planned: &mut Planned) {
        let Ok(id) = ObjectiveId::new(&stored.id) else { return };
        let budget = stored.budget.as_deref().and_then(|budget| ObjectiveId::new(budget).ok());
        let version = self.next(&stored.id, Some(stored), budget.as_ref(), None);
        planned.changes.push(told(&id, Action::Deleted, &version));
        planned.versions.push(version);
    }

    fn next(
        &self,
        id: &str,
        stored: Option<&StoredObjective>,
        budget: Option<&ObjectiveId>,
        document: Option<Value>,
    ) -> StoredObjective {
        StoredObjective {
            id: id.to_owned(),
            version: stored.map_or(0, |stored| stored.version) + 1,
            budget: budget.map(ToString::to_string),
            document,
            changed_at: self.at,
            changed_by: self.changed_by.to_owned(),
        }
    }
}

/// A part changes with its whole only.
fn check_whole(id: &ObjectiveId, stored: &StoredObjective) -> Result<(), Refusal> {
    match &stored.budget {
        Some(budget) if budget != id.as_str() => {
            Err(Refusal::PartOfBudget { id: id.to_string(), budget: budget.clone() })
        }
        _ => Ok(()),
    }
}

fn told(id: &ObjectiveId, action: Action, version: &StoredObjective) -> Change {
    Change {
        id: id.clone(),
        action,
        version: version.version,
        since: version.changed_at,
        changed_by: version.changed_by.clone(),
        fields: Vec::new(),
    }
}

/// The fields in which two documents differ, by their paths.
fn differences(before: &Value, after: &Value) -> Vec<FieldChange> {
    let [before, after] = [before, after].map(|document| {
        let mut leaves = BTreeMap::new();
        collect_leaves(String::new(), document, &mut leaves);
        leaves
    });
    let mut fields: Vec<&String> = before.keys().chain(after.keys()).collect();
    fields.sort();
    fields.dedup();
    let change = |field: &String| FieldChange {
        field: field.clone(),
        before: before.get(field).map(|value| (*value).clone()),
        after: after.get(field).map(|value| (*value).clone()),
    };
    fields.into_iter().filter(|field| before.get(*field) != after.get(*field)).map(change).collect()
}

/// Every value that is no object, by its path. A list counts as one value.
fn collect_leaves<'a>(path: String, value: &'a Value, leaves: &mut BTreeMap<String, &'a Value>) {
    let Value::Object(fields) = value else {
        leaves.insert(path, value);
        return;
    };
    for (name, value) in fields {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect_leaves(inner, value, leaves);
    }
}
