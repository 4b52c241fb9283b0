//! The client library for k6 under a real k6: every kind of call is joined, and the records that the script uploads are
//! those that `import k6` makes of k6's own measurements.

use std::time::Duration;

use serde_json::json;

use crate::gateway::Gateway;
use crate::k6::{read_records, start, trace_id};
use crate::scratch::Scratch;
use crate::setup::{source, take_turn};
use crate::tracejoin::{Store, Tracejoin, is_joined, joined};

/// Six iterations of four requests.
const REQUESTS: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_joined_whichever_way_it_is_told() {
    let _turn = take_turn().await;
    let scratch = Scratch::new();
    let tracejoin = Tracejoin::start(&scratch, Store::Private).await;
    let gateway = Gateway::start(&scratch, "gateway", &tracejoin.addresses.otlp_grpc.to_string()).await;

    let script = source("tests/real/k6/client.js");
    let completions = gateway.completions();
    let imported = start(&scratch, "k6-console", &script, &completions, "console", &[]).finish().await;
    let upload = format!("TRACEJOIN_URL={}", tracejoin.url(""));
    let args = ["-e", &*upload, "-e", "TRACEJOIN_RECORDS=upload"];
    let uploaded = start(&scratch, "k6-upload", &script, &completions, "upload", &args).finish().await;
    gateway.flush().await;

    let tally = tracejoin.import("k6", &imported.measurements);
    assert_eq!((&tally["read"], &tally["accepted"]), (&json!(REQUESTS), &json!(REQUESTS)), "{tally}");
    let tally = tracejoin.import("k6", &imported.records);
    assert_eq!(tally["duplicates"], json!(REQUESTS), "the console tells the same: {tally}");
    // k6 measures the uploads too, one an iteration.
    let tally = tracejoin.import("k6", &uploaded.measurements);
    assert_eq!((&tally["read"], &tally["duplicates"]), (&json!(REQUESTS + 6), &json!(REQUESTS)), "{tally}");

    let coverage = tracejoin.wait_until_joined(2 * REQUESTS, Duration::from_secs(30)).await;
    assert_eq!((&coverage["client_records"], joined(&coverage)), (&json!(2 * REQUESTS), 2 * REQUESTS), "{coverage}");
    for record in read_records(&imported.records) {
        let request = tracejoin.trace(trace_id(&record)).await;
        assert!(is_joined(&request), "{request}");
        assert_eq!(request["client"]["duration_ms"], record["duration_ms"], "{request}");
    }
}
