//! Alerts over a real database, told to a real receiver; the time of day is given.

mod receiver;

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use model::{Nanos, Request, ResultClass, UnixNanos};
use serde_json::Value;
use slo::{ObjectiveId, document};
use tracejoin::objectives::catalogue::Catalogue;
use tracejoin::objectives::evaluator::{self, Evaluated, Evaluator};
use tracejoin::objectives::notify::{self, Notifier, Receivers};
use tracejoin::store::{AlertTransition, Store};

use self::receiver::{Receiver, SECRET};
use crate::common::{Server, TestDatabase, test_database};
use crate::window_support::{NOON, WEEK, at, lone, matched, open, write};

/// A window and what requests need to settle, in ms.
const WINDOW: i64 = 600_000;
const RESEND: Duration = Duration::from_secs(30);

/// Objectives of a database of its own, and who is told.
struct Scene {
    database: TestDatabase,
    store: Store,
    evaluator: Evaluator,
    notifier: Notifier,
    catalogue: Arc<Catalogue>,
}

impl Scene {
    async fn new(alertmanagers: Vec<String>, webhooks: Vec<String>) -> Self {
        let database = test_database().await;
        let store = open(&database.url, WEEK).await;
        Self::over(database, store, alertmanagers, webhooks)
    }

    /// What a process makes of a database.
    fn over(database: TestDatabase, store: Store, alertmanagers: Vec<String>, webhooks: Vec<String>) -> Self {
        let catalogue = Arc::new(Catalogue::new(store.clone()));
        let webhook_secret = Some(SECRET.to_owned());
        let options = notify::Options { alertmanagers, webhooks, webhook_secret, resend: RESEND };
        let notifier = Notifier::new(store.clone(), Receivers::read(&options).expect("receivers"));
        let public_url = Some("https://tracejoin.example".parse().expect("a URL"));
        let told = evaluator::EvaluatorOptions { receivers: notifier.receivers(), public_url, ..Default::default() };
        let evaluator = Evaluator::new(store.clone(), catalogue.clone(), told);
        Self { database, store, evaluator, notifier, catalogue }
    }

    /// The objective that 95 % of the requests of model m wait for 250 ms at most.
    async fn promise(&self, more: &str) {
        let text = format!(
            "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: queue-p95{more}}}\nspec:\n  phase: gpu_queue\n  \
             quantile: 0.95\n  threshold_ms: 250\n  where: {{model: m}}\n  burn: false\n"
        );
        let set = document::read(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
        self.catalogue.put(&id(), &set, "local").await.expect("a version");
    }

    async fn evaluate(&self, now: UnixNanos) -> Evaluated {
        self.evaluator.evaluate(now).await.expect("the database").expect("nobody else is at it")
    }

    async fn history(&self) -> Vec<AlertTransition> {
        let mut history = self.store.alert_history(UnixNanos(0), UnixNanos(i64::MAX), 100).await.expect("history");
        history.reverse();
        history
    }

    /// Names of the alerts that fire.
    async fn firing(&self) -> Vec<String> {
        let alerts = self.store.alerts(Some(true)).await.expect("alerts");
        let mut names: Vec<String> = alerts.iter().map(|alert| alert.labels["alertname"].clone()).collect();
        names.sort();
        names
    }
}

fn id() -> ObjectiveId {
    ObjectiveId::new("queue-p95").expect("a name")
}

/// When the `number`-th window has settled.
fn after(number: i64) -> UnixNanos {
    at(number * WINDOW + 2_000)
}

/// Requests all over the `number`-th window, made by `make` from a number and a time.
fn window(number: i64, make: impl Fn(u32, UnixNanos) -> Request) -> Vec<Request> {
    let first = u32::try_from(number * 1_000).expect("few windows");
    (0..200).map(|place| make(first + place, at((number - 1) * WINDOW + i64::from(place) * 3_000))).collect()
}

fn slow(number: u32, at: UnixNanos) -> Request {
    matched(number, at, 900)
}

fn quick(number: u32, at: UnixNanos) -> Request {
    matched(number, at, 20)
}

fn failed(number: u32, at: UnixNanos) -> Request {
    Request { result: Some(ResultClass::Error), ..quick(number, at) }
}

fn seconds(seconds: i64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

#[tokio::test]
async fn a_broken_phase_is_told_again_and_again_and_its_end_for_five_minutes() {
    let receiver = Receiver::start().await;
    let scene = Scene::new(vec![receiver.url("http://me:hunter2@", "/am/")], Vec::new()).await;
    scene.promise(", owner: inference").await;
    write(&scene.store, window(1, slow)).await;
    let fired_at = after(1);
    let done = scene.evaluate(fired_at).await;
    assert_eq!((done.judged, done.failed, done.changes, done.firing), (1, 0, 1, 1));
    scene.notifier.deliver(fired_at).await;

    let [call] = receiver.take().try_into().expect("one call");
    assert_eq!((call.path.as_str(), call.header("authorization")), ("/am/api/v2/alerts", "Basic bWU6aHVudGVyMg=="));
    let [alert] = call.json().as_array().expect("alerts").clone().try_into().expect("one alert");
    let labels = serde_json::json!({
        "alertname": "TracejoinObjectiveBroken", "slo": "queue-p95", "phase": "gpu_queue", "severity": "page",
        "owner": "inference", "model": "m",
    });
    assert_eq!(alert["labels"], labels);
    assert_eq!(alert["generatorURL"], "https://tracejoin.example/api/v1/slos/queue-p95/status");
    let text = |name: &str| alert["annotations"][name].as_str().expect(name).to_owned();
    assert!(text("summary").contains("p95 is 900 ms, over the threshold of 250 ms"), "{}", text("summary"));
    assert!(text("description").contains("n 200, 200 past the threshold"), "{}", text("description"));
    assert!(text("traffic").contains("it is about 100 % of all client records"), "{}", text("traffic"));
    assert_eq!(text("exemplars").lines().count(), 3);
    assert!(text("exemplars").contains(" https://tracejoin.example/api/v1/traces/0000"), "{}", text("exemplars"));
    assert!(text("first_check").contains("batch policy"));

    scene.notifier.deliver(fired_at + seconds(29)).await;
    assert!(receiver.take().is_empty(), "it is not time yet");
    scene.notifier.deliver(fired_at + seconds(30)).await;
    let again = receiver.take().remove(0).json();
    assert_eq!((&again[0]["labels"], &again[0]["startsAt"]), (&labels, &alert["startsAt"]));
    assert!(again[0]["endsAt"].as_str() > alert["endsAt"].as_str(), "it is kept alive");

    write(&scene.store, window(2, quick)).await;
    let resolved_at = after(2);
    assert_eq!(scene.evaluate(resolved_at).await.firing, 0);
    for wait in [0, 30, 60, 270] {
        scene.notifier.deliver(resolved_at + seconds(wait)).await;
        let told = receiver.take().remove(0).json();
        assert_eq!(told[0]["endsAt"], resolved_at.to_datetime().to_rfc3339(), "after {wait} s");
    }
    scene.notifier.deliver(resolved_at + seconds(300)).await;
    assert!(receiver.take().is_empty(), "five minutes are over");
    let history = scene.history().await;
    assert_eq!(history.iter().map(|change| change.firing).collect::<Vec<_>>(), [true, false]);
    assert!(history[1].annotations["resolved"].contains("p95 20 ms"), "{:?}", history[1].annotations);
}

#[tokio::test]
async fn a_webhook_is_told_of_each_change_once_signed_and_in_order_even_after_it_was_dead() {
    let (dead, alive) = (Receiver::start().await, Receiver::start().await);
    let webhooks = vec![dead.url("http://", "/hook?token=S3CRET"), alive.url("http://", "/hook")];
    let scene = Scene::new(Vec::new(), webhooks).await;
    scene.promise("").await;
    dead.answer_with(503, Some("120"));
    write(&scene.store, window(1, slow)).await;
    scene.evaluate(after(1)).await;
    scene.notifier.deliver(after(1)).await;
    assert_eq!((dead.take().len(), alive.take().len()), (1, 1), "the dead one delays nobody");
    scene.notifier.deliver(after(1) + seconds(119)).await;
    assert_eq!((dead.take().len(), alive.take().len()), (0, 0), "it asked for two minutes");
    let [fired] = scene.history().await.try_into().expect("one change");
    let states = scene.store.deliveries(&[fired.key]).await.expect("deliveries");
    let owed = states[&fired.key].iter().find(|state| state.delivered_at.is_none()).expect("the dead one");
    assert_eq!((owed.attempts, owed.last_error.as_deref()), (1, Some("it answered 503 Service Unavailable")));
    assert!(!owed.receiver.contains("S3CRET"), "{}", owed.receiver);

    write(&scene.store, window(2, quick)).await;
    scene.evaluate(after(2)).await;
    dead.answer_with(204, None);
    scene.notifier.deliver(after(2)).await;
    let told = dead.take();
    let kinds: Vec<Value> = told.iter().map(|call| call.json()["type"].clone()).collect();
    assert_eq!(kinds, ["alert.firing", "alert.resolved"]);
    assert_eq!(told[0].header("webhook-id"), fired.key.to_string());
    for call in &told {
        call.check_signature();
    }
    assert_eq!(alive.take().len(), 1);
    scene.notifier.deliver(after(3)).await;
    assert_eq!((dead.take().len(), alive.take().len()), (0, 0), "once each");
}

#[tokio::test]
async fn what_is_committed_is_told_after_a_restart() {
    let receiver = Receiver::start().await;
    let (am, hook) = (vec![receiver.url("http://", "")], vec![receiver.url("http://", "/hook")]);
    let scene = Scene::new(am.clone(), hook.clone()).await;
    scene.promise("").await;
    write(&scene.store, window(1, slow)).await;
    scene.evaluate(after(1)).await;
    // One that dies while it sends has claimed it.
    let name = scene.notifier.receivers().into_iter().find(|name| name.starts_with("webhook")).expect("a webhook");
    let claim = scene.store.claim_delivery(&name, after(1), after(1) + seconds(60)).await.expect("the database");
    assert_eq!(claim.map(|claim| claim.attempts), Some(1));
    let Scene { database, store, .. } = scene;
    store.close().await;
    assert!(receiver.take().is_empty(), "nobody was told before the crash");

    let store = open(&database.url, WEEK).await;
    let scene = Scene::over(database, store, am, hook);
    scene.notifier.deliver(after(1) + seconds(59)).await;
    let paths = |calls: Vec<receiver::Call>| calls.into_iter().map(|call| call.path).collect::<Vec<_>>();
    assert_eq!(paths(receiver.take()), ["/api/v2/alerts"], "the claim of the dead one still holds");
    scene.notifier.deliver(after(1) + seconds(60)).await;
    assert_eq!(paths(receiver.take()), ["/hook"]);
    assert_eq!(scene.evaluate(after(1) + seconds(60)).await.changes, 0, "it still fires, and is no news");
}

#[tokio::test]
async fn instances_share_the_work() {
    let receiver = Receiver::start().await;
    let (am, hook) = (vec![receiver.url("http://", "")], vec![receiver.url("http://", "/hook")]);
    let one = Scene::new(am.clone(), hook.clone()).await;
    one.promise("").await;
    write(&one.store, window(1, slow)).await;
    let store = open(&one.database.url, WEEK).await;
    let two = Scene::over(test_database().await, store, am, hook);
    let mut changes = 0;
    for _ in 0..5 {
        let (first, second) = tokio::join!(one.evaluator.evaluate(after(1)), two.evaluator.evaluate(after(1)));
        changes += [first, second]
            .into_iter()
            .filter_map(|done| done.expect("the database"))
            .map(|done| done.changes)
            .sum::<usize>();
        tokio::join!(one.notifier.deliver(after(1)), two.notifier.deliver(after(1)));
    }
    assert_eq!((changes, one.history().await.len()), (1, 1));
    let calls = receiver.take();
    let count = |path: &str| calls.iter().filter(|call| call.path == path).count();
    assert_eq!((count("/api/v2/alerts"), count("/hook")), (1, 1));
}

#[tokio::test]
async fn neither_errors_nor_silence_resolve_and_silence_is_told() {
    let scene = Scene::new(Vec::new(), Vec::new()).await;
    scene.promise("").await;
    write(&scene.store, window(1, slow)).await;
    scene.evaluate(after(1)).await;
    assert_eq!(scene.firing().await, ["TracejoinObjectiveBroken"]);
    write(&scene.store, window(2, failed)).await;
    scene.evaluate(after(2)).await;
    assert_eq!(scene.firing().await, ["TracejoinObjectiveBroken"], "errors are no good latencies");
    write(&scene.store, window(3, lone)).await;
    scene.evaluate(after(3)).await;
    let broken_unjudged_silent = ["TracejoinNoVerdict", "TracejoinObjectiveBroken", "TracejoinSourceSilent"];
    assert_eq!(scene.firing().await, broken_unjudged_silent, "no spans came for a window");
    scene.evaluate(after(4)).await;
    let silent: Vec<String> = scene
        .store
        .alerts(Some(true))
        .await
        .expect("alerts")
        .iter()
        .filter_map(|alert| alert.labels.get("source").cloned())
        .collect();
    assert_eq!(silent.len(), 2, "neither side is heard: {silent:?}");
    assert!(scene.firing().await.contains(&"TracejoinObjectiveBroken".to_owned()));
    write(&scene.store, window(5, quick)).await;
    scene.evaluate(after(5)).await;
    assert!(scene.firing().await.is_empty(), "{:?}", scene.firing().await);
}

#[tokio::test]
async fn an_objective_that_is_deleted_or_is_another_ends_its_alerts() {
    let scene = Scene::new(Vec::new(), Vec::new()).await;
    scene.promise("").await;
    write(&scene.store, window(1, slow)).await;
    scene.evaluate(after(1)).await;
    scene.promise(", owner: platform").await;
    let done = scene.evaluate(after(1) + seconds(30)).await;
    assert_eq!((done.changes, done.firing), (2, 1), "the alert of the new owner in place of the old one");
    scene.catalogue.delete(&id(), "local").await.expect("deleted");
    let done = scene.evaluate(after(1) + seconds(60)).await;
    assert_eq!((done.judged, done.changes, done.firing), (0, 1, 0));
    let last = scene.history().await.pop().expect("a change");
    assert_eq!((last.firing, last.annotations["resolved"].as_str()), (false, "its objective was deleted"));

    scene.store.forget_alerts(NOON + Nanos(i64::from(u32::MAX) * 1_000_000)).await.expect("forgotten");
    assert!(scene.history().await.is_empty() && scene.store.alerts(None).await.expect("alerts").is_empty());
}

/// Records of the last five minutes, each of which took half a second.
fn slow_records() -> Value {
    let now = UnixNanos::now();
    let record = |number: i64| {
        let started_at = (now - seconds(2 * number)).to_datetime().to_rfc3339();
        serde_json::json!({
            "trace_id": format!("{:032x}", 0xa1e7_0000 + number), "started_at": started_at, "duration_ms": 500, "status": 200,
        })
    };
    (0..150).map(record).collect()
}

#[tokio::test]
async fn a_killed_server_has_told_or_will_tell_and_its_successor_knows() {
    let receiver = Receiver::start().await;
    let database = Arc::new(test_database().await);
    let hook = receiver.url("http://", "/hook");
    let arguments = ["--slo-evaluation", "1s", "--webhook", &hook, "--webhook-secret", SECRET];
    let server = Server::on(database.clone(), &arguments).await;
    let document = "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {name: duration-p95}\nspec:\n  phase: duration\n  \
                    quantile: 0.95\n  threshold_ms: 100\n  window: 5m\n  burn: false\n";
    assert_eq!(server.put("/api/v1/slos/duration-p95", "application/yaml", document).await.0, 201);
    receiver.answer_with(503, None);
    server.upload(&slow_records()).await;
    server.wait_for("/api/v1/alerts?state=firing", fires).await;
    drop(server);

    receiver.answer_with(200, None);
    let before = receiver.take();
    let server = Server::on(database, &arguments).await;
    // Killed while it told, it holds its claim for half a minute.
    server.wait_for("/api/v1/alerts/history", delivered).await;
    let ids: BTreeSet<String> =
        before.iter().chain(&receiver.take()).map(|call| call.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 1, "one change, however often it was told: {ids:?}");
    let (_, history) = server.get("/api/v1/alerts/history").await;
    assert_eq!(history["transitions"].as_array().map(Vec::len), Some(1), "{history}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_tracejoin")).args(["slo", "alerts", "--server", &server.http]).output();
    let output = output.expect("it runs");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("TracejoinObjectiveBroken") && table.contains("duration-p95"), "{table}");
}

fn fires(alerts: &Value) -> Vec<String> {
    let fires = alerts["alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
    if fires { Vec::new() } else { vec!["no alert fires".to_owned()] }
}

fn delivered(history: &Value) -> Vec<String> {
    let delivered = history["transitions"][0]["deliveries"][0]["delivered_at"].is_string();
    if delivered { Vec::new() } else { vec![format!("nobody was told: {history}")] }
}
