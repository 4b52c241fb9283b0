//! OTLP over HTTP: what is too much or too slow, and how it is refused.

use std::time::Duration;

use prost::Message;
use reqwest::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic_types::pb::Status;
use tracejoin::receive::limits::Limits;

use super::fake::{Endpoint, PATIENCE, gzip, request_of, start, zstd};
use super::raw_http::{Answer, post};

const MIB: usize = 1024 * 1024;
const PROTOBUF: &str = "application/x-protobuf";

fn assert_too_large(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", answer.text());
    let message = Status::decode(answer.body.as_slice()).expect("the body is a Status").message;
    assert!(message.contains(&format!("{} bytes", 20 * MIB)), "{message}");
    assert!(message.contains("--otlp-max-body-bytes"), "{message}");
}

#[tokio::test]
async fn the_default_limit_is_20_mib_to_the_byte_in_every_compression() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let fits = request_of(20 * MIB).encode_to_vec();
    let over = request_of(20 * MIB + 1).encode_to_vec();
    for (encoding, fits, over) in
        [("", fits.clone(), over.clone()), ("gzip", gzip(&fits), gzip(&over)), ("zstd", zstd(&fits), zstd(&over))]
    {
        let answer = post(running.addr, "/v1/traces", PROTOBUF, encoding, fits).await;
        assert_eq!(answer.status, StatusCode::OK, "{encoding}: {}", answer.text());
        assert_too_large(&post(running.addr, "/v1/traces", PROTOBUF, encoding, over).await);
    }
}

#[tokio::test]
async fn a_bomb_is_refused_as_too_large() {
    let running = start(Endpoint::Http, Limits::default()).await;
    let zeros = vec![0; 64 * MIB];
    for (encoding, bomb) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
        assert!(bomb.len() < MIB, "{encoding}: {}", bomb.len());
        assert_too_large(&post(running.addr, "/v1/traces", PROTOBUF, encoding, bomb).await);
    }
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn a_zstd_frame_may_not_ask_for_a_huge_window() {
    use zstd::stream::raw::CParameter;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("level 1 exists");
    encoder.set_parameter(CParameter::WindowLog(27)).expect("a lawful window");
    std::io::Write::write_all(&mut encoder, &[0; 1024]).expect("a vector takes everything");
    let frame = encoder.finish().expect("a vector takes everything");
    let running = start(Endpoint::Http, Limits::default()).await;
    let answer = post(running.addr, "/v1/traces", PROTOBUF, "zstd", frame).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
}

#[tokio::test]
async fn a_chunked_body_is_bounded_without_a_declared_length() {
    let limits = Limits::default();
    let running = start(Endpoint::Http, Limits { http_body: limits.http_body.with_bytes(1000), ..limits }).await;
    let mut socket = TcpStream::connect(running.addr).await.expect("the listener accepts");
    let head =
        "POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await.expect("it is read");
    let chunk = format!("200\r\n{}\r\n", " ".repeat(0x200));
    socket.write_all(chunk.repeat(2).as_bytes()).await.expect("it is read");
    assert!(answer_head(&mut socket).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let limits = Limits { body_timeout: Duration::from_millis(50), ..Limits::default() };
    let running = start(Endpoint::Http, limits).await;
    let mut socket = TcpStream::connect(running.addr).await.expect("the listener accepts");
    let head = "POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.expect("it is read");
    let answer = answer_head(&mut socket).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert_eq!(running.budget.used(), 0);
}

async fn answer_head(socket: &mut TcpStream) -> String {
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(PATIENCE, socket.read(&mut answer)).await.expect("it is answered");
    answer.truncate(read.expect("the connection holds"));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn too_much_at_one_time_is_refused_with_a_delay_and_later_taken() {
    let limits = Limits::default();
    let small = Limits {
        records_body: limits.records_body.with_bytes(MIB),
        grpc_message: limits.grpc_message.with_bytes(MIB),
        http_body: limits.http_body.with_bytes(4 * MIB),
        in_flight: limits.in_flight.with_bytes(12 * MIB),
        ..limits
    };
    let running = start(Endpoint::Http, small).await;
    running.intake.close();
    let addr = running.addr;
    let body = request_of(4 * MIB).encode_to_vec();
    let first = body.clone();
    let held = tokio::spawn(async move { post(addr, "/v1/traces", PROTOBUF, "", first).await });
    running.intake.wait_for(1).await;

    let answer = post(addr, "/v1/traces", PROTOBUF, "", body.clone()).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.header("retry-after"), "1");
    let message = Status::decode(answer.body.as_slice()).expect("the body is a Status").message;
    assert!(message.contains("--max-in-flight-bytes"), "{message}");

    running.intake.open();
    assert_eq!(held.await.expect("no panic").status, StatusCode::OK);
    assert_eq!(post(addr, "/v1/traces", PROTOBUF, "", body).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_head_that_never_ends_does_not_keep_its_connection() {
    let limits = Limits { head_timeout: Duration::from_millis(200), ..Limits::default() };
    let running = start(Endpoint::Http, limits).await;
    let mut socket = TcpStream::connect(running.addr).await.expect("a connection");
    socket.write_all(b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await.expect("written");
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection is still open");
    let beside = post(running.addr, "/v1/traces", "application/json", "", b"{}".to_vec()).await;
    assert_eq!(beside.status, 200);
}
