//! The built binary, serving from a database of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::TestDatabase;

/// How long anything that the tests wait for may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running `tracejoin serve`; killed with the value.
pub struct Server {
    pub http: String,
    pub otlp_grpc: String,
    pub otlp_http: String,
    client: reqwest::Client,
    child: Child,
    database: Arc<TestDatabase>,
}

impl Server {
    /// Starts with short waiting times on ports of its own.
    pub async fn start() -> Self {
        Self::started(&[]).await
    }

    /// Starts with more arguments.
    pub async fn started(more: &[&str]) -> Self {
        Self::on(Arc::new(super::test_database().await), more).await
    }

    /// A second instance on the same database.
    pub async fn twin(&self) -> Self {
        Self::on(Arc::clone(&self.database), &[]).await
    }

    /// Starts on a database that may hold something already.
    pub async fn on(database: Arc<TestDatabase>, more: &[&str]) -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Ends with the test process, however that ends.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_tracejoin")])
            .args(["serve", "--settle", "1s", "--join-deadline", "5s", "--stream-quiet", "2s"])
            .args(["--otlp-grpc-addr", "127.0.0.1:0", "--otlp-http-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"])
            .args(more)
            .env("DATABASE_URL", &database.url)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = child.stdout.take().expect("its output");
        // The pipe is closed before the last line is written: a server outlives the reader of its addresses.
        let addresses = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let listening = lines.filter_map(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
            listening.take(3).collect::<Vec<String>>()
        });
        let addresses = addresses.await.expect("read");
        let [grpc, otlp, http] = addresses.as_slice() else { panic!("three listeners, not {addresses:?}") };
        let url = |address: &String| format!("http://{address}");
        let client = reqwest::Client::new();
        Self { http: url(http), otlp_grpc: url(grpc), otlp_http: url(otlp), client, child, database }
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// Posts a body and returns status and answer.
    pub async fn post(&self, url: String, content_type: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
        let request = self.client.post(url).header("content-type", content_type).body(body);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    /// Puts a body in the place of a resource and returns status and answer.
    pub async fn put(&self, path: &str, content_type: &str, body: &str) -> (u16, Value) {
        let request = self.client.put(format!("{}{path}", self.http)).header("content-type", content_type);
        let answer = request.body(body.to_owned()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or(Value::Null))
    }

    /// Deletes a resource and returns status and answer.
    pub async fn delete(&self, path: &str) -> (u16, Value) {
        let answer = self.client.delete(format!("{}{path}", self.http)).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or(Value::Null))
    }

    /// Sends spans as OTLP/JSON, all of which must be taken.
    pub async fn export(&self, request: &Value) {
        let (status, text) =
            self.post(format!("{}/v1/traces", self.otlp_http), "application/json", request.to_string()).await;
        assert_eq!((status, text.contains("partialSuccess")), (200, false), "{text}");
    }

    /// Uploads client records and returns the answer.
    pub async fn upload(&self, records: &Value) -> Value {
        let (status, text) =
            self.post(format!("{}/api/v1/records", self.http), "application/json", records.to_string()).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Uploads lines of event logs, all of which must be taken, and returns the answer.
    pub async fn log(&self, events: &[Value]) -> Value {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let (status, text) = self.post(format!("{}/api/v1/events", self.http), "application/x-ndjson", lines).await;
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((status, answer["rejected"].as_array().map(Vec::len)), (200, Some(0)), "{text}");
        answer
    }

    /// Asks for JSON; the status comes first.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.client.get(format!("{}{path}", self.http)).send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }

    /// Asks for text, which must be given.
    pub async fn text(&self, path: &str) -> String {
        self.text_as(path, "*/*").await
    }

    /// Asks for text of a media type, which must be given.
    pub async fn text_as(&self, path: &str, accept: &str) -> String {
        let request = self.client.get(format!("{}{path}", self.http)).header("accept", accept);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success());
        answer.text().await.expect("a body")
    }

    /// Asks until the answer satisfies a check that returns its faults, or patience ends.
    pub async fn wait_for(&self, path: &str, faults: impl Fn(&Value) -> Vec<String>) {
        let end = Instant::now() + PATIENCE;
        loop {
            let (status, answer) = self.get(path).await;
            let found = faults(&answer);
            if status == 200 && found.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "GET {path}: {status} {found:#?}\n{answer:#}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
