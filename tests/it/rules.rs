//! Dialect rules of a configuration file over the whole way: received, stored, joined and answered by one object.

use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::Server;

const SPANS: &str = include_str!("../../src/cli/dialects/reading/acme.json");

fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

/// The rules that the documentation shows, without its setting.
fn documented() -> String {
    let page = include_str!("../../docs/dialects.md");
    let (_, example) = page.split_once("```toml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    example.replace("settle = \"15s\"\n", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_decide_in_the_answer_and_in_the_stored_row() {
    let config = written(&documented());
    let server = Server::started(&["--config", config.path().to_str().expect("a path")]).await;
    let trace_id = uuid::Uuid::new_v4().simple().to_string();
    let spans = SPANS.replace("000000000000000000000000000000f1", &trace_id);
    let spans = spans.replace("000000000000000000000000000000f2", &uuid::Uuid::new_v4().simple().to_string());
    server.export(&serde_json::from_str(&spans).expect("JSON")).await;
    server.upload(&json!([{"trace_id": trace_id, "duration_ms": 120, "status": 200, "run": "rules"}])).await;

    let phases = json!({"network_envelope_ms": 20, "gateway_ms": null, "gpu_queue_ms": 15, "generation_ms": 45,
                        "provider_ms": 0, "upstream_envelope_ms": 20, "unattributed_ms": 20});
    let wanted = json!({"state": "matched", "span_count": 4, "phases": phases, "dimensions": {"pool": "a100"},
                        "phase_sources": {"gpu_queue": ["acme: request", "acme: slot"]}});
    server
        .wait_for(&format!("/api/v1/traces/{trace_id}"), |answer| crate::expectation::differences(&wanted, answer))
        .await;
    let rows = "/api/v1/requests?run=rules&from=-1h&order=-gpu_queue_ms";
    server
        .wait_for(rows, |answer| crate::expectation::differences(&json!({"phases": phases}), &answer["requests"][0]))
        .await;
}

#[test]
fn a_mistake_in_the_rules_stops_the_start_and_is_named() {
    let config = written("[[dialects]]\nname = \"acme\"\n[[dialects.rules]]\nmatch = { has = [\"gen_ai.prompt\"] }\n");
    let path = config.path().to_str().expect("a path");
    let output = Command::new(env!("CARGO_BIN_EXE_tracejoin")).args(["serve", "--config", path]).output();
    let output = output.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [path, "dialect \"acme\", rule 1", "match.has[0]", "never stored"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
}

#[test]
fn dialects_are_listed_and_a_file_is_tried_without_a_server() {
    let (config, spans) = (written(&documented()), written(SPANS));
    let paths = [config.path(), spans.path()].map(|path| path.to_str().expect("a path").to_owned());
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tracejoin")).args(args).output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let listed = run(&["dialects", "--json", "--config", &paths[0]]);
    assert_eq!((&listed["own"][0]["name"], &listed["built_in"][0]["name"]), (&json!("acme"), &json!("sglang")));
    let read = run(&["dialects", "test", &paths[1], "--json", "--config", &paths[0]]);
    assert_eq!(read["traces"][0]["answer"]["phases"]["generation_ms"], 45.0);
}
