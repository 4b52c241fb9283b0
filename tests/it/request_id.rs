//! Joining by a request id where a proxy replaced the trace id: the same result in every order of arrival, and nothing
//! where the id is not one request's alone.

use serde_json::{Value, json};

use crate::common::Server;
use crate::expectation::differences;

fn fresh_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

fn wants(wanted: Value) -> impl Fn(&Value) -> Vec<String> {
    move |answer| differences(&wanted, answer)
}

/// A gateway's entry span of 100 ms with 60 ms of generation, under a trace id that the client does not know.
fn spans(trace_id: &str, request_id: &str) -> [Value; 2] {
    let span = |id: &str, parent: &str, name: &str, kind: u8, start: u64, length: u64| {
        json!({"traceId": trace_id, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
               "startTimeUnixNano": (start * 1_000_000).to_string(),
               "endTimeUnixNano": ((start + length) * 1_000_000).to_string()})
    };
    let mut entry = span("00000000000000a1", "", "POST /v1/chat/completions", 2, 1_000, 100);
    entry["attributes"] = json!([{"key": "http.request.header.x_request_id", "value": {"stringValue": request_id}}]);
    let inner = span("00000000000000a2", "00000000000000a1", "inference.generate", 3, 1_020, 60);
    let service = json!([{"key": "service.name", "value": {"stringValue": "gateway"}}]);
    [entry, inner].map(
        |span| json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [span]}]}]}),
    )
}

fn record(trace_id: &str, request_id: &str, run: &str) -> Value {
    json!([{"trace_id": trace_id, "request_id": request_id, "duration_ms": 130, "status": 200, "run": run}])
}

fn joined(client: &str, server: &str) -> Value {
    json!({"state": "matched", "trace_id": client, "server_trace_id": server, "join_method": "request_id",
           "phases": {"network_envelope_ms": 30, "generation_ms": 60, "unattributed_ms": 40}, "span_count": 2})
}

/// One thing that arrives.
enum Step {
    Record,
    Spans(usize),
    /// Until everything that came before has been joined, orphans included.
    Settle,
}

/// Waits until nothing of a run is pending any more and all its records are counted.
async fn settle(server: &Server, path: &str, state: &str) {
    server.wait_for(path, wants(json!({"state": state}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_and_server_meet_in_every_order() {
    use Step::{Record, Settle, Spans};
    let server = Server::start().await;
    let orders: [&[Step]; 7] = [
        &[Record, Spans(0), Spans(1)],
        &[Spans(0), Spans(1), Record],
        &[Spans(1), Record, Spans(0)],
        &[Record, Settle, Spans(0), Spans(1)],
        &[Spans(0), Spans(1), Settle, Record],
        &[Spans(0), Settle, Record, Settle, Spans(1)],
        &[Spans(1), Spans(0), Record, Settle, Record, Spans(0)],
    ];
    let requests: Vec<[String; 3]> = orders.iter().map(|_| [fresh_id(), fresh_id(), fresh_id()]).collect();
    let one = async |steps: &[Step], [client, there, request_id]: &[String; 3]| {
        let (mut has_record, mut has_spans) = (false, false);
        for step in steps {
            match step {
                Record => {
                    server.upload(&record(client, request_id, "orders")).await;
                    has_record = true;
                }
                Spans(which) => {
                    server.export(&spans(there, request_id)[*which]).await;
                    has_spans = true;
                }
                Settle => {
                    let state = match (has_record, has_spans) {
                        (true, true) => "matched",
                        (true, false) => "client_only",
                        _ => "server_only",
                    };
                    let trace_id = if has_record { client } else { there };
                    settle(&server, &format!("/api/v1/traces/{trace_id}"), state).await;
                }
            }
        }
    };
    let running = orders.iter().zip(&requests).map(|(steps, ids)| one(steps, ids));
    futures::future::join_all(running).await;
    for [client, there, _] in &requests {
        // The server's trace shows the same request.
        for trace_id in [client, there] {
            server.wait_for(&format!("/api/v1/traces/{trace_id}"), wants(joined(client, there))).await;
        }
    }
    let all = json!({"unsettled_records": 0,
                     "coverage": {"client_records": 7, "matched": 7, "server_requests": 7, "server_only": 0,
                                  "pending": 0, "joined_by": {"trace_id": 0, "request_id": 7}}});
    server.wait_for("/api/v1/phases?from=-1h", wants(all)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_several_carry_joins_nobody() {
    let server = Server::start().await;
    let [first, second, there, request_id] = [(); 4].map(|()| fresh_id());
    for part in spans(&there, &request_id) {
        server.export(&part).await;
    }
    server.upload(&record(&first, &request_id, "several")).await;
    server.wait_for(&format!("/api/v1/traces/{first}"), wants(joined(&first, &there))).await;

    // A second record of the id: the first lets go, and the server's part is a request of its own again.
    server.upload(&record(&second, &request_id, "several")).await;
    let alone = json!({"state": "client_only", "flags_include": ["request_id_ambiguous"], "join_method": "trace_id"});
    for trace_id in [&first, &second] {
        server.wait_for(&format!("/api/v1/traces/{trace_id}"), wants(alone.clone())).await;
    }
    let lone = json!({"state": "server_only", "trace_id": there});
    server.wait_for(&format!("/api/v1/traces/{there}"), wants(lone)).await;
    let all = json!({"coverage": {"client_records": 2, "client_only": 2, "server_only": 1, "pending": 0,
                                  "joined_by": {"trace_id": 0, "request_id": 0}}});
    server.wait_for("/api/v1/phases?from=-1h", wants(all)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_by_trace_id_goes_before_one_by_request_id() {
    let server = Server::start().await;
    let [client, there, request_id] = [(); 3].map(|()| fresh_id());
    for part in spans(&there, &request_id) {
        server.export(&part).await;
    }
    server.upload(&record(&client, &request_id, "first")).await;
    server.wait_for(&format!("/api/v1/traces/{client}"), wants(joined(&client, &there))).await;

    // The server's trace gets a record of its own.
    server.upload(&json!([{"trace_id": there, "duration_ms": 120, "status": 200}])).await;
    let own = json!({"state": "matched", "trace_id": there, "join_method": "trace_id",
                     "phases": {"network_envelope_ms": 20}});
    server.wait_for(&format!("/api/v1/traces/{there}"), wants(own)).await;
    let alone = json!({"state": "client_only", "flags_exclude": ["request_id_ambiguous"], "flags_include": ["late"]});
    server.wait_for(&format!("/api/v1/traces/{client}"), wants(alone)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_tells_no_trace_is_joined_by_its_request_id() {
    let server = Server::start().await;
    for spans_first in [true, false] {
        let (there, request_id) = (fresh_id(), fresh_id());
        let upload = json!([{"request_id": request_id, "duration_ms": 130, "status": 200}]);
        if !spans_first {
            server.upload(&upload).await;
        }
        for part in spans(&there, &request_id) {
            server.export(&part).await;
        }
        if spans_first {
            server.upload(&upload).await;
        }
        let wanted = json!({"state": "matched", "server_trace_id": there, "join_method": "request_id",
                            "request_id": request_id, "flags_include": ["trace_id_unknown"],
                            "phases": {"network_envelope_ms": 30}});
        server.wait_for(&format!("/api/v1/traces/{there}"), wants(wanted)).await;
    }
    let all = json!({"unsettled_records": 0,
                     "coverage": {"matched": 2, "server_only": 0, "joined_by": {"request_id": 2}}});
    server.wait_for("/api/v1/phases?from=-1h", wants(all)).await;
}

/// The spans of [`spans`], and on the inner one a second request id.
fn spans_with_two_ids(trace_id: &str, outer: &str, inner: &str) -> Value {
    let [mut entry, mut below] = spans(trace_id, outer);
    let span = &mut below["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    span["attributes"] = json!([{"key": "gen_ai.response.id", "value": {"stringValue": inner}}]);
    let list = entry["resourceSpans"].as_array_mut().expect("a list");
    list.append(below["resourceSpans"].as_array_mut().expect("a list"));
    entry
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_two_records_claim_by_two_ids_is_nobodys() {
    let server = Server::start().await;
    let mut told = Vec::new();
    // What comes first and is joined before the rest comes: the spans and one record, both records, the spans; and in
    // the last the second record does not tell its trace.
    for (spans_at, second_at, has_trace) in [(0, 1, true), (1, 0, true), (0, 0, true), (0, 1, false), (1, 0, false)] {
        let [first, second, there, outer, inner] = [(); 5].map(|()| fresh_id());
        for round in 0..2 {
            if round == 0 {
                server.upload(&record(&first, &outer, "two")).await;
            }
            if round == spans_at {
                server.export(&spans_with_two_ids(&there, &outer, &inner)).await;
            }
            if round == second_at {
                let mut upload = record(&second, &inner, "two");
                if !has_trace {
                    upload[0]["trace_id"] = Value::Null;
                }
                server.upload(&upload).await;
            }
            if round == 0 && second_at == 1 {
                server.wait_for(&format!("/api/v1/traces/{first}"), wants(joined(&first, &there))).await;
            } else if round == 0 && spans_at == 1 {
                server.wait_for(&format!("/api/v1/traces/{first}"), wants(json!({"state": "client_only"}))).await;
            }
        }
        told.push((first, there));
    }
    let alone = json!({"state": "client_only", "flags_include": ["request_id_ambiguous"], "join_method": "trace_id"});
    for (first, there) in &told {
        server.wait_for(&format!("/api/v1/traces/{first}"), wants(alone.clone())).await;
        server.wait_for(&format!("/api/v1/traces/{there}"), wants(json!({"state": "server_only"}))).await;
    }
    let all = json!({"unsettled_records": 0,
                     "coverage": {"client_records": 10, "client_only": 10, "matched": 0, "server_requests": 5,
                                  "server_only": 5, "pending": 0}});
    server.wait_for("/api/v1/phases?from=-1h", wants(all)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_joins_nobody() {
    let server = Server::start().await;
    let [client, there] = [(); 2].map(|()| fresh_id());
    for part in spans(&there, "-") {
        server.export(&part).await;
    }
    server.upload(&record(&client, "-", "placeholder")).await;
    let body = json!({"request_id": "null", "duration_ms": 1}).to_string();
    let (status, text) = server.post(format!("{}/api/v1/records", server.http), "application/json", body).await;
    assert_eq!((status, text.contains("trace_id")), (400, true), "{text}");
    let alone = json!({"state": "client_only", "flags_exclude": ["request_id_ambiguous"]});
    server.wait_for(&format!("/api/v1/traces/{client}"), wants(alone)).await;
    server.wait_for(&format!("/api/v1/traces/{there}"), wants(json!({"state": "server_only"}))).await;
}
