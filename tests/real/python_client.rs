//! The Python client with the libraries that it is for, and its records joined with the gateway's spans.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::gateway::Gateway;
use crate::network::ONE_WAY;
use crate::scratch::Scratch;
use crate::setup::{prepared, source, take_turn};
use crate::tracejoin::{Store, Tracejoin, is_joined};

const REQUESTS: usize = 20;

fn python() -> Command {
    let mut command = Command::new(prepared("venv/bin/python"));
    command.arg("-B").env("PYTHONPATH", source("clients/python"));
    command
}

async fn finished(mut command: Command) -> Output {
    let run = tokio::task::spawn_blocking(move || command.output());
    let output = run.await.expect("waited").expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reads_the_streams_of_every_library() {
    let _turn = take_turn().await;
    let mut command = python();
    command.args(["-m", "unittest", "discover", "-s", "tests", "-t", "."]);
    command.current_dir(source("clients/python")).env("TRACEJOIN_TEST_ALL", "1");
    let told = String::from_utf8_lossy(&finished(command).await.stderr).into_owned();
    assert!(!told.contains("skipped"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_records_are_joined_and_show_the_network() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let gateway = Gateway::start(&scratch, "gateway", &tracejoin.addresses.otlp_grpc.to_string()).await;
    let mut command = python();
    command.arg(source("tests/real/python/drive.py")).arg(gateway.completions());
    command.arg(tracejoin.url("")).arg(REQUESTS.to_string());
    let driven: Value = serde_json::from_slice(&finished(command).await.stdout).expect("one object");
    assert_eq!((&driven["accepted"], &driven["dropped"]), (&REQUESTS.into(), &0.into()), "{driven}");

    gateway.flush().await;
    tracejoin.wait_until_joined(REQUESTS, Duration::from_secs(30)).await;
    let mut envelopes: [Vec<f64>; 2] = Default::default();
    for trace in driven["traces"].as_array().expect("trace ids") {
        let request = tracejoin.trace(trace.as_str().expect("a text")).await;
        assert!(is_joined(&request) && request["result"] == "ok", "{request}");
        let told = [&request["phases"]["network_envelope_ms"], &request["ttft"]["envelope_ms"]];
        for (envelopes, told) in envelopes.iter_mut().zip(told) {
            envelopes.extend(told.as_f64());
        }
        assert_eq!(request["stream"]["business_events"], 5, "{request}");
        assert!(request["client"]["setup_ms"].is_number(), "{request}");
    }
    for mut envelopes in envelopes {
        envelopes.sort_by(f64::total_cmp);
        let middle = envelopes[envelopes.len() / 2];
        assert!(middle >= 2.0 * ONE_WAY.as_secs_f64() * 1e3, "the network takes {middle} ms of half of the requests");
    }
}
