//! A real Prometheus.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::alertmanager::listening;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::program;

const START: Duration = Duration::from_secs(30);

pub struct Prometheus {
    address: SocketAddr,
    _process: Process,
}

impl Prometheus {
    /// The configuration may name files of the scratch folder without their path.
    pub async fn start(scratch: &Scratch, configuration: &str) -> Self {
        let file = scratch.join("prometheus.yml");
        fs::write(&file, configuration).expect("written");
        promtool(&["check", "config"], &file);
        let mut command = Command::new(program(&["prometheus"]));
        command.arg("--config.file").arg(file).arg("--storage.tsdb.path").arg(scratch.join("prometheus"));
        command.args(["--web.listen-address=127.0.0.1:0", "--enable-feature=exemplar-storage"]);
        let mut process = Process::spawn(scratch, "prometheus", &mut command);
        let address = process.wait_for_log(START, listening).await;
        Self { address, _process: process }
    }

    /// What its API answers, without the envelope.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut url: reqwest::Url = format!("http://{}/api/v1/{path}", self.address).parse().expect("a URL");
        url.query_pairs_mut().extend_pairs(query);
        let answer: Value = reqwest::get(url).await.expect("it answers").json().await.expect("JSON");
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// The values of an instant query, each with its labels.
    pub async fn query(&self, expression: &str) -> Vec<Value> {
        self.get("query", &[("query", expression)]).await["result"].as_array().cloned().unwrap_or_default()
    }
}

/// Runs a check of promtool's on a file.
pub fn promtool(check: &[&str], file: &Path) {
    let output = Command::new(program(&["promtool"])).args(check).arg(file).output().expect("promtool runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {check:?}: {}", String::from_utf8_lossy(&said));
}
