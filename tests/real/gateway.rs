//! The Python gateway under the OpenTelemetry SDK.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::network::Network;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::{prepared, source};

/// What the gateway measured of one request with its own monotonic clock.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    pub gateway_ns: u64,
    pub gpu_queue_ns: u64,
    pub generation_ns: u64,
    pub total_ns: u64,
    /// To the first token written; only of streamed answers.
    pub ttft_ns: Option<u64>,
}

pub struct Gateway {
    base: String,
    client: Client,
    network: Network,
    _process: Process,
}

impl Gateway {
    /// Starts it with spans going to `otlp`, an OTLP/gRPC address.
    pub async fn start(scratch: &Scratch, name: &str, otlp: &str) -> Self {
        let mut command = Command::new(prepared("venv/bin/python"));
        command
            .arg(source("tests/real/gateway/gateway.py"))
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{otlp}"))
            .env("OTEL_BSP_SCHEDULE_DELAY", "500");
        let mut process = Process::spawn(scratch, name, &mut command);
        let ready = |output: &str| Some(output.trim().strip_prefix("gateway listening on ")?.to_owned());
        let base = process.wait_for_output(Duration::from_secs(30), ready).await;
        let address = base.strip_prefix("http://").and_then(|address| address.parse().ok());
        let network = Network::to(address.expect("the gateway prints its address")).await;
        Self { base, client: Client::new(), network, _process: process }
    }

    /// Where k6 sends its requests: beyond the network.
    pub fn completions(&self) -> String {
        format!("http://{}/v1/chat/completions", self.network.address)
    }

    /// Resizes the GPU queue; call it while no request is running.
    pub async fn resize(&self, slots: usize) {
        let answer = self.client.put(format!("{}/slots", self.base)).json(&json!({ "slots": slots })).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        answer.expect("the gateway resizes its queue");
    }

    /// By trace id.
    pub async fn measured(&self) -> HashMap<String, Measured> {
        let answer = self.client.get(format!("{}/measured", self.base)).send().await.expect("the gateway answers");
        answer.json().await.expect("measurements by trace id")
    }

    /// Has the SDK export all that it holds.
    pub async fn flush(&self) {
        let answer = self.client.post(format!("{}/flush", self.base)).send().await.expect("the gateway answers");
        let answer: Value = answer.json().await.expect("an object");
        assert_eq!(answer["flushed"], true, "the SDK could not export its spans");
    }
}
