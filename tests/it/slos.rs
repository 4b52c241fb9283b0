//! Objectives, from a file to a verdict, against a real server and its database.

use std::process::Command;
use std::sync::Arc;

use model::{ClientSide, Dimension, Nanos, Request, ResultClass, UnixNanos};
use serde_json::{Value, json};

use crate::common::{Server, test_database};
use crate::window_support::{self, MS, WEEK};

/// An objective on the queue.
fn queue(name: &str, threshold_ms: u32) -> String {
    format!(
        "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: {name}, owner: inference}}\nspec:\n  phase: gpu_queue\n  \
         quantile: 0.95\n  threshold_ms: {threshold_ms}\n"
    )
}

/// A budget of 1200 ms for the first token.
fn goal(split: &str) -> String {
    format!(
        "apiVersion: tracejoin/v1\nkind: Budget\nmetadata: {{name: first-token}}\nspec:\n  phase: ttft\n  quantile: 0.95\n  \
         threshold_ms: 1200\n  split: {{{split}}}\n"
    )
}

/// Puts a document and returns status and answer.
async fn put(server: &Server, name: &str, document: &str) -> (u16, Value) {
    server.put(&format!("/api/v1/slos/{name}"), "application/yaml", document).await
}

fn names(slos: &Value) -> Vec<&str> {
    slos["slos"].as_array().into_iter().flatten().filter_map(|slo| slo["id"].as_str()).collect()
}

#[tokio::test]
async fn every_change_is_a_version_that_stays_and_another_instance_knows_it() {
    let server = Server::start().await;
    let (status, created) = put(&server, "queue-p95", &queue("queue-p95", 250)).await;
    assert_eq!((status, &created["version"], &created["action"]), (201, &json!(1), &json!("created")), "{created}");
    let (status, same) = put(&server, "queue-p95", &queue("queue-p95", 250)).await;
    assert_eq!((status, &same["version"], &same["action"]), (200, &json!(1), &json!("unchanged")), "{same}");
    assert_eq!(same["since"], created["since"]);

    let twin = server.twin().await;
    let (status, changed) = put(&twin, "queue-p95", &queue("queue-p95", 300)).await;
    assert_eq!((status, &changed["version"], &changed["action"]), (200, &json!(2), &json!("changed")), "{changed}");
    let difference = json!([{"field": "spec.threshold_ms", "before": 250, "after": 300}]);
    assert_eq!(changed["changed"], difference);
    let (_, read) = server.get("/api/v1/slos/queue-p95").await;
    assert_eq!((&read["version"], &read["changed_by"]), (&json!(2), &json!("local")), "{read}");

    let (status, deleted) = server.delete("/api/v1/slos/queue-p95").await;
    assert_eq!((status, &deleted["version"], &deleted["action"]), (200, &json!(3), &json!("deleted")), "{deleted}");
    assert_eq!(twin.get("/api/v1/slos/queue-p95").await.0, 404);
    let (_, past) = twin.get("/api/v1/slos/queue-p95/versions").await;
    let told = |at: usize| (&past["versions"][at]["version"], &past["versions"][at]["deleted"]);
    assert_eq!(
        [told(0), told(1), told(2)],
        [(&json!(3), &json!(true)), (&json!(2), &json!(false)), (&json!(1), &json!(false))]
    );
    assert_eq!(past["versions"][2]["document"]["spec"]["threshold_ms"], json!(250));
}

#[tokio::test]
async fn a_budget_is_replaced_and_deleted_with_its_parts() {
    let server = Server::start().await;
    let (status, created) =
        put(&server, "first-token", &goal("envelope: 120, gateway: 60, gpu_queue: 250, generation: 770")).await;
    assert_eq!((status, created["parts"].as_array().map(Vec::len)), (201, Some(4)), "{created}");
    let (status, refused) = server.delete("/api/v1/slos/first-token.ttft_gateway").await;
    assert_eq!(status, 409, "{refused}");

    let (status, changed) = put(&server, "first-token", &goal("gateway: 60, gpu_queue: 370, generation: 770")).await;
    assert_eq!((status, &changed["action"]), (200, &json!("unchanged")), "{changed}");
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for part in changed["parts"].as_array().into_iter().flatten() {
        parts.push((part["id"].as_str().expect("a name"), part["action"].as_str().expect("a word")));
    }
    parts.sort_unstable();
    assert_eq!(
        parts,
        [
            ("first-token.ttft_envelope", "deleted"),
            ("first-token.ttft_gateway", "unchanged"),
            ("first-token.ttft_generation", "unchanged"),
            ("first-token.ttft_gpu_queue", "changed"),
        ]
    );
    let (_, all) = server.get("/api/v1/slos").await;
    assert_eq!(
        names(&all),
        ["first-token", "first-token.ttft_gateway", "first-token.ttft_generation", "first-token.ttft_gpu_queue"]
    );

    let (status, refused) = put(&server, "first-token", &goal("gateway: 60, gpu_queue: 250")).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!("spec.split")), "{refused}");
    let (_, deleted) = server.delete("/api/v1/slos/first-token").await;
    assert_eq!(deleted["parts"].as_array().map(Vec::len), Some(3), "{deleted}");
    assert_eq!(server.get("/api/v1/slos").await, (200, json!({"slos": []})));
}

#[tokio::test]
async fn a_bad_document_is_refused_with_every_line_and_field_and_changes_nothing() {
    let server = Server::start().await;
    put(&server, "queue-p95", &queue("queue-p95", 250)).await;
    let bad = queue("queue-p95", 300).replace("quantile: 0.95", "quantile: 95").replace("gpu_queue", "queue");
    let (status, refused) = put(&server, "queue-p95", &bad).await;
    assert_eq!(status, 400, "{refused}");
    let told: Vec<(u64, &str)> = refused["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| Some((error["line"].as_u64()?, error["field"].as_str()?)))
        .collect();
    assert!(told.contains(&(5, "spec.phase")), "{refused}");
    let (_, read) = server.get("/api/v1/slos/queue-p95").await;
    assert_eq!((&read["version"], &read["document"]["spec"]["threshold_ms"]), (&json!(1), &json!(250)));
}

#[tokio::test]
async fn instances_that_change_at_once_make_one_version_each() {
    let server = Server::start().await;
    let twin = server.twin().await;
    let documents: Vec<String> = (1..=10).map(|threshold| queue("queue-p95", threshold)).collect();
    let changes = documents.iter().enumerate().map(|(at, document)| {
        let server = if at % 2 == 0 { &server } else { &twin };
        put(server, "queue-p95", document)
    });
    let mut versions: Vec<i64> = Vec::new();
    for (status, changed) in futures::future::join_all(changes).await {
        assert!(matches!(status, 200 | 201), "{changed}");
        versions.push(changed["version"].as_i64().expect("a number"));
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=10).collect::<Vec<i64>>());
}

/// One request a second of a model, back over twice the window of ten minutes, each as `make` makes it from its number,
/// its time and its place.
fn every_second(model: &str, first: u32, make: impl Fn(u32, UnixNanos, u32) -> Request) -> Vec<Request> {
    let now = UnixNanos::now();
    let one = |place: u32| {
        let request = make(first + place, now - Nanos(i64::from(place) * 1000 * MS), place);
        of_model(request, model)
    };
    (0..1200).map(one).collect()
}

fn of_model(mut request: Request, model: &str) -> Request {
    request.client_dimensions.set(Dimension::Model, Some(model));
    request.dimensions.set(Dimension::Model, Some(model));
    request
}

/// A request that ended in this class after so long, without anything of a server.
fn ended(number: u32, at: UnixNanos, result: ResultClass, duration_ms: i64) -> Request {
    let client = Some(ClientSide { duration: Some(Nanos(duration_ms * MS)), ..ClientSide::default() });
    Request { result: Some(result), client, ..window_support::lone(number, at) }
}

/// A server that finds these requests in its database.
async fn served(requests: Vec<Request>) -> Server {
    let database = Arc::new(test_database().await);
    let store = window_support::open(&database.url, WEEK).await;
    window_support::write(&store, requests).await;
    store.close().await;
    Server::on(database, &[]).await
}

/// Puts an objective on a model, and returns how it stands.
async fn stands(server: &Server, model: &str, spec: &str) -> Value {
    let document = format!(
        "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: {model}}}\nspec: {{{spec}, where: {{model: {model}}}}}\n"
    );
    let (status, put) = put(server, model, &document).await;
    assert_eq!(status, 201, "{put}");
    let (status, answer) = server.get(&format!("/api/v1/slos/{model}/status")).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn reasons(status: &Value) -> Vec<&str> {
    status["verdict"]["reasons"].as_array().into_iter().flatten().filter_map(|one| one["reason"].as_str()).collect()
}

#[tokio::test]
async fn a_status_is_ok_broken_or_no_verdict_and_says_by_what() {
    let mut requests = every_second("fast", 0, |number, at, _| window_support::matched(number, at, 100));
    requests.extend(every_second("slow", 10_000, |number, at, _| window_support::matched(number, at, 400)));
    requests.extend(every_second("blind", 20_000, |number, at, place| {
        let spans_came = place % 50 < 31;
        if spans_came { window_support::matched(number, at, 100) } else { window_support::lone(number, at) }
    }));
    let mut seldom = every_second("seldom", 30_000, |number, at, _| window_support::matched(number, at, 400));
    seldom.retain(|request| u128::from_be_bytes(*request.trace_id.as_bytes()).is_multiple_of(10));
    requests.extend(seldom);
    requests.extend(every_second("new", 40_000, |number, at, _| window_support::matched(number, at, 400)).drain(..180));
    let server = served(requests).await;
    let spec = "phase: gpu_queue, quantile: 0.95, threshold_ms: 250";

    let fast = stands(&server, "fast", spec).await;
    assert_eq!((&fast["verdict"]["verdict"], &fast["verdict"]["value_ms"]), (&json!("ok"), &json!(100.0)), "{fast}");
    assert!(fast["verdict"]["n"].as_u64().is_some_and(|n| (590..=600).contains(&n)), "{fast}");
    let slow = stands(&server, "slow", spec).await;
    assert_eq!(
        (&slow["verdict"]["verdict"], &slow["verdict"]["confirmed"]),
        (&json!("broken"), &json!(true)),
        "{slow}"
    );
    assert_eq!((&slow["verdict"]["value_ms"], &slow["verdict"]["threshold_ms"]), (&json!(400.0), &json!(250.0)));

    let blind = stands(&server, "blind", spec).await;
    assert_eq!(
        (&blind["verdict"]["verdict"], reasons(&blind)),
        (&json!("no_verdict"), vec!["low_coverage"]),
        "{blind}"
    );
    let coverage = blind["verdict"]["join_coverage"].as_f64().expect("a share");
    assert!((coverage - 0.62).abs() < 0.01, "{coverage}");
    let seldom = stands(&server, "seldom", spec).await;
    assert_eq!((&seldom["verdict"]["verdict"], reasons(&seldom)), (&json!("no_verdict"), vec!["too_few"]), "{seldom}");
    let new = stands(&server, "new", spec).await;
    assert_eq!((&new["verdict"]["verdict"], reasons(&new)), (&json!("no_verdict"), vec!["window_not_full"]), "{new}");
}

#[tokio::test]
async fn neither_errors_nor_timeouts_turn_a_latency_green() {
    let mut requests = every_second("slow", 0, |number, at, _| window_support::matched(number, at, 1450));
    requests.extend(every_second("slow", 10_000, |number, at, _| ended(number, at, ResultClass::Error, 10)));
    requests.extend(every_second("slow", 20_000, |number, at, _| ended(number, at, ResultClass::Timeout, 10)));
    requests.extend(every_second("cut-off", 30_000, |number, at, place| match place % 10 {
        0 => ended(number, at, ResultClass::Timeout, 60_000),
        _ => window_support::matched(number, at, 100),
    }));
    let server = served(requests).await;
    let spec = "phase: duration, quantile: 0.95, threshold_ms: 1000";

    let slow = stands(&server, "slow", spec).await;
    assert_eq!((&slow["verdict"]["verdict"], &slow["verdict"]["good"]), (&json!("broken"), &json!(0)), "{slow}");
    assert!(slow["verdict"]["n"].as_u64().is_some_and(|n| (590..=600).contains(&n)), "{slow}");
    assert!(slow["verdict"]["left_out"].as_u64().is_some_and(|n| (590..=600).contains(&n)), "{slow}");

    let cut_off = stands(&server, "cut-off", spec).await;
    assert_eq!(cut_off["verdict"]["verdict"], json!("broken"), "{cut_off}");
    let share = cut_off["verdict"]["bad"].as_f64().zip(cut_off["verdict"]["n"].as_f64()).map(|(bad, n)| bad / n);
    assert!(share.is_some_and(|share| (share - 0.1).abs() < 0.005), "{cut_off}");
}

/// Runs `tracejoin slo` with these arguments against a server, and returns status, output and errors.
fn slo(server: &Server, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracejoin"))
        .arg("slo")
        .args(arguments)
        .args(["--server", &server.http])
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// What `tracejoin slo apply --json` says became of each whole.
fn applied(output: &str) -> Vec<(String, String, i64)> {
    let answer: Value = serde_json::from_str(output).expect("JSON");
    let mut all = Vec::new();
    for slo in answer["slos"].as_array().into_iter().flatten() {
        let text = |key: &str| slo[key].as_str().expect("a text").to_owned();
        all.push((text("id"), text("action"), slo["version"].as_i64().expect("a number")));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_checked_whole_before_anything_is_sent() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let path = folder.path().to_str().expect("UTF-8");
    write("goal.yaml", &goal("envelope: 120, gateway: 60, gpu_queue: 250, generation: 770"));
    write("queue.yaml", &queue("queue-p95", 250).replace("gpu_queue", "queue"));
    let (status, _, errors) = slo(&server, &["apply", path]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("queue.yaml:5:10: spec.phase:"), "{errors}");
    assert_eq!(server.get("/api/v1/slos").await.1, json!({"slos": []}));

    write("queue.yaml", &queue("queue-p95", 250));
    let (status, output, errors) = slo(&server, &["apply", path, "--json"]);
    assert_eq!(status, Some(0), "{errors}");
    let told = |id: &str, action: &str, version| (id.to_owned(), action.to_owned(), version);
    assert_eq!(applied(&output), [told("first-token", "created", 1), told("queue-p95", "created", 1)]);
    assert!(output.contains("arithmetic"), "{output}");
    let (_, output, _) = slo(&server, &["apply", path, "--json"]);
    assert_eq!(applied(&output), [told("first-token", "unchanged", 1), told("queue-p95", "unchanged", 1)]);

    std::fs::remove_file(folder.path().join("goal.yaml")).expect("removed");
    write("queue.yaml", &queue("queue-p95", 300));
    let (status, output, errors) = slo(&server, &["apply", path, "--prune", "--json"]);
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(applied(&output), [told("queue-p95", "changed", 2), told("first-token", "deleted", 2)]);
    assert_eq!(names(&server.get("/api/v1/slos").await.1), ["queue-p95"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objectives_are_listed_shown_and_deleted_on_the_command_line() {
    let server = Server::start().await;
    put(&server, "queue-p95", &queue("queue-p95", 250)).await;
    let (_, output, _) = slo(&server, &["list"]);
    assert!(output.contains("p95 of gpu_queue ≤ 250 ms"), "{output}");
    let (status, output, _) = slo(&server, &["status", "queue-p95"]);
    assert_eq!(status, Some(0));
    assert!(output.contains("no_verdict") && output.contains("queue-p95: too_few: "), "{output}");
    assert!(output.contains("1h / 5m"), "{output}");

    let (status, output, _) = slo(&server, &["delete", "queue-p95"]);
    assert_eq!((status, output.contains("deleted")), (Some(0), true), "{output}");
    let (status, _, errors) = slo(&server, &["status", "queue-p95"]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("there is no objective `queue-p95`"), "{errors}");
}
