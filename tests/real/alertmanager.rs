//! A real Alertmanager.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::program;

const START: Duration = Duration::from_secs(30);

pub struct Alertmanager {
    address: SocketAddr,
    _process: Process,
}

/// An alert as its API shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct Alert {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl Alertmanager {
    pub async fn start(scratch: &Scratch, configuration: &str) -> Self {
        let file = scratch.join("alertmanager.yml");
        fs::write(&file, configuration).expect("written");
        let mut command = Command::new(program(&["alertmanager", "prometheus-alertmanager"]));
        command.arg("--config.file").arg(file).arg("--storage.path").arg(scratch.join("alertmanager"));
        // One of its own; an empty address of the cluster turns the search for others off.
        command.args(["--web.listen-address=127.0.0.1:0", "--cluster.listen-address="]);
        let mut process = Process::spawn(scratch, "alertmanager", &mut command);
        let address = process.wait_for_log(START, listening).await;
        Self { address, _process: process }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Those that fire.
    pub async fn alerts(&self) -> Vec<Alert> {
        let answer = reqwest::get(format!("{}/api/v2/alerts?active=true", self.url())).await.expect("it answers");
        answer.json().await.expect("a list of alerts")
    }
}

/// Where a program of Prometheus says that it listens.
pub fn listening(log: &str) -> Option<SocketAddr> {
    let line = log.lines().find(|line| line.contains("msg=\"Listening on\""))?;
    line.rsplit_once("address=")?.1.trim().parse().ok()
}
