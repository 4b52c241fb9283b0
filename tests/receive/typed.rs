//! Client records over gRPC.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use normalise::{ClientRecordBody, SetupBody, StreamBody};
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;
use tracejoin::receive::budget::Budget;
use tracejoin::receive::intake::{RecordOutcome, Refusal, RejectedRecord};
use tracejoin::receive::limits::Limits;
use tracejoin::receive::records::{RecordEndpoint, router};

use super::fake::{Endpoint, FakeIntake, gzip, overloaded, start, unavailable, zstd};
use super::raw_grpc::{frame, refused};
use super::typed_client::{EXPORT, descriptor, export, export_compressed, request};

const MIB: usize = 1024 * 1024;

/// A record with every field of the protocol.
fn whole() -> Value {
    json!({
        "trace_id": "0000000000000007000000000000012f", "span_id": "00000000006acfc0",
        "traceparent": "00-0000000000000007000000000000012f-00000000006acfc0-01", "request_id": "req_0001",
        "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 1842.5, "wall_ms": 1846.2,
        "setup": {"blocked_ms": 0.1, "dns_ms": 0, "connect_ms": 0.4, "tls_ms": 3.2},
        "client_queue_ms": 0, "headers_ms": 12, "sending_ms": 0.1, "waiting_ms": 11.9, "receiving_ms": 1830.5,
        "ttft_ms": 652, "ttft_visible_ms": 900, "headers_only": false, "streaming": true, "status": 200,
        "result": "ok", "error": "none", "input_tokens": 412, "output_tokens": 180,
        "stream": {
            "business_events": 180, "batched_events": 3, "p50_gap_ms": 6, "p95_gap_ms": 11, "p99_gap_ms": 15,
            "max_gap_ms": 40, "gaps_over_1s": 0, "done_received": true, "last_seq": 181, "missing_seq": 0,
            "last_event_ms": 1840, "tokens_after_first": 179, "completeness": "ok",
            "buffered_events": 0, "buffer_silence_ms": 400, "buffer_burst": 12,
        },
        "response_metrics": {"kind": "vllm", "queue_time_ms": 30, "time_to_first_token_ms": 20},
        "cold_start": false, "run": "nightly-17", "scenario": "steady",
        "dimensions": {"model": "m-7b", "region": "eu-1"},
    })
}

fn bare() -> Value {
    json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 5})
}

/// The only upload that the intake was handed, as JSON.
fn handed_on(intake: &FakeIntake) -> Vec<Value> {
    let uploads = intake.uploads();
    assert_eq!(uploads.len(), 1);
    let read = |record: &Result<String, String>| {
        let text = record.as_ref().expect("a record that can be read");
        serde_json::from_str(text).expect("JSON")
    };
    uploads[0].iter().map(read).collect()
}

fn parsed(json: &Value) -> Result<normalise::ParsedRecord, normalise::FieldError> {
    normalise::record(&RawValue::from_string(json.to_string()).expect("JSON"))
}

#[tokio::test]
async fn every_field_is_handed_on_as_over_http() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    export(running.addr, &request(&json!([whole(), bare()]))).await.expect("the request is fine");
    let handed = handed_on(&running.intake);
    for (sent, handed) in [whole(), bare()].iter().zip(&handed) {
        assert_eq!(parsed(sent), parsed(handed));
        let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(sent), names(handed), "what is left out stays unknown");
    }
    assert_eq!(running.budget.used(), 0);
}

#[test]
fn the_whole_record_is_whole_and_known_over_http() {
    for (message, json) in
        [("ClientRecord", whole()), ("Setup", whole()["setup"].clone()), ("Stream", whole()["stream"].clone())]
    {
        for field in descriptor(message).fields() {
            assert!(json.get(field.name()).is_some(), "{message}.{} is not tested", field.name());
        }
    }
    assert_eq!(parsed(&whole()).expect("a valid record").ignored_fields, 0);
}

/// The fields of each message, and of the same part of the declared body.
const DECLARED: [(&str, &str, &[&str]); 3] = [
    ("ClientRecord", "ClientRecordBody", ClientRecordBody::FIELDS),
    ("Setup", "SetupBody", SetupBody::FIELDS),
    ("Stream", "StreamBody", StreamBody::FIELDS),
];

/// Other spellings of fields, from clients over HTTP only.
const HTTP_ONLY: [&str; 2] = ["quality", "completeness"];

#[test]
fn the_protocol_has_every_declared_field() {
    for (message, _, declared) in DECLARED {
        let described: BTreeSet<String> = descriptor(message).fields().map(|field| field.name().to_owned()).collect();
        let is_typed = |name: &str| message != "ClientRecord" || !HTTP_ONLY.contains(&name);
        let expected: BTreeSet<String> =
            declared.iter().filter(|name| is_typed(name)).map(|name| (*name).to_owned()).collect();
        assert_eq!(described, expected, "{message}");
    }
}

#[tokio::test]
async fn the_document_has_every_declared_field() {
    let limits = Limits::default();
    let budget = Budget::new(&limits);
    let records = RecordEndpoint::new(FakeIntake::new(), Arc::new(limits), budget);
    let document = serde_json::to_value(router(records).to_openapi()).expect("JSON");
    let body = &document["paths"]["/api/v1/records"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let upload = body["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
    let one = json!({"$ref": "#/components/schemas/ClientRecordBody"});
    assert_eq!(upload.expect("a schema")["oneOf"], json!([one, {"type": "array", "items": one}]));
    for (_, schema, declared) in DECLARED {
        let properties = document["components"]["schemas"][schema]["properties"].as_object().expect("properties");
        let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(described, declared.iter().copied().collect(), "{schema}");
    }
    let mut schema = body.clone();
    schema["components"] = document["components"].clone();
    let schema = jsonschema::validator_for(&schema).expect("a valid schema");
    for upload in [whole(), bare(), json!([whole(), bare()])] {
        let faults: Vec<String> = schema.iter_errors(&upload).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
    assert!(!schema.is_valid(&json!({"duration_ms": -1})));
}

#[tokio::test]
async fn faults_are_told_in_the_words_of_http() {
    let bad = [
        json!({"trace_id": "7", "duration_ms": 5}),
        json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": -1}),
        json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 5, "setup": {"tls_ms": "NaN"}}),
        json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": "Infinity"}),
        json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 5, "result": "fine"}),
        json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 5, "status": -1}),
        json!({"trace_id": "0000000000000007000000000000012f", "status": 200}),
        json!({}),
    ];
    let running = start(Endpoint::Grpc, Limits::default()).await;
    export(running.addr, &request(&json!(bad))).await.expect("faults are told one by one");
    for (sent, handed) in bad.iter().zip(handed_on(&running.intake)) {
        let fault = parsed(sent).expect_err("a bad record");
        assert_eq!(parsed(&handed).expect_err("as bad over gRPC"), fault);
    }
}

#[tokio::test]
async fn every_compression_is_taken() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let message = request(&json!([bare()]));
    for (encoding, body) in [("gzip", gzip(&message)), ("zstd", zstd(&message))] {
        export_compressed(running.addr, encoding, &body).await.expect("the request is fine");
    }
    let uploads = running.intake.uploads();
    assert_eq!(uploads.len(), 2);
    assert_eq!(uploads[0], uploads[1]);
}

#[tokio::test]
async fn the_answer_is_that_of_http_and_ok_even_where_all_are_refused() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let rejected = vec![RejectedRecord { index: 1, field: "duration_ms".to_owned(), reason: "is negative".to_owned() }];
    let listed = json!([{"index": 1, "field": "duration_ms", "reason": "is negative"}]);
    for (accepted, duplicates) in [(1, 0), (0, 1), (0, 0)] {
        let outcome = RecordOutcome { accepted, duplicates, rejected: rejected.clone(), ignored_fields: 4 };
        running.intake.answer_records(Ok(outcome));
        let answer = export(running.addr, &request(&json!([bare(), bare()]))).await.expect("the status is OK");
        let expected = json!({"accepted": accepted, "duplicates": duplicates, "rejected": listed, "ignored_fields": 4});
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn an_empty_request_is_fine_without_the_intake() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    running.intake.answer_records(Err(unavailable()));
    let answer = export(running.addr, &[]).await.expect("an empty request is fine");
    assert_eq!(answer, json!({"accepted": 0, "duplicates": 0, "rejected": [], "ignored_fields": 0}));
}

/// A field of a length-delimited type.
fn field(tag: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    encode_key(tag, WireType::LengthDelimited, &mut field);
    encode_varint(content.len() as u64, &mut field);
    field.extend_from_slice(content);
    field
}

#[tokio::test]
async fn fields_of_a_newer_protocol_are_counted() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut newer = request(&json!([bare()]));
    newer.extend(field(99, b"of the request"));
    newer.extend(field(1, &[field(98, b"of a record"), field(23, &field(97, b"of its stream"))].concat()));
    let answer = export(running.addr, &newer).await.expect("the request is fine");
    assert_eq!(answer["ignored_fields"], 3);
    assert_eq!(running.intake.uploads()[0].len(), 2);
}

#[tokio::test]
async fn a_broken_record_is_refused_alone() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let good = request(&json!([bare()]));
    let long = field(4, &vec![b'x'; 64 * 1024]);
    let not_utf8 = field(1, b"\xff\xfe");
    for broken in [&[0xff][..], &not_utf8, &long] {
        let message = [good.clone(), field(1, broken), good.clone()].concat();
        export(running.addr, &message).await.expect("the others are fine");
    }
    let uploads = running.intake.uploads();
    let readable: Vec<Vec<bool>> = uploads.iter().map(|upload| upload.iter().map(Result::is_ok).collect()).collect();
    assert_eq!(readable, vec![vec![true, false, true]; 3]);
    let reasons = uploads.iter().map(|upload| upload[1].clone().expect_err("the broken one"));
    for (reason, words) in reasons.zip(["is no ClientRecord", "invalid string value", "at most 65536 are taken"]) {
        assert!(reason.contains(words), "{reason}");
    }
}

#[tokio::test]
async fn what_cannot_be_told_apart_is_bad_data() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let good = request(&json!([bare()]));
    for broken in [&good[..good.len() - 1], b"GET / HTTP/1.1", &[0xff]] {
        let status = export(running.addr, broken).await.expect_err("no request");
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains("ExportClientRecordsRequest"), "{status}");
        let violations = status.get_details_bad_request().expect("BadRequest says what is wrong").field_violations;
        assert_eq!(violations[0].field, "records");
    }
    assert!(running.intake.uploads().is_empty());
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn what_passes_is_refused_with_a_delay() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    for (refusal, delay) in [(overloaded(), Duration::from_millis(2500)), (unavailable(), Duration::from_secs(5))] {
        running.intake.answer_records(Err(refusal.clone()));
        let status = export(running.addr, &request(&json!([bare()]))).await.expect_err("the intake refuses");
        assert_eq!((status.code(), status.message()), (Code::Unavailable, refusal.to_string().as_str()));
        assert_eq!(status.get_details_retry_info().and_then(|info| info.retry_delay), Some(delay));
    }
    running.intake.answer_records(Err(Refusal::Invalid { message: "cannot be stored".to_owned() }));
    let status = export(running.addr, &request(&json!([bare()]))).await.expect_err("the intake refuses");
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "cannot be stored"));
    assert!(status.get_details_retry_info().is_none());
}

#[tokio::test]
async fn the_limit_of_a_message_holds_after_decompression() {
    let limits = Limits::default();
    let running = start(Endpoint::Grpc, Limits { grpc_message: limits.grpc_message.with_bytes(MIB), ..limits }).await;
    let over = request(&json!(vec![bare(); MIB / 40]));
    let bodies = [(None, frame(false, &over)), (Some("gzip"), frame(true, &gzip(&over)))];
    for (encoding, body) in bodies {
        let status = refused(running.addr, EXPORT, encoding, body).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("client records exceeds the limit of 1048576 bytes"), "{status}");
        assert!(status.message().contains("--otlp-max-message-bytes"), "{status}");
        assert!(status.details().is_empty(), "RetryInfo would make clients send it again");
    }
}

#[tokio::test]
async fn a_bomb_of_empty_records_is_refused_for_good() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let bomb = [0x0a, 0].repeat(7 * MIB);
    let status = refused(running.addr, EXPORT, Some("gzip"), frame(true, &gzip(&bomb))).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("466033 records"), "{status}");
    assert!(status.message().contains("--otlp-max-message-bytes"), "{status}");
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn a_large_message_is_taken_whole() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let record = |number: u64| json!({"trace_id": format!("{number:032x}"), "duration_ms": 5.5});
    let records: Vec<Value> = (1..=10_000).map(record).collect();
    export(running.addr, &request(&json!(records))).await.expect("the request is fine");
    assert!(handed_on(&running.intake) == records, "in their order");
}

#[tokio::test]
async fn other_methods_are_not_implemented() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let path = "/tracejoin.v1.ClientRecordService/Import";
    let status = refused(running.addr, path, None, frame(false, b"")).await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("tracejoin.v1.ClientRecordService has the method Export only"), "{status}");
}
