//! Event logs over the whole way: in one upload or many, in any order, while the request runs and after it.

use serde_json::{Value, json};

use crate::common::Server;
use crate::expectation::differences;

pub fn fresh_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

pub fn wants(wanted: Value) -> impl Fn(&Value) -> Vec<String> {
    move |answer| differences(&wanted, answer)
}

/// The lines of case `event-log`; only the first tells the trace.
pub fn log(trace_id: &str, request_id: &str) -> Vec<Value> {
    let line = |seq: u32, kind: &str, at: f64, tokens: u32, batch: u32| {
        json!({"request_id": request_id, "event_seq": seq, "event_type": kind, "client_time_ms": at,
               "token_count": tokens, "batch": batch, "extra": {"text": "never stored"}})
    };
    let mut lines = vec![
        line(1, "connect", 1000.0, 0, 0),
        line(2, "business", 2100.3, 12, 0),
        line(3, "business", 2155.2, 7, 0),
        line(4, "business", 2290.7, 9, 1),
    ];
    lines[0]["trace_id"] = json!(trace_id);
    lines
}

pub fn done(request_id: &str) -> Value {
    json!({"request_id": request_id, "event_seq": 5, "event_type": "done", "client_time_ms": 2300.0})
}

pub fn truncated() -> Value {
    json!({"result": "truncated", "completeness": "no_end", "output_tokens": 28,
           "client": {"ttft_ms": 1100.3, "duration_ms": 1290.7},
           "stream": {"business_events": 3, "batched_events": 1, "max_gap_ms": 135.5, "p50_gap_ms": 54.9,
                      "done_received": false, "last_seq": 4, "missing_seq": 0},
           "rates": {"rate_e2e": 21.6937, "rate_stream": 141.8067, "rate_after_first": 84.0336}})
}

pub fn whole() -> Value {
    json!({"result": "ok", "completeness": "ok", "output_tokens": 28, "state": "client_only",
           "client": {"ttft_ms": 1100.3, "duration_ms": 1300.0}, "stream": {"done_received": true, "last_seq": 5}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_the_same_however_it_is_split_ordered_and_repeated() {
    let server = Server::start().await;
    let mut paths = Vec::new();
    for (number, reversed) in [(0, false), (1, false), (2, true), (3, true)] {
        let (trace_id, request_id) = (fresh_id(), fresh_id());
        let mut lines = log(&trace_id, &request_id);
        if reversed {
            lines.reverse();
        }
        if number % 2 == 0 {
            server.log(&lines).await;
        } else {
            for line in lines.chunks(1) {
                server.log(line).await;
            }
        }
        let again = server.log(&lines[2..]).await;
        assert_eq!(again["accepted"].as_u64().zip(again["duplicates"].as_u64()).map(|(a, d)| a + d), Some(2));
        paths.push(format!("/api/v1/traces/{trace_id}"));
    }
    for path in paths {
        let mut wanted = truncated();
        wanted["state"] = json!("client_only");
        wanted["flags_exclude"] = json!(["trace_id_unknown", "trace_id_collision"]);
        server.wait_for(&path, wants(wanted)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_again_is_counted_as_a_duplicate() {
    let server = Server::start().await;
    let lines = log(&fresh_id(), &fresh_id());
    let first = server.log(&lines).await;
    assert_eq!((&first["accepted"], &first["duplicates"]), (&json!(4), &json!(0)));
    let again = server.log(&lines).await;
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(4)));
    let body = format!("{}\nnot JSON\n{}\n", done(&fresh_id()), json!({"request_id": "r", "event_type": "token"}));
    let (status, text) = server.post(format!("{}/api/v1/events", server.http), "application/x-ndjson", body).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &answer["accepted"], &answer["rejected"][0]["index"]), (200, &json!(1), &json!(1)));
    assert_eq!(answer["rejected"][1]["field"], "event_type");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_log_waits_is_closed_and_is_opened_again() {
    let server = Server::start().await;
    let (trace_id, request_id) = (fresh_id(), fresh_id());
    let path = format!("/api/v1/traces/{trace_id}");
    let lines = log(&trace_id, &request_id);
    server.log(&lines[..2]).await;
    assert_eq!(server.get(&path).await.1["state"], "pending");
    server.log(&lines[2..]).await;
    let mut closed = truncated();
    closed["state"] = json!("client_only");
    closed["revision"] = json!(1);
    server.wait_for(&path, wants(closed)).await;

    server.log(&[done(&request_id)]).await;
    let mut reopened = whole();
    reopened["flags_include"] = json!(["late"]);
    server.wait_for(&path, wants(reopened)).await;
}

/// Silent, then suspected to hang, then gone on, silent again, closed, opened by a late line, and finished: each by what
/// `GET /api/v1/traces/{id}` says of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_log_goes_through_all_its_states() {
    let server = Server::started(&["--stream-hang", "1s", "--stream-quiet", "4s"]).await;
    let (trace_id, request_id) = (fresh_id(), fresh_id());
    let path = format!("/api/v1/traces/{trace_id}");
    let pending = |flags: &str| wants(json!({"state": "pending", "result": null, flags: ["suspected_hang"]}));
    let lines = log(&trace_id, &request_id);
    server.log(&lines[..2]).await;
    server.wait_for(&path, pending("flags_include")).await;
    // The list, which is read from rows, shows it too.
    let listed = json!({"state": "pending", "trace_id": trace_id, "flags_include": ["suspected_hang"]});
    let list = "/api/v1/requests?from=-1h&result=all&order=-ttft_ms";
    server.wait_for(list, |answer| differences(&listed, &answer["requests"][0])).await;

    server.log(&lines[2..]).await;
    let mut closed = truncated();
    closed["state"] = json!("client_only");
    closed["flags_exclude"] = json!(["suspected_hang"]);
    // The answer is joined anew for each question; only a row that was written can be changed late.
    closed["revision"] = json!(1);
    server.wait_for(&path, wants(closed)).await;

    let mut late = lines[3].clone();
    (late["event_seq"], late["client_time_ms"]) = (json!(5), json!(3290.7));
    server.log(&[late]).await;
    server.wait_for(&path, wants(json!({"state": "pending", "result": null, "completeness": null}))).await;

    let mut end = done(&request_id);
    (end["event_seq"], end["client_time_ms"]) = (json!(6), json!(3300.0));
    server.log(&[end]).await;
    // One pause, between two tokens, was of a second.
    let finished = json!({"state": "client_only", "result": "ok", "completeness": "ok", "output_tokens": 37,
                          "flags_include": ["suspected_hang", "late"], "stream": {"max_gap_ms": 1000.0}});
    server.wait_for(&path, wants(finished)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_completes_the_record_of_its_trace_or_request() {
    let server = Server::start().await;
    let wanted = json!({"state": "client_only", "result": "ok", "output_tokens": 28, "request_id": null,
                        "client": {"duration_ms": 1400, "ttft_ms": 1100.3}, "stream": {"max_gap_ms": 135.5}});
    for log_first in [true, false] {
        for by_request in [true, false] {
            let (trace_id, request_id) = (fresh_id(), fresh_id());
            let mut record = json!({"trace_id": trace_id, "duration_ms": 1400, "status": 200});
            let mut lines = log(&trace_id, &request_id);
            lines.push(done(&request_id));
            if by_request {
                record["request_id"] = json!(request_id);
                lines.iter_mut().for_each(|line| line["trace_id"] = Value::Null);
            }
            if log_first {
                server.log(&lines).await;
            }
            server.upload(&json!([record])).await;
            if !log_first {
                server.log(&lines).await;
            }
            let mut wanted = wanted.clone();
            match by_request {
                true => wanted["request_id"] = json!(request_id),
                false => drop(wanted.as_object_mut().and_then(|wanted| wanted.remove("request_id"))),
            }
            server.wait_for(&format!("/api/v1/traces/{trace_id}"), wants(wanted)).await;
        }
    }
    // Each log was folded into a record: there are no requests beside the records'.
    let all = json!({"coverage": {"client_records": 4, "client_only": 4, "pending": 0}, "unsettled_records": 0});
    server.wait_for("/api/v1/phases?from=-1h", wants(all)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_never_tells_its_trace_is_a_request_of_its_own() {
    let server = Server::start().await;
    let request_id = fresh_id();
    let mut lines = log("", &request_id);
    lines[0]["trace_id"] = Value::Null;
    lines.push(done(&request_id));
    server.log(&lines).await;
    let path = "/api/v1/requests?from=-1h&order=-duration_ms";
    let listed = json!({"state": "client_only", "request_id": request_id, "flags_include": ["trace_id_unknown"]});
    server.wait_for(path, |answer| differences(&listed, &answer["requests"][0])).await;
    let (_, list) = server.get(path).await;
    let trace_id = list["requests"][0]["trace_id"].as_str().expect("the id that stands for the request id");
    server.wait_for(&format!("/api/v1/traces/{trace_id}"), wants(whole())).await;
}

/// Events in bursts of ten after 400 ms, or one every 40 ms.
fn paced(trace_id: &str, bursts: bool, whole: bool) -> Vec<Value> {
    let line = |seq: u32, kind: &str, at: f64| json!({"trace_id": trace_id, "event_seq": seq, "event_type": kind, "client_time_ms": at, "token_count": 2});
    let mut lines = vec![line(1, "connect", 1000.0)];
    for n in 0..60 {
        let wait = if bursts { f64::from(n / 10) * 400.0 + f64::from(n % 10) * 0.1 } else { f64::from(n) * 40.0 };
        lines.push(line(n + 2, "business", 1500.0 + wait));
    }
    if whole {
        lines.push(line(62, "done", 4000.0));
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buffer_on_the_way_is_seen_in_one_request_and_beside_the_percentiles_of_many() {
    let server = Server::start().await;
    let (buffered, steady, cut) = (fresh_id(), fresh_id(), fresh_id());
    for (trace_id, bursts, whole) in [(&buffered, true, true), (&steady, false, true), (&cut, false, false)] {
        server.log(&paced(trace_id, bursts, whole)).await;
    }
    let evidence = json!({"state": "client_only", "flags": ["suspected_buffering"],
                          "stream": {"buffered_events": 60, "buffered_share": 1.0, "buffer_burst": 10}});
    server.wait_for(&format!("/api/v1/traces/{buffered}"), wants(evidence)).await;
    let none =
        json!({"state": "client_only", "flags_exclude": ["suspected_buffering"], "stream": {"buffered_events": 0}});
    server.wait_for(&format!("/api/v1/traces/{steady}"), wants(none)).await;
    server.wait_for(&format!("/api/v1/traces/{cut}"), wants(json!({"state": "client_only"}))).await;

    let path = "/api/v1/phases?from=-1h&group_by=streaming";
    let settled = |answer: &Value| match answer["groups"][0]["completeness"]["n"].as_u64() {
        Some(3) => Vec::new(),
        n => vec![format!("{n:?} of 3 requests are joined")],
    };
    server.wait_for(path, settled).await;
    let (_, answer) = server.get(path).await;
    let group = &answer["groups"][0];
    assert_eq!(group["dimensions"], json!({"streaming": "true"}), "{answer}");
    assert_eq!(group["buffering"], json!({"n": 2, "suspected": 1, "share": 0.5, "not_judged": 0}));
    let classes = json!({"n": 3, "ok": 2, "no_end": 1, "missing": 0, "both": 0, "not_told": 0});
    assert_eq!(group["completeness"], classes, "what was cut off counts");
    assert_eq!(group["stream"]["max_gap"]["n"], 2);
    assert_eq!(group["stream"]["max_gap"]["max_ms"], json!(399.1));
    let throughput = &group["throughput"];
    assert_eq!((&throughput["output_tokens"], &throughput["n"]), (&json!(360), &json!(3)));
    assert_eq!(throughput["output_tokens_per_second_window"], json!(0.1));
    let (_, listed) = server.get("/api/v1/requests?from=-1h&order=-max_gap_ms&limit=1").await;
    assert_eq!(listed["requests"][0]["trace_id"], json!(buffered));
}
