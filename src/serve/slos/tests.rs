//! The resource over objectives in memory, each answer held against the document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::objectives::catalogue::{Action, CatalogueError, Change, PastVersion, Refusal, Versioned};
use crate::objectives::status::{Burning, ObjectiveStatus};
use crate::serve::source::{ObjectiveSource, SourceError, StatusSource};
use crate::serve::tests::{Answer, ask, conforms_to, parts, send};
use crate::serve::verdict::tests::verdict;
use crate::store::{StoreError, StoredAlert};
use model::{Interval, Nanos, UnixNanos};
use slo::burn::NoMinutes;
use slo::{BudgetState, BurnState, Objective, ObjectiveId, Part, Status, Tally, document};

const QUEUE: &str = "
apiVersion: tracejoin/v1
kind: SLO
metadata: {name: queue, owner: inference}
spec: {phase: gpu_queue, quantile: 0.95, threshold_ms: 250}
";

const GOAL: &str = "
apiVersion: tracejoin/v1
kind: Budget
metadata: {name: goal}
spec: {phase: ttft, quantile: 0.95, threshold_ms: 310, split: {gateway: 60, gpu_queue: 250}}
";

/// Objectives in memory; the database is unavailable for the one that is called so, and `part` is a part of another.
#[derive(Default)]
pub struct Shelf(Mutex<Vec<Versioned>>);

impl Shelf {
    /// With one objective, `queue`.
    pub fn with_one() -> Self {
        let shelf = Self::default();
        shelf.replace("queue", &document::read(QUEUE).expect("an objective"));
        shelf
    }

    fn replace(&self, whole: &str, set: &[Objective]) -> Vec<Change> {
        let mut shelf = self.0.lock().expect("no panic while held");
        let before: Vec<Versioned> = shelf.extract_if(.., |one| is_of(one, whole)).collect();
        let mut changes = Vec::new();
        for objective in set {
            let known = before.iter().find(|one| one.objective.id == objective.id);
            let (action, version) = match known {
                None => (Action::Created, 1),
                Some(known) if *known.objective == *objective => (Action::Unchanged, known.version),
                Some(known) => (Action::Changed, known.version + 1),
            };
            changes.push(change(&objective.id, action, version));
            let objective = Arc::new(objective.clone());
            shelf.push(Versioned { objective, version, since: UnixNanos(0), changed_by: "local".to_owned() });
        }
        for gone in before.iter().filter(|one| set.iter().all(|objective| objective.id != one.objective.id)) {
            changes.push(change(&gone.objective.id, Action::Deleted, gone.version + 1));
        }
        changes
    }
}

fn is_of(one: &Versioned, whole: &str) -> bool {
    one.objective.id.as_str() == whole || one.objective.budget.as_ref().is_some_and(|budget| budget.as_str() == whole)
}

fn change(id: &ObjectiveId, action: Action, version: i32) -> Change {
    Change { id: id.clone(), action, version, since: UnixNanos(0), changed_by: "local".to_owned(), fields: Vec::new() }
}

fn refused(id: &ObjectiveId) -> Result<(), CatalogueError> {
    match id.as_str() {
        "away" => Err(StoreError::Database(sqlx::Error::PoolTimedOut).into()),
        "part" => Err(Refusal::PartOfBudget { id: id.to_string(), budget: "goal".to_owned() }.into()),
        _ => Ok(()),
    }
}

impl ObjectiveSource for Shelf {
    fn current(&self) -> BoxFuture<'_, Result<Arc<[Versioned]>, SourceError>> {
        let all: Arc<[Versioned]> = self.0.lock().expect("no panic while held").iter().cloned().collect();
        async { Ok(all) }.boxed()
    }

    fn put<'a>(
        &'a self,
        whole: &'a ObjectiveId,
        set: &'a [Objective],
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>> {
        async move { refused(whole).map(|()| self.replace(whole.as_str(), set)) }.boxed()
    }

    fn delete<'a>(&'a self, id: &'a ObjectiveId, _: &'a str) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>> {
        async move {
            refused(id)?;
            let changes = self.replace(id.as_str(), &[]);
            if changes.is_empty() { Err(Refusal::Unknown(id.to_string()).into()) } else { Ok(changes) }
        }
        .boxed()
    }

    fn versions<'a>(&'a self, id: &'a ObjectiveId) -> BoxFuture<'a, Result<Vec<PastVersion>, CatalogueError>> {
        async move {
            refused(id)?;
            let shelf = self.0.lock().expect("no panic while held");
            let Some(known) = shelf.iter().find(|one| one.objective.id == *id) else {
                return Err(Refusal::Unknown(id.to_string()).into());
            };
            let past = |version, document| PastVersion {
                version,
                document,
                changed_at: UnixNanos(0),
                changed_by: "local".to_owned(),
            };
            Ok(vec![past(2, None), past(1, Some(document::to_json(&known.objective)))])
        }
        .boxed()
    }
}

/// One that fires.
fn alert(slo: &str) -> StoredAlert {
    StoredAlert {
        fingerprint: Uuid::from_u128(7),
        slo: slo.to_owned(),
        labels: BTreeMap::from([("alertname".to_owned(), "TracejoinObjectiveBroken".to_owned())]),
        annotations: BTreeMap::new(),
        generator_url: None,
        firing: true,
        transitions: 1,
        starts_at: UnixNanos(0),
        ends_at: None,
    }
}

/// Everything is broken, and a pooled goal has no budget.
impl StatusSource for Shelf {
    fn status<'a>(
        &'a self,
        versioned: &'a Versioned,
        _: UnixNanos,
    ) -> BoxFuture<'a, Result<ObjectiveStatus, SourceError>> {
        let burning = match (versioned.objective.burn.windows.first(), versioned.objective.goal.target()) {
            (Some(pair), Some(target)) => {
                let window = Interval { start: UnixNanos(0), end: UnixNanos(0) + pair.long };
                let there = Interval { start: UnixNanos(0) + Nanos(pair.long.0 / 2), ..window };
                let part = Part { window, there, tally: Tally { good: 80, bad: 20, ..Tally::default() } };
                let windows = vec![BurnState::of(pair, &versioned.objective.burn, target, &part, &part)];
                Ok(Burning { windows, budget: BudgetState::of(target, part) })
            }
            _ => Err(NoMinutes::Pooled),
        };
        let name = versioned.objective.id.as_str();
        let away = (name == "away-now").then(|| SourceError::Unavailable("the database is unavailable".into()));
        let status = ObjectiveStatus { verdict: verdict(Status::Broken, 380e6), burning, alerts: vec![alert(name)] };
        async move { away.map_or(Ok(status), Err) }.boxed()
    }
}

/// Sends, and holds the answer against the document.
async fn sent(server: &(Router, Value), method: Method, path: &str, form: &str, body: &str) -> Answer {
    let below = ["/versions", "/status"].into_iter().find(|below| path.ends_with(below)).unwrap_or_default();
    let template = format!("/api/v1/slos/{{id}}{below}");
    let request = Request::builder().method(method.clone()).uri(path).header(CONTENT_TYPE, form);
    let answer = send(&server.0, request.body(Body::from(body.to_owned())).expect("a request")).await;
    conforms_to(&server.1, &template, &method.as_str().to_ascii_lowercase(), &answer);
    answer
}

async fn put(server: &(Router, Value), name: &str, body: &str) -> Answer {
    sent(server, Method::PUT, &format!("/api/v1/slos/{name}"), "application/yaml", body).await
}

#[tokio::test]
async fn an_objective_is_put_read_and_deleted() {
    let server = parts(&[]);
    let again = put(&server, "queue", QUEUE).await;
    assert_eq!((again.status.as_u16(), &again.json()["action"]), (200, &json!("unchanged")));
    let changed = put(&server, "queue", &QUEUE.replace("250", "300")).await.json();
    assert_eq!((&changed["action"], &changed["version"]), (&json!("changed"), &json!(2)));

    let read = ask(&server.0, Method::GET, "/api/v1/slos/queue", "*/*").await.json();
    assert_eq!(read["document"]["spec"]["threshold_ms"], json!(300));
    assert_eq!(read["changed_by"], json!("local"));

    // What is read can be put again, as JSON.
    let document = read["document"].to_string();
    let back = sent(&server, Method::PUT, "/api/v1/slos/queue", "application/json", &document).await;
    assert_eq!(back.json()["action"], json!("unchanged"));

    let deleted = sent(&server, Method::DELETE, "/api/v1/slos/queue", "", "").await;
    assert_eq!(deleted.json()["action"], json!("deleted"));
    let gone = ask(&server.0, Method::GET, "/api/v1/slos/queue", "*/*").await;
    assert_eq!(gone.status.as_u16(), 404, "{}", gone.body);
    assert_eq!(sent(&server, Method::DELETE, "/api/v1/slos/queue", "", "").await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_budget_is_put_with_its_parts_and_says_what_its_split_is() {
    let server = parts(&[]);
    let created = put(&server, "goal", GOAL).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.body);
    let created = created.json();
    assert_eq!(created["parts"].as_array().map(Vec::len), Some(2), "{created}");
    assert!(created["notes"].to_string().contains("arithmetic"), "{created}");

    let whole = ask(&server.0, Method::GET, "/api/v1/slos/goal", "*/*").await.json();
    let parts: Vec<&Value> = whole["parts"].as_array().into_iter().flatten().map(|part| &part["id"]).collect();
    assert_eq!(parts, ["goal.ttft_gateway", "goal.ttft_gpu_queue"]);
    assert_eq!(whole["parts"][0]["budget"], json!("goal"));
    let all = ask(&server.0, Method::GET, "/api/v1/slos", "*/*").await.json();
    assert_eq!(all["slos"].as_array().map(Vec::len), Some(4), "{all}");
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_with_its_line_and_field() {
    let server = parts(&[]);
    let answer = put(&server, "queue", &QUEUE.replace("threshold_ms: 250", "threshold_ms: soon")).await;
    assert_eq!(answer.status.as_u16(), 400, "{}", answer.body);
    let error = &answer.json()["errors"][0];
    assert_eq!((&error["line"], &error["field"]), (&json!(5), &json!("spec.threshold_ms")), "{error}");

    for (name, form, body, status) in [
        ("other", "application/yaml", QUEUE, 400),
        ("queue", "application/yaml", GOAL, 400),
        ("queue", "application/yaml", "", 400),
        ("Queue", "application/yaml", QUEUE, 400),
        ("queue", "text/csv", QUEUE, 415),
        ("queue?x=1", "application/yaml", QUEUE, 400),
    ] {
        let answer = sent(&server, Method::PUT, &format!("/api/v1/slos/{name}"), form, body).await;
        assert_eq!(answer.status.as_u16(), status, "{name} {form}: {}", answer.body);
    }
    let long = format!("{QUEUE}# {}", "x".repeat(1 << 20));
    let answer = put(&server, "queue", &long).await;
    assert_eq!(answer.status.as_u16(), 413, "{}", answer.body);
    let unchanged = ask(&server.0, Method::GET, "/api/v1/slos/queue", "*/*").await.json();
    assert_eq!(unchanged["version"], json!(1));
}

#[tokio::test]
async fn a_part_and_an_absent_database_are_told_apart() {
    let server = parts(&[]);
    for (name, status) in [("part", 409), ("away", 503)] {
        let answer = put(&server, name, &QUEUE.replace("name: queue", &format!("name: {name}"))).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
        let answer = sent(&server, Method::DELETE, &format!("/api/v1/slos/{name}"), "", "").await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
    }
}

#[tokio::test]
async fn a_deletion_is_a_version() {
    let server = parts(&[]);
    let versions = sent(&server, Method::GET, "/api/v1/slos/queue/versions", "", "").await.json();
    assert_eq!(versions["versions"][0]["deleted"], json!(true));
    assert_eq!(versions["versions"][0]["document"], Value::Null);
    assert_eq!(versions["versions"][1]["document"]["kind"], json!("SLO"));
    for (name, status) in [("nobody", 404), ("away", 503), ("7", 400)] {
        let answer = sent(&server, Method::GET, &format!("/api/v1/slos/{name}/versions"), "", "").await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
    }
}

#[tokio::test]
async fn a_status_tells_the_verdict_its_numbers_and_how_the_budget_burns() {
    let server = parts(&[]);
    let status = sent(&server, Method::GET, "/api/v1/slos/queue/status", "", "").await.json();
    assert_eq!((&status["version"], &status["verdict"]["verdict"]), (&json!(1), &json!("broken")), "{status}");
    assert_eq!((&status["verdict"]["value_ms"], &status["verdict"]["threshold_ms"]), (&json!(380.0), &json!(250.0)));
    let burn = &status["burn"][0];
    assert_eq!((&burn["long"], &burn["bad"], &burn["filled_long"]), (&json!("1h"), &json!(20), &json!(0.5)), "{burn}");
    assert_eq!(status["error_budget"]["spent"], json!(4.0), "{status}");
    assert_eq!(status["no_budget"], Value::Null);
    assert_eq!((&status["alerts"][0]["slo"], &status["alerts"][0]["state"]), (&json!("queue"), &json!("firing")));

    let pooled = QUEUE.replace("gpu_queue, quantile: 0.95, threshold_ms: 250", "unattributed_share, threshold: 0.05");
    put(&server, "lost", &pooled.replace("queue", "lost")).await;
    let status = sent(&server, Method::GET, "/api/v1/slos/lost/status", "", "").await.json();
    assert_eq!((&status["burn"], &status["error_budget"]), (&json!([]), &Value::Null));
    assert!(status["no_budget"].is_string(), "{status}");

    put(&server, "away-now", &QUEUE.replace("queue, owner", "away-now, owner")).await;
    for (name, status) in [("nobody", 404), ("7", 400), ("away-now", 503)] {
        let answer = sent(&server, Method::GET, &format!("/api/v1/slos/{name}/status"), "", "").await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
    }
}
