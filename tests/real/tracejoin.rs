//! The built `tracejoin` binary, driven from outside.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use reqwest::{Client, Response};
use serde_json::Value;

use crate::process::Process;
use crate::scratch::Scratch;

/// How long a start may take: the private database is made first.
const START: Duration = Duration::from_secs(60);

/// Where its data is.
pub enum Store {
    /// A private PostgreSQL in the test's folder.
    Private,
    /// A server that is there already.
    Url(String),
}

#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub otlp_grpc: SocketAddr,
    pub otlp_http: SocketAddr,
    pub http: SocketAddr,
}

pub struct Tracejoin {
    pub addresses: Addresses,
    store: Store,
    flags: Vec<String>,
    client: Client,
    process: Option<Process>,
}

impl Tracejoin {
    pub async fn start(scratch: &Scratch, store: Store) -> Self {
        Self::start_with(scratch, store, &[]).await
    }

    /// The same with flags of the test's own, which go before ours.
    pub async fn start_with(scratch: &Scratch, store: Store, flags: &[&str]) -> Self {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let addresses = Addresses { otlp_grpc: any, otlp_http: any, http: any };
        let flags = flags.iter().map(ToString::to_string).collect();
        let mut started = Self { addresses, store, flags, client: Client::new(), process: None };
        started.resume(scratch).await;
        started
    }

    /// Starts it again on the same data and at the same addresses.
    pub async fn resume(&mut self, scratch: &Scratch) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        command.args(["serve", "--settle", "1s", "--join-deadline", "5s"]).env_remove("DATABASE_URL");
        command.args(["--otlp-grpc-addr", &self.addresses.otlp_grpc.to_string()]);
        command.args(["--otlp-http-addr", &self.addresses.otlp_http.to_string()]);
        command.args(["--http-addr", &self.addresses.http.to_string()]);
        match &self.store {
            Store::Private => command.arg("--data-dir").arg(scratch.join("data")),
            Store::Url(url) => command.arg("--database-url").arg(url),
        };
        command.args(&self.flags);
        let mut process = Process::spawn(scratch, "tracejoin", &mut command);
        self.addresses = process.wait_for_output(START, read_addresses).await;
        self.process = Some(process);
        let ready = async || self.get("/readyz").await.is_some_and(|answer| answer.status().is_success());
        let deadline = Instant::now() + START;
        while !ready().await {
            assert!(Instant::now() < deadline, "tracejoin is not ready:\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends it with a signal and waits until it is gone.
    pub async fn stop(&mut self, signal: Signal) {
        let process = self.process.take().expect("tracejoin runs");
        process.stop(signal).await;
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addresses.http)
    }

    /// `None` where nobody answers.
    pub async fn get(&self, path: &str) -> Option<Response> {
        self.client.get(self.url(path)).send().await.ok()
    }

    pub async fn get_json(&self, path: &str) -> Value {
        let answer = self.get(path).await.unwrap_or_else(|| panic!("nobody answers GET {path}:\n{}", self.log_tail()));
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "GET {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("GET {path}: {error} in {text}"))
    }

    pub async fn trace(&self, trace_id: &str) -> Value {
        self.get_json(&format!("/api/v1/traces/{trace_id}")).await
    }

    /// The coverage of the last hour, of one test run or of everything.
    pub async fn coverage(&self, run: Option<&str>) -> Value {
        let filter = run.map(|run| format!("&run={run}")).unwrap_or_default();
        self.get_json(&format!("/api/v1/phases?from=-1h{filter}")).await["coverage"].take()
    }

    /// Waits until `count` requests are joined and none is pending, and returns the coverage.
    ///
    /// It gives up after `patience`; the caller's assertions then tell what is missing.
    pub async fn wait_until_joined(&self, count: usize, patience: Duration) -> Value {
        let deadline = Instant::now() + patience;
        loop {
            let coverage = self.coverage(None).await;
            let complete = joined(&coverage) == count && coverage["pending"] == 0 && coverage["server_only"] == 0;
            if complete || Instant::now() > deadline {
                return coverage;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Uploads records, all of which must be taken.
    pub async fn upload(&self, records: &Value) {
        let answer = self.client.post(self.url("/api/v1/records")).json(records).send().await.expect("an answer");
        let answer: Value = answer.json().await.expect("JSON");
        assert_eq!(answer["accepted"].as_u64(), records.as_array().map(|records| records.len() as u64), "{answer}");
    }

    /// Uploads records with the program's own importer and returns the summary that it prints.
    pub fn import(&self, format: &str, file: &Path) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        command.args(["import", format]).arg(file).args(["--json", "--server", &self.url("")]);
        let output = command.output().expect("tracejoin import runs");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tracejoin import failed: {log}\n{}", self.log_tail());
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = text.lines().last().unwrap_or_else(|| panic!("no summary: {log}"));
        serde_json::from_str(summary).unwrap_or_else(|error| panic!("the summary {summary}: {error}"))
    }

    /// Runs one of the program's commands against it and returns what it prints.
    pub fn command(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        let output = command.args(words).args(["--server", &self.url("")]).output().expect("the binary runs");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tracejoin {words:?} failed: {log}\n{}", self.log_tail());
        String::from_utf8(output.stdout).expect("text")
    }

    fn log_tail(&self) -> String {
        self.process.as_ref().map(Process::log_tail).unwrap_or_default()
    }
}

/// Requests whose two sides were found and compared.
///
/// On a machine that is busy enough the gateway's handler is still held up when the client has its answer; such a request
/// is joined, then excluded from the figures for its negative envelope.
pub fn joined(coverage: &Value) -> usize {
    let count = |value: &Value| value.as_u64().unwrap_or(0) as usize;
    count(&coverage["matched"]) + count(&coverage["excluded"]["negative_envelope"])
}

/// Whether `GET /api/v1/traces/{id}` answered with such a request.
pub fn is_joined(request: &Value) -> bool {
    let flags = request["flags"].as_array();
    let negative = flags.is_some_and(|flags| flags.iter().any(|flag| flag == "negative_envelope"));
    request["state"] == "matched" || request["state"] == "excluded" && negative
}

/// The lines that name the listeners and their addresses.
fn read_addresses(output: &str) -> Option<Addresses> {
    let address = |listener: &str| {
        let start = format!("tracejoin: {listener} listening on ");
        output.lines().find_map(|line| line.strip_prefix(&start)).and_then(|address| address.parse().ok())
    };
    Some(Addresses { otlp_grpc: address("otlp-grpc")?, otlp_http: address("otlp-http")?, http: address("http")? })
}
