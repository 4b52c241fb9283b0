//! OTLP over gRPC: what is too much, and how it is refused.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use prost::Message;
use tokio_stream::StreamExt;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tracejoin::receive::limits::Limits;

use super::fake::{Endpoint, PATIENCE, gzip, request, request_of, start, zstd};
use super::raw_grpc::{EXPORT, client, frame, refused, refused_body};

const MIB: usize = 1024 * 1024;

fn assert_too_large(status: &Status, limit: usize) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains(&format!("{limit} bytes")), "{status}");
    assert!(status.message().contains("--otlp-max-message-bytes"), "{status}");
    assert!(status.details().is_empty(), "RetryInfo would make exporters send it again");
}

#[tokio::test]
async fn the_default_limit_is_16_mib_to_the_byte() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut client = client(running.addr).await;
    client.export(request_of(16 * MIB)).await.expect("exactly the limit is fine");
    let status = client.export(request_of(16 * MIB + 1)).await.expect_err("one byte over");
    assert_too_large(&status, 16 * MIB);
    assert_eq!(running.intake.spans().len(), 1);
}

#[tokio::test]
async fn the_limit_holds_after_decompression() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    for encoding in [CompressionEncoding::Gzip, CompressionEncoding::Zstd] {
        let mut client = client(running.addr).await.send_compressed(encoding);
        client.export(request_of(16 * MIB)).await.expect("exactly the limit is fine");
        let status = client.export(request_of(16 * MIB + 1)).await.expect_err("one byte over");
        assert_too_large(&status, 16 * MIB);
    }
}

#[tokio::test]
async fn a_bomb_is_refused_as_too_large() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let zeros = vec![0; 64 * MIB];
    for (encoding, bomb) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
        assert!(bomb.len() < MIB, "{encoding}: {}", bomb.len());
        let status = refused(running.addr, EXPORT, Some(encoding), frame(true, &bomb)).await;
        assert_too_large(&status, 16 * MIB);
    }
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn a_bomb_of_empty_spans_is_refused_for_good() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let spans = [0x12, 0].repeat(7 * MIB);
    let mut scope = vec![0x12];
    prost::encoding::encode_varint(spans.len() as u64, &mut scope);
    scope.extend_from_slice(&spans);
    let mut resource = vec![0x0a];
    prost::encoding::encode_varint(scope.len() as u64, &mut resource);
    resource.extend_from_slice(&scope);
    let status = refused(running.addr, EXPORT, Some("gzip"), frame(true, &gzip(&resource))).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("--max-in-flight-bytes"), "{status}");
}

#[tokio::test]
async fn too_much_at_one_time_is_refused_with_a_delay_and_later_taken() {
    let limits = Limits::default();
    let small = Limits {
        records_body: limits.records_body.with_bytes(MIB),
        http_body: limits.http_body.with_bytes(MIB),
        grpc_message: limits.grpc_message.with_bytes(4 * MIB),
        in_flight: limits.in_flight.with_bytes(12 * MIB),
        ..limits
    };
    let running = start(Endpoint::Grpc, small).await;
    running.intake.close();
    let client = client(running.addr).await;
    let mut holding = client.clone();
    let held = tokio::spawn(async move { holding.export(request_of(3 * MIB)).await });
    running.intake.wait_for(1).await;

    let status = client.clone().export(request_of(3 * MIB)).await.expect_err("9 of 12 MiB are held");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().contains("--max-in-flight-bytes"), "{status}");
    let info = status.get_details_retry_info().expect("RetryInfo tells the delay");
    assert!(info.retry_delay > Some(Duration::ZERO));

    running.intake.open();
    held.await.expect("no panic").expect("the first is taken");
    client.clone().export(request_of(3 * MIB)).await.expect("there is room again");
}

#[tokio::test]
async fn an_old_connection_is_replaced_without_loss() {
    let age = Duration::from_millis(500);
    let running =
        start(Endpoint::Grpc, Limits { connection_age: age, connection_age_grace: PATIENCE, ..Limits::default() })
            .await;
    running.intake.close();
    let client = client(running.addr).await;
    let mut holding = client.clone();
    let held = tokio::spawn(async move { holding.export(request(1)).await });
    running.intake.wait_for(1).await;
    tokio::time::sleep(2 * age).await;
    running.intake.open();
    held.await.expect("no panic").expect("a call that is open when the age is reached is answered");
    client.clone().export(request(1)).await.expect("the channel connects again");
    assert_eq!(running.intake.spans().len(), 2);
}

#[tokio::test]
async fn bytes_of_a_broken_message_are_given_back() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let whole = request(3).encode_to_vec();
    refused(running.addr, EXPORT, None, frame(false, &whole[..whole.len() / 2])).await;
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn a_message_that_does_not_arrive_is_given_up_with_a_delay() {
    let running = start(Endpoint::Grpc, Limits { body_timeout: Duration::from_millis(50), ..Limits::default() }).await;
    let beginning = frame(false, &request(3).encode_to_vec())[..20].to_vec();
    let stalled = tokio_stream::once(Ok::<_, Infallible>(beginning)).chain(tokio_stream::pending());
    let status = refused_body(running.addr, EXPORT, None, Body::from_stream(stalled)).await;
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.get_details_retry_info().is_some());
    assert_eq!(running.budget.used(), 0);
}
