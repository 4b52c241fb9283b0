//! Client records over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::json;
use tracejoin::receive::intake::{RecordOutcome, Refusal, RejectedRecord};
use tracejoin::receive::limits::Limits;

use super::fake::{Endpoint, gzip, overloaded, start, unavailable, zstd};
use super::raw_http::{Answer, post, send};

const RECORDS: &str = "/api/v1/records";
const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

fn assert_problem(answer: &Answer, status: StatusCode, detail: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem = answer.json();
    assert_eq!(problem["status"], status.as_u16());
    assert!(problem["detail"].as_str().expect("a problem has a detail").contains(detail), "{problem}");
}

fn taken(accepted: u64) -> Result<RecordOutcome, Refusal> {
    Ok(RecordOutcome { accepted, ..RecordOutcome::default() })
}

#[tokio::test]
async fn every_form_and_compression_is_split_alike() {
    let running = start(Endpoint::Records, Limits::default()).await;
    running.intake.answer_records(taken(2));
    let array = br#"[{"a":1}, {"b":2}]"#.to_vec();
    let lines = b"{\"a\":1}\r\n\n{\"b\":2}\n".to_vec();
    for (content_type, body) in [(JSON, array), (LINES, lines)] {
        for (encoding, body) in [("", body.clone()), ("gzip", gzip(&body)), ("zstd", zstd(&body))] {
            let answer = post(running.addr, RECORDS, content_type, encoding, body).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
            assert_eq!(answer.header("content-type"), JSON);
            let expected = json!({"accepted": 2, "duplicates": 0, "rejected": [], "ignored_fields": 0});
            assert_eq!(answer.json(), expected);
        }
    }
    let members = vec![Ok(r#"{"a":1}"#.to_owned()), Ok(r#"{"b":2}"#.to_owned())];
    assert_eq!(running.intake.uploads(), vec![members; 6]);
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn a_single_object_is_an_upload_of_one() {
    let running = start(Endpoint::Records, Limits::default()).await;
    running.intake.answer_records(taken(1));
    let answer = post(running.addr, RECORDS, "application/json; charset=utf-8", "", b"{\"a\":1}".to_vec()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(running.intake.uploads(), [[Ok(r#"{"a":1}"#.to_owned())]]);
}

#[tokio::test]
async fn a_broken_member_is_handed_on_as_such() {
    let running = start(Endpoint::Records, Limits::default()).await;
    post(running.addr, RECORDS, LINES, "", b"{\"a\":1}\n{\"b\"\n{\"c\":3}".to_vec()).await;
    post(running.addr, RECORDS, JSON, "", b"[{\"a\":1},{\"b\"".to_vec()).await;
    let uploads = running.intake.uploads();
    let broken: Vec<_> = uploads.iter().map(|upload| upload.iter().map(Result::is_ok).collect::<Vec<_>>()).collect();
    assert_eq!(broken, [vec![true, false, true], vec![true, false]]);
}

#[tokio::test]
async fn refused_members_are_listed_beside_the_kept_ones() {
    let running = start(Endpoint::Records, Limits::default()).await;
    let rejected = vec![RejectedRecord { index: 1, field: "duration_ms".to_owned(), reason: "is negative".to_owned() }];
    let listed = json!([{"index": 1, "field": "duration_ms", "reason": "is negative"}]);
    for (accepted, duplicates, status) in
        [(1, 0, StatusCode::OK), (0, 1, StatusCode::OK), (0, 0, StatusCode::BAD_REQUEST)]
    {
        let outcome = RecordOutcome { accepted, duplicates, rejected: rejected.clone(), ignored_fields: 4 };
        running.intake.answer_records(Ok(outcome));
        let answer = post(running.addr, RECORDS, LINES, "", b"{}\n{}".to_vec()).await;
        assert_eq!(answer.status, status);
        let expected = json!({"accepted": accepted, "duplicates": duplicates, "rejected": listed, "ignored_fields": 4});
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test]
async fn an_empty_upload_is_fine_without_the_intake() {
    let running = start(Endpoint::Records, Limits::default()).await;
    running.intake.answer_records(Err(unavailable()));
    for (content_type, body) in [(JSON, "[]"), (LINES, ""), (LINES, "\n\n")] {
        let answer = post(running.addr, RECORDS, content_type, "", body.into()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    let answer = post(running.addr, RECORDS, JSON, "", b" ".to_vec()).await;
    assert_problem(&answer, StatusCode::BAD_REQUEST, "the body is empty");
}

#[tokio::test]
async fn what_cannot_be_read_is_a_problem() {
    let running = start(Endpoint::Records, Limits::default()).await;
    for content_type in ["", "text/csv", "application/x-www-form-urlencoded"] {
        let answer = post(running.addr, RECORDS, content_type, "", b"{}".to_vec()).await;
        assert_problem(&answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "application/x-ndjson");
    }
    let answer = post(running.addr, RECORDS, JSON, "br", b"{}".to_vec()).await;
    assert_problem(&answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "gzip, zstd");
    let half = gzip(b"{\"a\":1}")[..12].to_vec();
    let answer = post(running.addr, RECORDS, JSON, "gzip", half).await;
    assert_problem(&answer, StatusCode::BAD_REQUEST, "not valid gzip");
    let answer = send(Method::GET, running.addr, RECORDS, JSON, "", Vec::new()).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_limit_holds_before_and_after_decompression() {
    let limits = Limits::default();
    let limits = Limits { records_body: limits.records_body.with_bytes(1 << 20), ..limits };
    let running = start(Endpoint::Records, limits).await;
    let over = vec![b' '; (1 << 20) + 1];
    for (encoding, body) in [("", over.clone()), ("gzip", gzip(&over)), ("zstd", zstd(&over))] {
        let answer = post(running.addr, RECORDS, LINES, encoding, body).await;
        assert_problem(&answer, StatusCode::PAYLOAD_TOO_LARGE, "1048576 bytes");
        assert!(answer.text().contains("--records-max-body-bytes"), "{}", answer.text());
    }
    let many = "1\n".repeat((1 << 20) / 64 + 1).into_bytes();
    let answer = post(running.addr, RECORDS, LINES, "", many).await;
    assert_problem(&answer, StatusCode::PAYLOAD_TOO_LARGE, "16384 records");
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn what_passes_is_refused_with_a_delay() {
    let running = start(Endpoint::Records, Limits::default()).await;
    for (refusal, seconds) in [(overloaded(), "3"), (unavailable(), "5")] {
        running.intake.answer_records(Err(refusal.clone()));
        let answer = post(running.addr, RECORDS, JSON, "", b"{}".to_vec()).await;
        assert_problem(&answer, StatusCode::SERVICE_UNAVAILABLE, &refusal.to_string());
        assert_eq!(answer.header("retry-after"), seconds);
    }
    running.intake.answer_records(Err(Refusal::Invalid { message: "cannot be stored".to_owned() }));
    let answer = post(running.addr, RECORDS, JSON, "", b"{}".to_vec()).await;
    assert_problem(&answer, StatusCode::BAD_REQUEST, "cannot be stored");
}

#[tokio::test]
async fn members_count_beside_their_text() {
    let limits = Limits::default();
    let small = Limits {
        records_body: limits.records_body.with_bytes(1 << 20),
        grpc_message: limits.grpc_message.with_bytes(1 << 20),
        http_body: limits.http_body.with_bytes(1 << 20),
        in_flight: limits.in_flight.with_bytes(3 << 20),
        ..limits
    };
    let running = start(Endpoint::Records, small).await;
    running.intake.answer_records(taken(1000));
    let few = post(running.addr, RECORDS, LINES, "", b"{}\n".repeat(1000)).await;
    assert_eq!(few.status, StatusCode::OK, "{}", few.text());
    let many = post(running.addr, RECORDS, LINES, "", b"{}\n".repeat(15_000)).await;
    assert_problem(&many, StatusCode::BAD_REQUEST, "--max-in-flight-bytes");
    assert_eq!(running.budget.used(), 0);
}
