//! docs/integrations.md: each trial is made as printed there, and comes to what its row says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::Server;

/// A row of a table: its cells in order.
struct Row(Vec<String>);

impl Row {
    fn system(&self) -> &str {
        &self.0[0]
    }

    /// The names in backticks that a cell begins with, up to a semicolon.
    fn names(&self, cell: usize) -> BTreeSet<&str> {
        let told = self.0[cell].split(';').next().unwrap_or_default();
        told.split('`').skip(1).step_by(2).collect()
    }

    fn tried(&self) -> &str {
        self.0.last().expect("a row has cells")
    }

    /// The commands of the last cell, each as its words behind `tracejoin`.
    fn commands(&self) -> Vec<Vec<&str>> {
        let codes = self.tried().split('`').skip(1).step_by(2);
        codes.filter_map(|code| Some(code.strip_prefix("tracejoin ")?.split(' ').collect())).collect()
    }

    /// The tests that the last cell names, each with the file that it stands in.
    fn tests(&self) -> Vec<(&str, &str)> {
        let named = self.tried().split("](../").skip(1);
        let before = self.tried().split("` in [").map(|text| text.rsplit('`').next().unwrap_or_default());
        before.zip(named.map(|text| text.split(')').next().unwrap_or_default())).collect()
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the table below a heading.
fn rows(heading: &str) -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/integrations.md")).expect("the page");
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).expect("the heading");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    lines.map(|line| Row(line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())).collect()
}

fn tracejoin(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.args(words).current_dir(root()).output().expect("the binary runs")
}

/// What a command prints as JSON.
fn printed(words: &[&str]) -> Value {
    let output = tracejoin(words);
    let told = String::from_utf8_lossy(&output.stdout);
    let line = told.lines().last().unwrap_or_default();
    let failed = |error| panic!("{words:?}: {error}: {told} {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(line).unwrap_or_else(failed)
}

/// The phases that an answer tells, and whether it tells the server's first token.
fn known(answer: &Value) -> BTreeSet<&'static str> {
    let phases = &answer["phases"];
    let mut known = BTreeSet::new();
    for (name, value) in [
        ("gateway", &phases["gateway_ms"]),
        ("gpu_queue", &phases["gpu_queue_ms"]),
        ("generation", &phases["generation_ms"]),
        ("ttft", &answer["server"]["ttft_ms"]),
    ] {
        if value.is_number() {
            known.insert(name);
        }
    }
    if phases["provider_ms"].as_f64().is_some_and(|provider| provider > 0.0) {
        known.insert("provider");
    }
    known
}

fn flags(answer: &Value) -> BTreeSet<&str> {
    answer["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What of an answer is not as the row says.
fn faults(row: &Row, answer: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let (wanted, found) = (row.names(2), known(answer));
    if wanted != found {
        faults.push(format!("{}: known are {found:?}, not {wanted:?}", row.system()));
    }
    let (wanted, found) = (row.names(3), flags(answer));
    if wanted != found {
        faults.push(format!("{}: flags are {found:?}, not {wanted:?}", row.system()));
    }
    faults
}

#[test]
fn every_row_says_how_it_was_tried() {
    let all = rows("Servers").into_iter().chain(rows("Clients"));
    let mut seen = 0;
    for row in all {
        assert_eq!(row.0.len(), 5, "{}: {:?}", row.system(), row.0);
        assert!(!row.commands().is_empty() || !row.tests().is_empty(), "{} was not tried", row.system());
        for (test, file) in row.tests() {
            let code = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(code.contains(&format!("fn {test}(")), "{}: there is no {test} in {file}", row.system());
        }
        for path in row.commands().concat().into_iter().filter(|word| word.starts_with("tests/")) {
            assert!(root().join(path).is_file(), "{}: there is no {path}", row.system());
        }
        seen += 1;
    }
    assert!(seen >= 30, "{seen} rows");
}

#[test]
fn spans_of_servers_are_read_as_their_rows_say() {
    let mut found = Vec::new();
    let mut tried = 0;
    for row in rows("Servers") {
        for words in row.commands().into_iter().filter(|words| words[0] == "dialects") {
            let report = printed(&[words.as_slice(), &["--json"]].concat());
            assert_eq!(report["refused"], Value::Array(Vec::new()), "{}", row.system());
            let [trace] = report["traces"].as_array().expect("traces").as_slice() else { panic!("one trace") };
            found.extend(faults(&row, &trace["answer"]));
            tried += 1;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(tried >= 14, "{tried} rows");
}

#[test]
fn prompts_in_recorded_spans_are_not_kept() {
    for file in ["openinference.json", "openllmetry.json"] {
        let path = format!("tests/it/integrations/{file}");
        let recorded = fs::read_to_string(root().join(&path)).expect("a recording");
        assert!(recorded.contains("Say hello to the reader"), "{file} holds the prompt");
        let report = printed(&["dialects", "test", &path, "--json"]).to_string();
        assert!(!report.contains("Say hello to the reader"), "{report}");
    }
}

/// The trace of a file, as OTLP spells it.
fn trace_id(path: &str) -> String {
    let text = fs::read_to_string(root().join(Path::new(path))).expect("a file");
    let (_, rest) = text.split_once("\"traceId\": \"").expect("a span");
    rest.chars().take(32).collect()
}

/// Makes an import as printed; gives how many members were accepted of how many read.
fn import(server: &Server, words: &[&str]) -> (Value, Value) {
    let target = if words[1] == "otlp" { ["--otlp", &server.otlp_http] } else { ["--server", &server.http] };
    let tally = printed(&[words, &target, &["--json"]].concat());
    (tally["accepted"].clone(), tally["read"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_imported_as_their_rows_say() {
    let server = Server::start().await;
    for row in rows("Servers") {
        let imports: Vec<_> = row.commands().into_iter().filter(|words| words[0] == "import").collect();
        let Some(spans) = imports.first() else { continue };
        for words in &imports {
            import(&server, words);
        }
        let path = format!("/api/v1/traces/{}", trace_id(spans[2]));
        server.wait_for(&path, |answer| faults(&row, answer)).await;
    }
    for (at, row) in rows("Clients").into_iter().enumerate() {
        for words in row.commands().into_iter().filter(|words| words[0] == "import") {
            let run = format!("row-{at}");
            let labels: &[&str] = if LABELLED.contains(&words[1]) { &["--run", &run] } else { &[] };
            let (accepted, read) = import(&server, &[&words, labels].concat());
            let told = format!("{accepted} of {read} accepted");
            assert!(row.tried().contains(&told), "{}: {words:?} has {told}", row.system());
            if !labels.is_empty() {
                let path = format!("/api/v1/requests?from=2020-01-01T00:00:00Z&result=all&order=window_at&run={run}");
                server.wait_for(&path, |answer| unlike(&row, answer)).await;
            }
        }
    }
}

/// Importers that take a label for the run.
const LABELLED: [&str; 5] = ["k6", "aiperf", "vllm-bench", "guidellm", "locust"];

/// What the page calls the fields of a request that a client may have measured.
const MEASURED: [(&str, &str, &str); 6] = [
    ("duration", "client", "duration_ms"),
    ("wall time", "client", "wall_ms"),
    ("setup", "client", "setup_ms"),
    ("headers", "client", "headers_ms"),
    ("first token", "client", "ttft_ms"),
    ("gaps", "stream", "p50_gap_ms"),
];

/// Where the requests of a run tell something else than the row says.
fn unlike(row: &Row, answer: &Value) -> Vec<String> {
    let requests = answer["requests"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = row.0[2].split(';').next().unwrap_or_default().split(", ").collect::<BTreeSet<_>>();
    let told = |(_, section, key): &&(_, &str, &str)| requests.iter().any(|request| request[section][key].is_number());
    let told = MEASURED.iter().filter(told).map(|(name, ..)| *name).collect();
    if said == told { Vec::new() } else { vec![format!("{}: told are {told:?}, not {said:?}", row.system())] }
}

#[test]
fn a_browsers_span_stands_for_a_record() {
    let report = printed(&["dialects", "test", "tests/it/integrations/fetch.json", "--json"]);
    let answer = &report["traces"][0]["answer"];
    assert!(flags(answer).contains("client_from_span"), "{answer}");
    assert_eq!(answer["client"]["wall_ms"], 1040.0, "{answer}");
}
