//! Objectives, from a file to a verdict, against a real server and its database.

use serde_json::{Value, json};

use crate::common::Server;

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
