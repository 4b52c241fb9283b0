//! The built binary, driven as a person drives it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::{TestDatabase, test_database};

const PATIENCE: Duration = Duration::from_secs(60);

fn tracejoin(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.args(args).env_remove("DATABASE_URL").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    tracejoin(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file that vanishes with the value.
struct Written {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn write(name: &str, bytes: &[u8]) -> Written {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("written");
    Written { path, _folder: folder }
}

impl Written {
    fn path(&self) -> &str {
        self.path.to_str().expect("UTF-8")
    }
}

/// A running server with short waiting times; killed with the value.
struct Served {
    child: Child,
    lines: Vec<String>,
    _database: TestDatabase,
}

impl Served {
    async fn start() -> Self {
        let database = test_database().await;
        let mut command = tracejoin(&["serve", "--settle", "1s", "--join-deadline", "3s"]);
        command.args(["--otlp-grpc-addr", "127.0.0.1:0", "--otlp-http-addr", "127.0.0.1:0"]);
        command.args(["--http-addr", "127.0.0.1:0", "--database-url", &database.url]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let output = child.stdout.take().expect("its output");
        let lines = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.take(4).collect::<Vec<String>>()
        });
        Self { child, lines: lines.await.expect("read"), _database: database }
    }

    /// The address of a listener, from its ready line.
    fn url(&self, listener: &str) -> String {
        let start = format!("tracejoin: {listener} listening on ");
        let address = self.lines.iter().find_map(|line| line.strip_prefix(&start));
        format!("http://{}", address.unwrap_or_else(|| panic!("no {listener} in {:?}", self.lines)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_bad_configuration_file_is_told_with_its_key() {
    let file = write("bad.toml", b"setle = \"1s\"\n");
    let output = run(&["serve", "--config", file.path()]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains("there is no setting \"setle\"; did you mean \"settle\"?"), "{told}");
}

#[test]
fn a_bad_receiver_ends_the_start_before_a_port_or_a_database_is_touched() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("--http-addr={}", holder.local_addr().expect("bound"));
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let data_dir = format!("--data-dir={}", data.display());
    let key = format!("--webhook-secret=whsec_{}", "A".repeat(44));
    // The port is taken, so a start that reached its listeners would name it.
    let mistakes = [
        ("--webhook=hooks.example/x", key.as_str(), "number 1 of --webhook"),
        ("--webhook=http://hooks.example/x", "--webhook-secret=whsec_short", "--webhook-secret"),
        ("--alertmanager=ftp://alerts.example", key.as_str(), "number 1 of --alertmanager"),
    ];
    for (receiver, key, expected) in mistakes {
        let output = run(&["serve", &taken, &data_dir, receiver, key]);
        let (printed, reason) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{reason}");
        assert!(reason.contains(expected) && !reason.contains("cannot listen"), "{reason}");
        assert_eq!(printed, "");
        assert!(!data.exists(), "a database was started");
    }
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("bound").to_string();
    let file = write("ports.toml", format!("http-addr = \"{taken}\"\n").as_bytes());
    let others = ["--otlp-grpc-addr=127.0.0.1:0", "--otlp-http-addr=127.0.0.1:0"];
    // A folder below a device cannot be made, so a server that gets past its sockets fails there.
    let start = |environment: Option<&str>, flag: Option<&str>| {
        let mut command = tracejoin(&["serve", "--config", file.path(), "--data-dir", "/dev/null/data"]);
        command.args(others).args(flag);
        if let Some(value) = environment {
            command.env("TRACEJOIN_HTTP_ADDR", value);
        }
        text(&command.output().expect("the binary runs").stderr)
    };
    let flag = format!("--http-addr={taken}");
    assert!(start(None, None).contains(&format!("cannot listen on {taken}")));
    assert!(start(Some("127.0.0.1:0"), None).contains("/dev/null"));
    assert!(start(Some("127.0.0.1:0"), Some(&flag)).contains(&format!("cannot listen on {taken}")));
    assert!(start(Some(&taken), Some("--http-addr=127.0.0.1:0")).contains("/dev/null"));
}

const TRACE: &str = "0000000000000007000000000000012f";

/// One request as its gateway exports it: 1691 ms, of which 428 ms in the queue and 1210 ms of generation.
fn spans(trace: &str, parent: &str) -> Value {
    let span = |id: u8, parent: &str, name: &str, kind: u8, start: u64, millis: u64| {
        let start = 1_767_323_045_000_000_000 + start * 1_000_000;
        json!({"traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + millis * 1_000_000).to_string()})
    };
    let entry = format!("{:016x}", 1);
    let spans = json!([
        span(1, parent, "POST /v1/chat/completions", 2, 0, 1691),
        span(2, &entry, "auth.check", 1, 0, 37),
        span(3, &entry, "inference.acquire_slot", 1, 37, 428),
        span(4, &entry, "inference.generate", 1, 465, 1210),
    ]);
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

fn summary(output: &Output) -> Value {
    let line = text(&output.stdout).lines().last().unwrap_or_default().to_owned();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?} {}", text(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_imported_counted_and_explained() {
    let served = Served::start().await;
    assert_eq!(served.lines.last().map(String::as_str), Some("tracejoin: ready"));
    let server = served.url("http");

    let good = json!({"trace_id": TRACE, "duration_ms": 1842, "status": 200, "started_at": "2026-01-02T03:04:05Z"});
    let timeout = json!({"trace_id": "00000000000000070000000000000130", "duration_ms": 9, "status": 504});
    let lines = format!("{good}\n{timeout}\n{{\"trace_id\":\"12\",\"duration_ms\":1}}\n{{\"trace_id\":\"0000");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(lines.as_bytes()).expect("in memory");
    let records = write("records.ndjson.gz", &gzip.finish().expect("in memory"));
    let import = || run(&["import", "records", records.path(), "--json", "--server", &server]);
    let first = import();
    assert_eq!(first.status.code(), Some(1), "one record was refused: {}", text(&first.stderr));
    let told = summary(&first);
    assert_eq!((&told["read"], &told["accepted"], &told["duplicates"]), (&json!(4), &json!(2), &json!(0)), "{told}");
    assert_eq!((&told["results"]["ok"], &told["results"]["timeout"]), (&json!(1), &json!(1)), "{told}");
    assert_eq!(told["rejected"].as_object().map(|reasons| reasons.len()), Some(2), "{told}");
    let again = summary(&import());
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(2)), "{again}");

    let log = r#"{"request_id":"r","event_seq":1,"event_type":"connect","client_time_ms":0}
        {"request_id":"r","event_seq":1,"event_type":"connect","client_time_ms":0}
        {"request_id":"r","event_seq":2,"event_type":"token"}"#;
    let events = write("events.ndjson", log.as_bytes());
    let told = summary(&run(&["import", "events", events.path(), "--json", "--server", &server]));
    assert_eq!((&told["read"], &told["accepted"], &told["duplicates"]), (&json!(3), &json!(1), &json!(1)), "{told}");
    assert_eq!((&told["results"], told["rejected"].as_object().map(|reasons| reasons.len())), (&json!(null), Some(1)));

    let otlp = write("traces.json", format!("{}\n", spans(TRACE, "")).as_bytes());
    let sent = run(&["import", "otlp", otlp.path(), "--json", "--otlp", &served.url("otlp-http")]);
    assert_eq!(summary(&sent)["accepted"], 4, "{}", text(&sent.stderr));

    let deadline = Instant::now() + PATIENCE;
    let mut report = String::new();
    while !report.contains("network_envelope_ms=151\n") && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(200)).await;
        report = text(&run(&["trace", TRACE, "--server", &server]).stdout);
    }
    insta::assert_snapshot!(report, @r"
    trace_id=0000000000000007000000000000012f
    client_total_ms=1842
    server_root_ms=1691
    network_envelope_ms=151
    gateway_ms=37
    gpu_queue_ms=428
    generation_ms=1210
    provider_ms=0
    upstream_envelope_ms=0
    unattributed_server_ms=16
    ");
    let unknown = run(&["trace", "00000000000000070000000000000999", "--server", &server]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("nothing is stored"), "{}", text(&unknown.stderr));
}

/// What k6 wrote in several runs, as one file.
fn k6_runs() -> Written {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/import/k6");
    let runs = ["probe", "refused", "timeout", "unavailable", "redirect", "batch", "interrupted", "stale", "sse"];
    let read = |run| std::fs::read(folder.join(format!("{run}.ndjson"))).expect("a file");
    write("runs.json", &runs.map(read).concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_k6_wrote_is_imported_and_counted_exactly() {
    let served = Served::start().await;
    let (server, runs) = (served.url("http"), k6_runs());
    let import = |more: &[&str]| {
        let told = ["import", "k6", runs.path(), "--json", "--server", &server];
        summary(&run(&[&told, more].concat()))
    };
    let told = import(&["--run", "night"]);
    let results = json!({"ok": 8, "error": 2, "timeout": 1, "cancelled": 2, "truncated": 0});
    assert_eq!((&told["read"], &told["accepted"], &told["results"]), (&json!(22), &json!(13), &results), "{told}");
    let rejected: Vec<_> = told["rejected"].as_object().expect("reasons").values().collect();
    assert_eq!(rejected, [&json!(1), &json!(2), &json!(1), &json!(5)], "{told}");
    let named = import(&["--name", "chat"]);
    assert_eq!((&named["read"], &named["accepted"]), (&json!(22), &json!(1)), "the one of the stale ids: {named}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_load_tools_are_imported_once() {
    let served = Served::start().await;
    let server = served.url("http");
    for (tool, file, n) in [("aiperf", "aiperf/profile_export.otel.jsonl", 6), ("locust", "locust/documented.csv", 5)] {
        let path = format!("{}/tests/it/import/{file}", env!("CARGO_MANIFEST_DIR"));
        let import = || run(&["import", tool, &path, "--json", "--run", "r1", "--server", &server]);
        let first = import();
        let told = summary(&first);
        assert_eq!((first.status.code(), &told["read"], &told["accepted"]), (Some(0), &json!(n), &json!(n)), "{told}");
        let again = summary(&import());
        assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(n)), "{again}");
        let other = if tool == "locust" { "aiperf" } else { "locust" };
        let refused = run(&["import", other, &path, "--server", &server]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains(&format!("`tracejoin import {tool}`")), "{}", text(&refused.stderr));
    }
    let report = text(&run(&["trace", "9667cd1cd804c43974ed3c85bf61a9ba", "--server", &server]).stdout);
    assert!(report.contains("client_total_ms=333.179494\n"), "{report}");
}

/// vLLM's own span, which tells the id that the bench sent behind `chatcmpl-`.
fn engine_span(trace: &str, request_id: &str) -> Value {
    let number = |key: &str, value: f64| json!({"key": key, "value": {"doubleValue": value}});
    let attributes = json!([
        {"key": "gen_ai.request.id", "value": {"stringValue": request_id}},
        number("gen_ai.latency.time_in_queue", 0.02),
        number("gen_ai.latency.time_in_model_prefill", 0.06),
        number("gen_ai.latency.time_in_model_decode", 1.2),
        number("gen_ai.latency.time_in_model_inference", 1.26),
    ]);
    let span = json!({"traceId": trace, "spanId": "00000000000000a1", "name": "llm_request", "kind": 2,
                      "startTimeUnixNano": "1767323045000000000", "endTimeUnixNano": "1767323046300000000",
                      "attributes": attributes});
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bench_without_trace_ids_is_joined_by_the_ids_it_sent() {
    let served = Served::start().await;
    let server = served.url("http");
    let path = format!("{}/tests/it/import/vllm-bench/detailed.json", env!("CARGO_MANIFEST_DIR"));
    let import = ["import", "vllm-bench", &path, "--request-id-prefix", "bench-1-", "--json", "--server", &server];
    let told = summary(&run(&import));
    assert_eq!((&told["accepted"], &told["results"]["timeout"]), (&json!(3), &json!(1)), "{told}");
    let otlp = write("traces.json", format!("{}\n", engine_span(TRACE, "chatcmpl-bench-1-0")).as_bytes());
    let sent = run(&["import", "otlp", otlp.path(), "--json", "--otlp", &served.url("otlp-http")]);
    assert_eq!(summary(&sent)["accepted"], 1, "{}", text(&sent.stderr));

    let deadline = Instant::now() + PATIENCE;
    let mut request = Value::Null;
    while request["state"] != "matched" && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(200)).await;
        request =
            serde_json::from_slice(&run(&["trace", TRACE, "--json", "--server", &server]).stdout).unwrap_or_default();
    }
    let phases = &request["phases"];
    let told = [&request["join_method"], &phases["gpu_queue_ms"], &phases["generation_ms"], &phases["unattributed_ms"]];
    assert_eq!(told, [&json!("request_id"), &json!(20.0), &json!(1260.0), &json!(20.0)], "{request}");
    // The bench's clock starts before the connection, so what is left is not the network's alone.
    assert_eq!(
        (&phases["network_envelope_ms"], &phases["wall_envelope_ms"]),
        (&Value::Null, &json!(47.02)),
        "{request}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_and_a_signal_are_no_failures() {
    let mut served = Served::start().await;
    let phases = ["phases", "--server", &served.url("http")];
    let mut reader = tracejoin(&phases).stdout(Stdio::piped()).spawn().expect("the binary starts");
    drop(reader.stdout.take());
    assert_eq!(reader.wait().expect("ended").code(), Some(0));

    let pid = i32::try_from(served.child.id()).expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("sent");
    let status = tokio::task::spawn_blocking(move || served.child.wait().map(|status| status.code()));
    assert_eq!(status.await.expect("waited").expect("ended"), Some(0));
}

/// A gateway that exports what it did to the server under test, as [`spans`] says.
async fn answer(State(otlp): State<String>, headers: HeaderMap) -> &'static str {
    let parent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parts: Vec<&str> = parent.split('-').collect();
    let body = spans(parts[1], parts[2]).to_string();
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let export = reqwest::Client::new().post(format!("{otlp}/v1/traces")).header("content-type", "application/json");
    export.body(body).send().await.expect("exported");
    "{}"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_checked_part_by_part() {
    let served = Served::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let gateway = format!("http://{}/v1/chat/completions", listener.local_addr().expect("bound"));
    let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(served.url("otlp-http"));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let server = served.url("http");
    let check = |url: String| {
        let server = server.clone();
        tokio::task::spawn_blocking(move || run(&["check", &url, "-d", "{}", "--json", "--server", &server]))
    };
    let output = check(gateway).await.expect("ran");
    let told = summary(&output);
    let ok: Vec<bool> = told["findings"].as_array().expect("findings").iter().map(|f| f["ok"] == true).collect();
    // The simulated spans are longer than the request was, which the check must not hide.
    assert_eq!((ok, &told["status"]), (vec![true; 4], &json!(200)), "{told}");
    assert_eq!(told["flags"].as_array().map(|flags| flags.contains(&json!("negative_envelope"))), Some(true), "{told}");

    let nobody = check("http://127.0.0.1:1/".to_owned()).await.expect("ran");
    assert_eq!(nobody.status.code(), Some(3), "{}", text(&nobody.stderr));
    assert_eq!(summary(&nobody)["findings"][0]["ok"], false);
}

#[test]
fn the_demo_names_the_owner_of_its_slow_minute_and_leaves_nothing() {
    let temporary = tempfile::Builder::new().prefix("tj").tempdir_in("/tmp").expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(temporary.path(), open).expect("the unprivileged account may enter");
    let output = tracejoin(&["demo"]).env("TMPDIR", temporary.path()).output().expect("the binary runs");
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));

    let (_, minutes) = told.split_once("Minute by minute").expect("the minutes");
    let columns = |row: &str| row.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect::<Vec<String>>();
    let rows: Vec<Vec<String>> = minutes.lines().filter(|line| line.starts_with('│')).map(columns).collect();
    let queue = rows[0].iter().position(|name| name == "gpu_queue").expect("a column");
    let waits: Vec<f64> = rows[1..].iter().map(|row| row[queue].parse().expect("a number")).collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    assert_eq!((waits.len(), waits[5]), (8, longest), "the sixth minute is the slow one: {waits:?}");
    assert!(told.contains("The most expensive request:") && told.contains("gpu_queue_ms="), "{told}");
    let left: Vec<_> = std::fs::read_dir(temporary.path()).expect("listed").collect();
    assert!(left.is_empty(), "{left:?} is left");
}
