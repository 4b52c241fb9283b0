use std::io::Write;
use std::path::Path;

use super::*;
use crate::cli::dialects::report;
use crate::config::dialects;

const SPANS: &str = include_str!("acme.json");

fn read(path: &Path, dialects: &Dialects) -> File {
    File::read(Messages::open(path).expect("opened"), dialects).expect("read")
}

fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

/// The rules that the documentation shows.
fn documented() -> Dialects {
    let page = include_str!("../../../../docs/dialects.md");
    let (_, example) = page.split_once("```toml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    dialects::read(written(example).path()).expect("rules that are taken")
}

#[test]
fn the_report_shows_how_each_span_is_read_and_what_the_trace_comes_to() {
    let file = written(SPANS);
    insta::assert_snapshot!(report::text(&read(file.path(), &documented())));
}

#[test]
fn without_the_rules_their_attributes_are_dropped_and_named() {
    let file = written(SPANS);
    let read = read(file.path(), &Dialects::default());
    assert!(read.is_whole());
    assert_eq!(read.dropped_attributes["acme.queue_ms"], 2);
    let engine = &read.traces[0].spans[3];
    assert_eq!((engine.dialect.as_str(), engine.phase, engine.laid.len()), ("", None, 0));
    assert!(engine.dropped.contains("acme.kind"));
}

#[test]
fn the_json_holds_what_the_report_shows_and_no_content() {
    let file = written(SPANS);
    let json = serde_json::to_string(&read(file.path(), &documented())).expect("JSON");
    assert!(!json.contains("never shown"));
    let json: Json = serde_json::from_str(&json).expect("JSON");
    let engine = &json["traces"][0]["spans"][3];
    assert_eq!((&engine["dialect"], &engine["rule"]), (&json!("acme"), &json!("request")));
    assert_eq!(engine["laid"][2]["duration_ms"], 10.0);
    assert_eq!(json["traces"][0]["answer"]["phases"]["gpu_queue_ms"], 15.0);
    assert_eq!(json["traces"][1]["spans"][0]["flags"], json!(["unit_suspect"]));
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_read() {
    let one_line = serde_json::from_str::<Json>(SPANS).expect("JSON").to_string();
    let file = written(&format!("{one_line}\n{{\"resourceSpans\": 1}}\n{{\"resourceSp"));
    let read = read(file.path(), &Dialects::default());
    assert_eq!((read.messages, read.traces.len(), read.refused.len()), (1, 2, 2));
    assert!(!read.is_whole());
    assert!(report::text(&read).contains("not read: the last message is cut off"));
}
