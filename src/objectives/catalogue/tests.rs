//! Which versions a change adds.

use serde_json::json;

use super::plan::{Plan, Planned};
use super::*;
use slo::document;

const NOW: UnixNanos = UnixNanos(1_767_355_200_000_000_000);

fn slo(name: &str, threshold_ms: u32) -> Vec<Objective> {
    set(&format!(
        "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: {name}}}\nspec: {{phase: gpu_queue, quantile: 0.95, \
         threshold_ms: {threshold_ms}}}"
    ))
}

fn budget(name: &str, gateway: u32, queue: u32, rest: u32) -> Vec<Objective> {
    let split = match rest {
        0 => format!("gateway: {gateway}, gpu_queue: {queue}"),
        rest => format!("gateway: {gateway}, gpu_queue: {queue}, generation: {rest}"),
    };
    let whole = gateway + queue + rest;
    set(&format!(
        "apiVersion: tracejoin/v1\nkind: Budget\nmetadata: {{name: {name}}}\nspec: {{phase: ttft, quantile: 0.95, \
         threshold_ms: {whole}, split: {{{split}}}}}"
    ))
}

fn set(text: &str) -> Vec<Objective> {
    document::read(text).expect("objectives")
}

fn id(name: &str) -> ObjectiveId {
    ObjectiveId::new(name).expect("a name")
}

/// A database in memory: the newest version of each.
#[derive(Default)]
struct Stored(Vec<StoredObjective>);

impl Stored {
    fn plan(&self, make: impl FnOnce(&Plan<'_>) -> Result<Planned, Refusal>) -> Result<Planned, Refusal> {
        make(&Plan { stored: self.0.clone(), at: NOW, changed_by: "local" })
    }

    fn change(&mut self, make: impl FnOnce(&Plan<'_>) -> Result<Planned, Refusal>) -> Vec<(String, Action, i32)> {
        let planned = self.plan(make).expect("a change");
        for version in planned.versions {
            self.0.retain(|one| one.id != version.id);
            self.0.push(version);
        }
        self.0.sort_by(|a, b| a.id.cmp(&b.id));
        planned.changes.into_iter().map(|change| (change.id.to_string(), change.action, change.version)).collect()
    }

    fn put(&mut self, name: &str, set: &[Objective]) -> Vec<(String, Action, i32)> {
        self.change(|plan| plan.replace(&id(name), set))
    }

    fn living(&self) -> Vec<&str> {
        let living = self.0.iter().filter(|stored| stored.document.is_some());
        living.map(|stored| stored.id.as_str()).collect()
    }
}

fn told(name: &str, action: Action, version: i32) -> (String, Action, i32) {
    (name.to_owned(), action, version)
}

#[test]
fn a_change_is_a_new_version_and_the_same_again_is_none() {
    let mut stored = Stored::default();
    assert_eq!(stored.put("queue", &slo("queue", 250)), [told("queue", Action::Created, 1)]);
    assert_eq!(stored.put("queue", &slo("queue", 250)), [told("queue", Action::Unchanged, 1)]);
    assert_eq!(stored.put("queue", &slo("queue", 300)), [told("queue", Action::Changed, 2)]);
    assert_eq!(stored.change(|plan| plan.delete(&id("queue"))), [told("queue", Action::Deleted, 3)]);
    assert_eq!(stored.living(), [""; 0]);
    let refused = stored.plan(|plan| plan.delete(&id("queue"))).expect_err("it is no more");
    assert_eq!(refused, Refusal::Unknown("queue".to_owned()));
    assert_eq!(stored.put("queue", &slo("queue", 300)), [told("queue", Action::Created, 4)]);
}

#[test]
fn what_differs_is_told_by_its_path() {
    let mut stored = Stored::default();
    stored.put("queue", &slo("queue", 250));
    let mut narrowed = slo("queue", 300);
    narrowed[0].owner = Some("inference".to_owned());
    let planned = stored.plan(|plan| plan.replace(&id("queue"), &narrowed)).expect("a change");
    let fields: Vec<_> = planned.changes[0].fields.iter().map(|field| (field.field.as_str(), &field.after)).collect();
    assert_eq!(
        fields,
        [("metadata.owner", &Some(json!("inference"))), ("spec.threshold_ms", &Some(json!(300)))],
        "{:?}",
        planned.changes
    );
}

#[test]
fn a_stored_number_in_another_form_is_the_same() {
    let mut stored = Stored::default();
    stored.put("queue", &slo("queue", 250));
    // What jsonb makes of a number need not look as it was written.
    let document = stored.0[0].document.as_mut().expect("a document");
    document["spec"]["threshold_ms"] = json!(250.0);
    assert_eq!(stored.put("queue", &slo("queue", 250)), [told("queue", Action::Unchanged, 1)]);
}

#[test]
fn a_budget_is_replaced_and_deleted_as_a_whole() {
    let mut stored = Stored::default();
    let created = stored.put("goal", &budget("goal", 60, 250, 770));
    assert!(created.iter().all(|(_, action, version)| (*action, *version) == (Action::Created, 1)), "{created:?}");
    assert_eq!(stored.living(), ["goal", "goal.ttft_gateway", "goal.ttft_generation", "goal.ttft_gpu_queue"]);

    let changed = stored.put("goal", &budget("goal", 60, 1020, 0));
    assert!(changed.contains(&told("goal", Action::Unchanged, 1)), "{changed:?}");
    assert!(changed.contains(&told("goal.ttft_gateway", Action::Unchanged, 1)), "{changed:?}");
    assert!(changed.contains(&told("goal.ttft_gpu_queue", Action::Changed, 2)), "{changed:?}");
    assert!(changed.contains(&told("goal.ttft_generation", Action::Deleted, 2)), "{changed:?}");
    assert_eq!(stored.living(), ["goal", "goal.ttft_gateway", "goal.ttft_gpu_queue"]);

    // A plain objective in its place takes the parts away.
    stored.put("goal", &slo("goal", 250));
    assert_eq!(stored.living(), ["goal"]);

    stored.put("goal", &budget("goal", 60, 1020, 0));
    let deleted = stored.change(|plan| plan.delete(&id("goal")));
    assert_eq!(deleted.len(), 3, "{deleted:?}");
    assert_eq!(stored.living(), [""; 0]);
}

#[test]
fn a_part_changes_with_its_whole_only() {
    let mut stored = Stored::default();
    stored.put("goal", &budget("goal", 60, 250, 770));
    let part = "goal.ttft_gateway";
    let refusal = Refusal::PartOfBudget { id: part.to_owned(), budget: "goal".to_owned() };
    let put = stored.plan(|plan| plan.replace(&id(part), &slo(part, 99))).expect_err("a part");
    let delete = stored.plan(|plan| plan.delete(&id(part))).expect_err("a part");
    assert_eq!((put, delete), (refusal.clone(), refusal));
}

#[test]
fn a_budget_takes_no_name_from_others() {
    let mut stored = Stored::default();
    stored.put("goal.ttft_gateway", &slo("goal.ttft_gateway", 60));
    let refused = stored.plan(|plan| plan.replace(&id("goal"), &budget("goal", 60, 250, 770))).expect_err("taken");
    assert_eq!(refused, Refusal::NameTaken { id: "goal.ttft_gateway".to_owned(), budget: "goal".to_owned() });
}

#[test]
fn there_are_at_most_a_thousand() {
    let mut stored = Stored::default();
    for number in 0..1000 {
        let name = format!("queue-{number}");
        stored.0.push(StoredObjective {
            id: name.clone(),
            version: 1,
            budget: None,
            document: Some(document::to_json(&slo(&name, 250)[0])),
            changed_at: NOW,
            changed_by: "local".to_owned(),
        });
    }
    let refused = stored.plan(|plan| plan.replace(&id("one-more"), &slo("one-more", 1))).expect_err("too many");
    assert_eq!(refused, Refusal::TooMany { wanted: 1001, limit: 1000 });
    assert_eq!(stored.put("queue-7", &slo("queue-7", 300)), [told("queue-7", Action::Changed, 2)]);
}

#[test]
fn what_cannot_be_read_is_named_and_leaves_the_others_in_force() {
    let mut stored = Stored::default();
    stored.put("gateway", &slo("gateway", 60));
    stored.put("queue", &slo("queue", 250));
    stored.put("gone", &slo("gone", 250));
    stored.change(|plan| plan.delete(&id("gone")));
    let gateway = stored.0.iter_mut().find(|one| one.id == "gateway").expect("it is there");
    gateway.document = Some(json!({"apiVersion": "tracejoin/v9"}));
    let (current, unreadable) = sort_out(&stored.0);
    let names: Vec<&str> = current.iter().map(|one| one.objective.id.as_str()).collect();
    assert_eq!((names, unreadable), (vec!["queue"], vec!["gateway".to_owned()]));
}
