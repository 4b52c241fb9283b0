//! OTLP over HTTP: what is taken, and how it is answered.

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use prost::Message;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tonic_types::pb::Status;
use tracejoin::receive::intake::{Refusal, SpanOutcome};
use tracejoin::receive::limits::Limits;

use super::fake::{Endpoint, PATIENCE, gzip, overloaded, request, start, unavailable, zstd};
use super::raw_http::{Answer, post, send};

const TRACES: &str = "/v1/traces";
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

fn as_json(request: &ExportTraceServiceRequest) -> Vec<u8> {
    serde_json::to_vec(request).expect("a request is JSON")
}

/// The message of an error answer, read in the form of `content_type`.
fn message(answer: &Answer, content_type: &str) -> String {
    assert_eq!(answer.header("content-type"), content_type, "an error answers in the request's form");
    if content_type == PROTOBUF {
        Status::decode(answer.body.as_slice()).expect("the body is a Status").message
    } else {
        answer.json()["message"].as_str().expect("a Status has a message").to_owned()
    }
}

#[tokio::test]
async fn both_forms_are_taken_in_every_compression() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for (content_type, body) in [(PROTOBUF, request(3).encode_to_vec()), (JSON, as_json(&request(3)))] {
        for (encoding, body) in
            [("", body.clone()), ("identity", body.clone()), ("gzip", gzip(&body)), ("zstd", zstd(&body))]
        {
            let answer = post(running.addr, TRACES, content_type, encoding, body).await;
            assert_eq!(answer.status, StatusCode::OK, "{content_type} {encoding}: {}", answer.text());
            assert_eq!(answer.header("content-type"), content_type);
            if content_type == JSON {
                assert_eq!(answer.json(), json!({}));
            } else {
                let reply = ExportTraceServiceResponse::decode(answer.body.as_slice()).expect("the body is a reply");
                assert_eq!(reply.partial_success, None);
            }
        }
    }
    let handed_on = running.intake.spans();
    assert_eq!(handed_on.len(), 8);
    assert!(handed_on.iter().all(|found| *found == request(3)));
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn large_bodies_are_decoded_alike() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let large = super::fake::request_of(3 * 1024 * 1024);
    for (content_type, body) in [(PROTOBUF, large.encode_to_vec()), (JSON, as_json(&large))] {
        let answer = post(running.addr, TRACES, content_type, "", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    assert_eq!(running.intake.spans(), [large.clone(), large]);
}

#[tokio::test]
async fn parameters_of_the_content_type_are_tolerated() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for content_type in ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8"] {
        let answer = post(running.addr, TRACES, content_type, "", as_json(&request(1))).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, JSON));
    }
}

#[tokio::test]
async fn other_types_and_encodings_are_not_supported() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for content_type in ["", "text/plain", "application/grpc"] {
        let answer = post(running.addr, TRACES, content_type, "", as_json(&request(1))).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type:?}");
        assert!(message(&answer, JSON).contains("application/x-protobuf or application/json"));
    }
    for encoding in ["br", "deflate", "gzip, zstd"] {
        let answer = post(running.addr, TRACES, PROTOBUF, encoding, request(1).encode_to_vec()).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{encoding}");
        assert!(message(&answer, PROTOBUF).contains("send gzip, zstd or no compression"));
    }
}

#[tokio::test]
async fn nothing_to_store_is_a_success_without_the_intake() {
    let running = start(Endpoint::Http, Limits::default()).await;
    running.intake.answer_spans(Err(unavailable()));
    let envelopes = br#"{"resourceSpans":[{"scopeSpans":[]}]}"#.to_vec();
    let cases = [(PROTOBUF, Vec::new()), (JSON, Vec::new()), (JSON, b"{}".to_vec()), (JSON, envelopes)];
    for (content_type, body) in cases {
        let answer = post(running.addr, TRACES, content_type, "", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.body, if content_type == JSON { b"{}".to_vec() } else { Vec::new() });
    }
    assert!(running.intake.spans().is_empty());
}

#[tokio::test]
async fn partial_success_counts_exactly_and_a_warning_counts_nothing() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for (rejected, note) in [(2, "2 spans have an id of the wrong length"), (0, "old names are used")] {
        running.intake.answer_spans(Ok(SpanOutcome { rejected, message: note.to_owned() }));
        let answer = post(running.addr, TRACES, PROTOBUF, "", request(5).encode_to_vec()).await;
        assert_eq!(answer.status, StatusCode::OK);
        let reply = ExportTraceServiceResponse::decode(answer.body.as_slice()).expect("the body is a reply");
        let partial = reply.partial_success.expect("there is something to say");
        assert_eq!((partial.rejected_spans, partial.error_message.as_str()), (rejected as i64, note));

        let answer = post(running.addr, TRACES, JSON, "", as_json(&request(5))).await;
        let expected = json!({"partialSuccess": {"rejectedSpans": rejected.to_string(), "errorMessage": note}});
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test]
async fn what_passes_is_refused_with_a_delay() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for (refusal, seconds) in [(overloaded(), "3"), (unavailable(), "5")] {
        running.intake.answer_spans(Err(refusal.clone()));
        for (content_type, body) in [(PROTOBUF, request(1).encode_to_vec()), (JSON, as_json(&request(1)))] {
            let answer = post(running.addr, TRACES, content_type, "", body).await;
            assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(answer.header("retry-after"), seconds);
            assert_eq!(message(&answer, content_type), refusal.to_string());
        }
    }
}

#[tokio::test]
async fn bad_data_is_refused_for_good_in_the_form_of_the_request() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let whole = request(3).encode_to_vec();
    let gzipped = gzip(&whole);
    let zstded = zstd(&whole);
    let names = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"kind": "SPAN_KIND_SERVER"}]}]}]}).to_string();
    let deep = format!("{{\"resourceSpans\":{}", "[".repeat(100_000));
    let cases = [
        ("half a protobuf", PROTOBUF, "", whole[..whole.len() / 2].to_vec()),
        ("half a gzip", PROTOBUF, "gzip", gzipped[..gzipped.len() / 2].to_vec()),
        ("half a zstd", PROTOBUF, "zstd", zstded[..zstded.len() / 2].to_vec()),
        ("plain called gzip", PROTOBUF, "gzip", whole),
        ("half a JSON", JSON, "", as_json(&request(1))[..40].to_vec()),
        ("not UTF-8", JSON, "", b"{\"resourceSpans\":[],\"x\":\"\xff\"}".to_vec()),
        ("an enum by name", JSON, "", names.into_bytes()),
        ("deep nesting", JSON, "", deep.into_bytes()),
        ("protobuf called JSON", JSON, "", request(1).encode_to_vec()),
    ];
    for (case, content_type, encoding, body) in cases {
        let answer = post(running.addr, TRACES, content_type, encoding, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{case}: {}", answer.text());
        assert_eq!(answer.header("retry-after"), "", "{case}");
        assert!(!message(&answer, content_type).is_empty(), "{case}");
    }
    running.intake.answer_spans(Err(Refusal::Invalid { message: "cannot be stored".to_owned() }));
    let answer = post(running.addr, TRACES, JSON, "", as_json(&request(1))).await;
    assert_eq!((answer.status, message(&answer, JSON).as_str()), (StatusCode::BAD_REQUEST, "cannot be stored"));
}

#[tokio::test]
async fn json_of_any_lawful_form_means_the_same() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let strict = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "a", "kind": 2,
        "startTimeUnixNano": "1700000000000000001", "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331"}]}]}]}]})
    .to_string();
    let variants = [
        strict.clone(),
        strict.replace("0af7651916cd43dd8448eb211c80319c", "0AF7651916CD43DD8448EB211C80319C"),
        strict.replace("b7ad6b7169203331", "B7ad6b7169203331"),
        strict.replace("\"1700000000000000001\"", "1700000000000000001"),
        strict.replace("\"name\"", "\"parentSpanId\":null,\"attributes\":null,\"invented\":[{}],\"name\""),
    ];
    for variant in &variants {
        let answer = post(running.addr, TRACES, JSON, "", variant.clone().into_bytes()).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({})), "{variant}");
    }
    let handed_on = running.intake.spans();
    assert_eq!(handed_on.len(), variants.len());
    assert!(handed_on.iter().all(|found| *found == handed_on[0]));
}

#[tokio::test]
async fn snake_case_is_warned_of() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let body = br#"{"resource_spans":[{"scope_spans":[{"spans":[{}]}]}]}"#.to_vec();
    let answer = post(running.addr, TRACES, JSON, "", body).await;
    assert_eq!(answer.status, StatusCode::OK);
    let partial = &answer.json()["partialSuccess"];
    assert_eq!(partial["rejectedSpans"], "0");
    assert!(partial["errorMessage"].as_str().expect("a warning").contains("resourceSpans"));
}

#[tokio::test]
async fn other_signals_paths_and_methods_are_not_there() {
    let running = start(Endpoint::Http, Limits::default()).await;
    for (path, expected) in [("/v1/metrics", "metrics"), ("/v1/logs", "logs"), ("/v2/traces", "POST /v1/traces")] {
        let answer = post(running.addr, path, PROTOBUF, "", Vec::new()).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(message(&answer, PROTOBUF).contains(expected), "{path}");
    }
    let answer = send(Method::GET, running.addr, TRACES, JSON, "", Vec::new()).await;
    assert_eq!((answer.status, answer.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "POST"));
    assert!(message(&answer, JSON).contains("POST only"));
}

#[tokio::test]
async fn requests_are_served_at_one_time() {
    let running = start(Endpoint::Http, Limits::default()).await;
    running.intake.close();
    let addr = running.addr;
    let send = || tokio::spawn(async move { post(addr, TRACES, PROTOBUF, "", request(1).encode_to_vec()).await });
    let calls: Vec<_> = (0..20).map(|_| send()).collect();
    running.intake.wait_for(20).await;
    running.intake.open();
    for call in calls {
        assert_eq!(call.await.expect("no panic").status, StatusCode::OK);
    }
}

#[tokio::test]
async fn open_requests_are_answered_when_it_stops() {
    let running = start(Endpoint::Http, Limits::default()).await;
    running.intake.close();
    let addr = running.addr;
    let call = tokio::spawn(async move { post(addr, TRACES, JSON, "", as_json(&request(1))).await });
    running.intake.wait_for(1).await;
    running.stop.cancel();
    running.intake.open();
    assert_eq!(call.await.expect("no panic").status, StatusCode::OK);
    tokio::time::timeout(PATIENCE, running.serving).await.expect("it ends").expect("no panic");
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_mended_with_a_warning() {
    let running = start(Endpoint::Http, Limits::default()).await;
    running.intake.answer_spans(Ok(SpanOutcome { rejected: 1, message: "1 span has no id".to_owned() }));
    let mut body = request(2).encode_to_vec();
    let name = body.windows(9).position(|window| window == b"inference").expect("the spans have a name");
    body[name] = 0xff;
    let answer = post(running.addr, TRACES, PROTOBUF, "", body).await;
    let reply = ExportTraceServiceResponse::decode(answer.body.as_slice()).expect("the body is a reply");
    let partial = reply.partial_success.expect("there is something to say");
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.starts_with("1 span has no id; 1 texts are not UTF-8"), "{}", partial.error_message);
    let spans = &running.intake.spans()[0].resource_spans[0].scope_spans[0].spans;
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["?nference.generate", "inference.generate"]);
}
