//! A real k6 with the script that the README prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::{prepared, source};

/// One k6 run.
pub struct Load<'a> {
    /// Names its files.
    pub name: &'a str,
    /// The gateway's completions.
    pub url: String,
    /// The label of the test run in each record.
    pub run: &'a str,
    pub users: usize,
    pub duration: Duration,
    /// The body of each request.
    pub body: Value,
}

/// A k6 that is running.
pub struct Running {
    process: Process,
    records: PathBuf,
    duration: Duration,
}

impl Load<'_> {
    pub fn start(&self, scratch: &Scratch) -> Running {
        let records = scratch.join(&format!("{}.ndjson", self.name));
        let mut command = Command::new(prepared("venv/bin/k6"));
        command.args(["run", "--quiet", "--no-usage-report", "--no-summary", "--address", "127.0.0.1:0"]);
        command.args(["--vus", &self.users.to_string(), "--duration", &format!("{}s", self.duration.as_secs())]);
        command.args(["-e", &format!("URL={}", self.url), "-e", &format!("RUN={}", self.run)]);
        command.args(["-e", &format!("BODY={}", self.body)]);
        command.args(["--log-format", "raw", "--console-output"]).arg(&records);
        command.arg(source("docs/k6-records.js"));
        let process = Process::spawn(scratch, self.name, &mut command);
        Running { process, records, duration: self.duration }
    }
}

impl Running {
    /// Waits for the end of the load and returns the file of client records.
    pub async fn finish(mut self) -> PathBuf {
        let status = self.process.wait(self.duration + Duration::from_secs(60)).await;
        assert!(status.success(), "k6 failed ({status}):\n{}", self.process.log_tail());
        self.records
    }
}

/// The records that k6 wrote.
pub fn read_records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("k6 wrote its records");
    text.lines().map(|line| serde_json::from_str(line).expect("a record a line")).collect()
}

/// The trace id of a record.
pub fn trace_id(record: &Value) -> &str {
    record["trace_id"].as_str().expect("a record has a trace id")
}
