//! The command itself, as a process.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::Command;

use super::scripted::{Authority, DONE, Proxy, Script, Scripted, Step, send, token, wait};
use crate::common::Server;

const SECRET: &str = "hunter2hunter2";

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// The lines of standard output, each as JSON.
    fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }
}

async fn probe(args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
    command.arg("probe").args(args).stdin(Stdio::null()).kill_on_drop(true);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "TRACEJOIN_SERVER"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    let output = command.envs(variables.iter().copied()).output().await.expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn answer() -> Script {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n";
    let steps = vec![wait(120), send(token("zebra")), wait(40), send(token("quagga")), send(usage), send(DONE)];
    Script { steps, ..Script::default() }
}

#[tokio::test]
async fn without_a_server_the_clients_figures_are_printed() {
    let server = Scripted::start([("/v1/chat/completions", answer())]).await;
    let url = server.url("/v1/chat/completions");
    let ran = probe(&[&url, "--no-server", "--model", "m-7b", "--max-tokens", "9"], &[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in ["result=ok", "status=200", "business_events=2", "input_tokens=5", "output_tokens=2", "tls_ms=0"] {
        assert!(ran.stdout.lines().any(|shown| shown == line), "{line} is not in {}", ran.stdout);
    }
    let received = server.received();
    let body: Value = serde_json::from_slice(&received[0].body).expect("JSON");
    assert_eq!((&body["model"], &body["max_tokens"], &body["stream"]), (&json!("m-7b"), &json!(9), &json!(true)));
    assert!(received[0].header("traceparent").starts_with("00-"));
    assert!(!ran.stdout.contains("zebra") && !ran.stdout.contains("quagga"), "text of the answer: {}", ran.stdout);
}

#[tokio::test]
async fn secrets_and_texts_are_never_printed() {
    let echo = format!("data: {{\"error\":{{\"message\":\"{SECRET}\",\"code\":\"{SECRET}\"}}}}\n\n");
    let server = Scripted::start([
        ("/echo", Script { steps: vec![send(token(SECRET)), send(echo)], ..Script::default() }),
        ("/401", Script { status: 401, steps: vec![send(SECRET)], ..Script::default() }),
        (
            "/302",
            Script {
                status: 302,
                headers: vec![("location", format!("http://{SECRET}.invalid/?key={SECRET}"))],
                ..Script::default()
            },
        ),
    ])
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let prompts = folder.path().join("prompts.toml");
    std::fs::write(&prompts, format!("[[prompt]]\ntext = \"{SECRET}\"\n")).expect("written");
    let broken = folder.path().join("broken.toml");
    std::fs::write(&broken, format!("[[prompt]]\ntext = {SECRET}\n")).expect("written");
    let variables = [("KEY", SECRET), ("RUST_LOG", "trace"), ("RUST_BACKTRACE", "1")];
    let header = "Authorization: Bearer ${KEY}";
    let shown = prompts.to_str().expect("UTF-8");
    for path in ["/echo", "/401", "/302"] {
        for output in ["--json", "--no-server"] {
            let url = format!("{}?key={SECRET}", server.url(path));
            let ran = probe(&[&url, "--no-server", output, "-H", header, "--prompts", shown], &variables[..]).await;
            assert!(ran.code.is_some_and(|code| code != 0), "{}", ran.stdout);
            assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{} {}", ran.stdout, ran.stderr);
        }
    }
    assert!(server.received().iter().all(|received| received.header("authorization") == format!("Bearer {SECRET}")));
    let url = server.url("/echo");
    for args in [
        vec![url.as_str(), "-H", SECRET],
        vec![url.as_str(), "-H", "x: hunter2hunter2 ${NOT_SET_ANYWHERE}"],
        vec![url.as_str(), "--prompts", broken.to_str().expect("UTF-8")],
        vec!["htp://user:hunter2hunter2@host/"],
        vec!["http://user:hunter2hunter2@host/"],
    ] {
        let ran = probe(&args, &variables).await;
        assert!(ran.code.is_some_and(|code| code != 0) && !ran.stderr.is_empty());
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{} {}", ran.stdout, ran.stderr);
    }
}

#[tokio::test]
async fn a_slow_answer_never_delays_the_next_start() {
    let slow = Script { steps: vec![send(token("a")), wait(3_000), send(DONE)], ..Script::default() };
    let server = Scripted::start([("/", slow)]).await;
    let schedule = ["--no-server", "--json", "--every", "200ms", "--count", "6", "--max-in-flight", "2"];
    let ran = probe(&[&[server.url("/").as_str()], &schedule[..]].concat(), &[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut lines = ran.lines();
    let summary = lines.pop().expect("a last line")["summary"].take();
    let count = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("no {name} in {summary}"));
    assert_eq!(count("due"), 6);
    assert_eq!(count("sent") + count("skipped") + count("missed"), 6);
    // Six starts are due within one second, and each answer takes three.
    assert!((1..=2).contains(&count("sent")) && count("skipped") > 0, "{summary}");
    assert_eq!(lines.len() as u64, count("sent"));
    assert_eq!(summary["results"]["ok"], summary["sent"]);
    assert_eq!(server.received().len() as u64, count("sent"));
}

#[tokio::test]
async fn a_signal_ends_the_starts_and_nothing_that_was_measured_is_lost() {
    let slow = Script { steps: vec![send(token("a")), wait(1_000), send(DONE)], ..Script::default() };
    let server = Scripted::start([("/", slow)]).await;
    let taken = Scripted::start([("/api/v1/records", taking_records())]).await;
    let command = Command::new(env!("CARGO_BIN_EXE_tracejoin"))
        .args(["probe", &server.url("/"), "--every", "100ms", "--json", "--server", &taken.url("")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let child = command.expect("the binary runs");
    while server.received().len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).expect("it runs");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().await.expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let summary = lines.pop().expect("a summary")["summary"].take();
    let sent = server.received().len();
    assert_eq!(summary["sent"], sent, "{summary}");
    assert_eq!((&summary["results"]["ok"], &summary["abandoned"]), (&summary["sent"], &json!(0)), "{summary}");
    let uploads = taken.received();
    let records: usize = uploads.iter().map(|upload| upload.body.split(|byte| *byte == b'\n').count()).sum();
    assert_eq!((records, lines.len()), (sent, sent));
}

/// An endpoint that answers as if it had taken one record, whatever comes.
fn taking_records() -> Script {
    Script { steps: vec![send("{\"accepted\":1,\"duplicates\":0,\"rejected\":[]}")], ..Script::default() }
}

#[tokio::test]
async fn proxies_of_the_environment_are_used() {
    let authority = Authority::new();
    let server = Scripted::start_tls([("/", answer())], &authority).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &authority.pem).expect("written");
    let proxy = Proxy::start().await;
    let login = format!("http://user:{SECRET}@{}", proxy.address);
    let variables = [("HTTPS_PROXY", login.as_str()), ("HTTP_PROXY", login.as_str()), ("NO_PROXY", "127.0.0.1")];
    let url = format!("https://localhost:{}/", server.address.port());
    let args = ["--no-server", "--json", "--ca-file", file.to_str().expect("UTF-8")];

    let tunnelled = probe(&[&[url.as_str()], &args[..]].concat(), &variables).await;
    assert_eq!(tunnelled.code, Some(0), "{} {}", tunnelled.stdout, tunnelled.stderr);
    let plain = probe(&["http://name.invalid/v1?x=1", "--no-server", "--json"], &variables).await;
    assert_eq!(plain.code, Some(0), "{} {}", plain.stdout, plain.stderr);
    let asked = proxy.asked();
    let [connect, absolute] = asked.as_slice() else { panic!("two requests, not {asked:?}") };
    let target = format!("CONNECT localhost:{} HTTP/1.1\r\n", server.address.port());
    assert!(connect.starts_with(&target) && !connect.contains("traceparent"), "{connect}");
    assert!(absolute.starts_with("GET http://name.invalid/v1?x=1 HTTP/1.1\r\n"), "{absolute}");
    assert!(asked.iter().all(|head| head.to_lowercase().contains("proxy-authorization: basic ")), "{asked:?}");

    let direct = format!("https://127.0.0.1:{}/", server.address.port());
    let direct = probe(&[&[direct.as_str()], &args[..]].concat(), &variables).await;
    assert_eq!((direct.code, proxy.asked().len()), (Some(0), 2), "NO_PROXY: {}", direct.stderr);
    for ran in [tunnelled, plain, direct] {
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET));
    }
}

#[tokio::test]
async fn what_cannot_be_delivered_is_said() {
    let server = Scripted::start([("/", answer())]).await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nobody = format!("http://{}", closed.local_addr().expect("bound"));
    drop(closed);
    let url = server.url("/");
    let away = ["--server", nobody.as_str(), "--retry-for", "0s"];
    let once = probe(&[&[url.as_str()], &away[..]].concat(), &[]).await;
    assert_eq!(once.code, Some(1));
    assert!(once.stdout.contains("\nbusiness_events=2\n"), "the figures stand: {}", once.stdout);
    assert!(once.stderr.contains("the record was not delivered"), "{}", once.stderr);
    let often = probe(&[&[url.as_str(), "--every", "1s", "--count", "2"], &away[..]].concat(), &[]).await;
    assert_eq!(often.code, Some(1));
    assert!(often.stderr.contains("records were not delivered"), "{}", often.stderr);
}

fn spans(traceparent: &str) -> Value {
    let parts: Vec<&str> = traceparent.split('-').collect();
    let span = |id: &str, parent: &str, name: &str, kind: u8, start: u64, length: u64| {
        json!({"traceId": parts[1], "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": (start * 1_000_000).to_string(),
               "endTimeUnixNano": ((start + length) * 1_000_000).to_string()})
    };
    let service = json!([{"key": "service.name", "value": {"stringValue": "gateway"}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [
        span("00000000000000a1", parts[2], "POST /v1/chat/completions", 2, 1_000, 100),
        span("00000000000000a2", "00000000000000a1", "inference.generate", 3, 1_020, 60),
    ]}]}]})
}

#[tokio::test]
async fn one_request_is_explained_and_a_schedule_is_recorded() {
    let server = Server::start().await;
    let gateway = Scripted::start([
        ("/v1/chat/completions", answer()),
        ("/hangs", Script { steps: vec![Step::Hang], ..Script::default() }),
    ])
    .await;
    let url = gateway.url("/v1/chat/completions");
    let common = ["--server", server.http.as_str(), "--dimension", "region=eu", "--model", "m-7b"];
    let args = [&[url.as_str()], &common[..]].concat();
    let (ran, ()) = tokio::join!(probe(&args, &[]), async {
        while gateway.received().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.export(&spans(gateway.received()[0].header("traceparent"))).await;
    });
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("state matched"), "{}", ran.stderr);
    for line in ["result=ok", "server_root_ms=100", "generation_ms=60", "unattributed_server_ms=40"] {
        assert!(ran.stdout.lines().any(|shown| shown == line), "{line} is not in {}", ran.stdout);
    }
    assert_eq!(ran.stdout.matches("trace_id=").count(), 1);

    let schedule = ["--every", "300ms", "--count", "3", "--run", "nightly"];
    let ran = probe(&[&[url.as_str()], &common[..], &schedule[..]].concat(), &[]).await;
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 3), "{} {}", ran.stdout, ran.stderr);
    let path = "/api/v1/phases?from=-1h&run=nightly&model=m-7b&region=eu&scenario=probe&result=all";
    let wants = |answer: &Value| {
        let known = answer["coverage"]["client_records"].as_u64();
        if known == Some(3) { Vec::new() } else { vec![format!("{known:?} records")] }
    };
    server.wait_for(path, wants).await;

    let hangs = gateway.url("/hangs");
    let args = ["--server", server.http.as_str(), "--stall-timeout", "200ms", "--wait", "0s", "--json"];
    let ran = probe(&[&[hangs.as_str()], &args[..]].concat(), &[]).await;
    assert_eq!(ran.code, Some(3));
    let shown = ran.lines().pop().expect("a line");
    assert_eq!((&shown["result"], &shown["error"]), (&json!("timeout"), &json!("stalled")));
    assert_eq!(shown["explained"]["result"], "timeout", "{shown}");
}
