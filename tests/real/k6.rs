//! A real k6 with the client library, and the script that its README prints.

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
    written: Written,
    patience: Duration,
}

/// What k6 wrote.
pub struct Written {
    /// Its measurements, by `--out json`.
    pub measurements: PathBuf,
    /// The client records of the library, by the console.
    pub records: PathBuf,
}

impl Load<'_> {
    pub fn start(&self, scratch: &Scratch) -> Running {
        let duration = format!("{}s", self.duration.as_secs());
        let body = format!("BODY={}", self.body);
        let args = ["--vus", &self.users.to_string(), "--duration", &duration, "-e", &body];
        let mut running = start(scratch, self.name, &source("clients/k6/example.js"), &self.url, self.run, &args);
        running.patience += self.duration;
        running
    }
}

/// Starts a script; the library writes its records to the console too.
pub fn start(scratch: &Scratch, name: &str, script: &Path, url: &str, run: &str, args: &[&str]) -> Running {
    let measurements = scratch.join(&format!("{name}.json"));
    let records = scratch.join(&format!("{name}.ndjson"));
    let mut command = Command::new(prepared("venv/bin/k6"));
    command.args(["run", "--quiet", "--no-usage-report", "--no-summary", "--address", "127.0.0.1:0"]);
    command.args(["-e", &format!("URL={url}"), "-e", &format!("RUN={run}")]);
    command.args(["-e", "TRACEJOIN_RECORDS=console", "--log-format", "raw", "--console-output"]).arg(&records);
    command.arg("--out").arg(format!("json={}", measurements.display())).args(args).arg(script);
    let process = Process::spawn(scratch, name, &mut command);
    Running { process, written: Written { measurements, records }, patience: Duration::from_secs(60) }
}

impl Running {
    /// Waits for the end of the load.
    pub async fn finish(mut self) -> Written {
        let status = self.process.wait(self.patience).await;
        assert!(status.success(), "k6 failed ({status}):\n{}", self.process.log_tail());
        self.written
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
