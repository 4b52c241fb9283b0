//! OTLP over gRPC: what is taken, and how it is answered.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tracejoin::receive::intake::{Refusal, SpanOutcome};
use tracejoin::receive::limits::Limits;

use super::fake::{Endpoint, PATIENCE, overloaded, request, start, unavailable};
use super::raw_grpc::{EXPORT, channel, client, frame, refused};

#[tokio::test]
async fn plain_gzip_and_zstd_are_taken_and_success_is_unset() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let plain = client(running.addr).await;
    let encodings = [CompressionEncoding::Gzip, CompressionEncoding::Zstd];
    let compressed = encodings.map(|with| plain.clone().send_compressed(with).accept_compressed(with));
    for mut client in [plain].into_iter().chain(compressed) {
        let reply = client.export(request(3)).await.expect("the request is fine").into_inner();
        assert_eq!(reply, ExportTraceServiceResponse { partial_success: None });
    }
    assert_eq!(running.intake.spans(), [request(3), request(3), request(3)]);
    assert_eq!(running.budget.used(), 0);
}

#[tokio::test]
async fn replies_are_compressed_where_the_client_takes_it() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let outcome = SpanOutcome { rejected: 1, message: "span 1 has no id".to_owned() };
    running.intake.answer_spans(Ok(outcome));
    for (encoding, name) in [(CompressionEncoding::Gzip, "gzip"), (CompressionEncoding::Zstd, "zstd")] {
        let mut client = client(running.addr).await.accept_compressed(encoding);
        let reply = client.export(request(2)).await.expect("the request is fine");
        assert_eq!(reply.metadata().get("grpc-encoding").map(|value| value.as_bytes()), Some(name.as_bytes()));
        assert_eq!(reply.into_inner().partial_success.map(|partial| partial.rejected_spans), Some(1));
    }
}

#[tokio::test]
async fn partial_success_counts_exactly_and_a_warning_counts_nothing() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut client = client(running.addr).await;
    for (rejected, message) in [(2, "2 spans have an id of the wrong length"), (0, "old names are used")] {
        running.intake.answer_spans(Ok(SpanOutcome { rejected, message: message.to_owned() }));
        let reply = client.export(request(5)).await.expect("the request is fine").into_inner();
        let expected = ExportTracePartialSuccess { rejected_spans: rejected as i64, error_message: message.to_owned() };
        assert_eq!(reply.partial_success, Some(expected));
    }
}

#[tokio::test]
async fn nothing_to_store_is_a_success_without_the_intake() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    running.intake.answer_spans(Err(unavailable()));
    let scope = ResourceSpans { scope_spans: vec![ScopeSpans::default()], ..ResourceSpans::default() };
    let empty = [
        ExportTraceServiceRequest::default(),
        ExportTraceServiceRequest { resource_spans: vec![ResourceSpans::default()] },
        ExportTraceServiceRequest { resource_spans: vec![scope] },
    ];
    let mut client = client(running.addr).await;
    for request in empty {
        let reply = client.export(request).await.expect("an empty request is fine").into_inner();
        assert_eq!(reply.partial_success, None);
    }
    assert!(running.intake.spans().is_empty());
}

#[tokio::test]
async fn what_passes_is_refused_with_a_delay() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut client = client(running.addr).await;
    for refusal in [overloaded(), unavailable()] {
        let (Refusal::Overloaded { retry_after, .. } | Refusal::Unavailable { retry_after, .. }) = refusal.clone()
        else {
            panic!("both pass");
        };
        running.intake.answer_spans(Err(refusal.clone()));
        let status = client.export(request(1)).await.expect_err("the intake refuses");
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), refusal.to_string());
        let info = status.get_details_retry_info().expect("RetryInfo tells the delay");
        assert_eq!(info.retry_delay, Some(retry_after));
    }
}

#[tokio::test]
async fn bad_data_is_refused_for_good() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    running.intake.answer_spans(Err(Refusal::Invalid { message: "cannot be stored".to_owned() }));
    let status = client(running.addr).await.export(request(1)).await.expect_err("the intake refuses");
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "cannot be stored"));
    let details = status.get_error_details();
    let violations = details.bad_request().expect("BadRequest says what is wrong").field_violations.clone();
    assert_eq!(violations[0].description, "cannot be stored");
    assert!(details.retry_info().is_none());
}

#[tokio::test]
async fn unreadable_messages_are_bad_data() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let whole = request(3).encode_to_vec();
    let half = &whole[..whole.len() / 2];
    let gzipped = super::fake::gzip(&whole);
    let cases: [(&str, Option<&str>, Vec<u8>); 7] = [
        ("half a protobuf", None, frame(false, half)),
        ("not a protobuf", None, frame(false, b"GET / HTTP/1.1")),
        ("nested too deep", None, frame(false, &nested(200))),
        ("half a gzip", Some("gzip"), frame(true, &gzipped[..gzipped.len() / 2])),
        ("not a zstd", Some("zstd"), frame(true, &gzipped)),
        ("half a frame", None, frame(false, &whole)[..20].to_vec()),
        ("flag without encoding", None, frame(true, &gzipped)),
    ];
    for (case, encoding, body) in cases {
        let status = refused(running.addr, EXPORT, encoding, body).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{case}: {status}");
        assert!(status.message().contains("sent whole"), "{case}: {status}");
        assert!(status.get_details_bad_request().is_some(), "{case}");
    }
    assert!(running.intake.spans().is_empty());
}

/// A request with an attribute of `depth` lists inside one another.
fn nested(depth: usize) -> Vec<u8> {
    let list = |value: AnyValue| AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![value] })) };
    let value = (0..depth).fold(AnyValue::default(), |value, _| list(value));
    let mut found = request(1);
    let attribute = KeyValue { key: "deep".to_owned(), value: Some(value), ..KeyValue::default() };
    found.resource_spans[0].scope_spans[0].spans[0].attributes.push(attribute);
    found.encode_to_vec()
}

#[tokio::test]
async fn an_unknown_compression_names_the_known_ones() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let status = refused(running.addr, EXPORT, Some("snappy"), frame(true, b"x")).await;
    assert_eq!(status.code(), Code::Unimplemented);
    let accepted = status.metadata().get("grpc-accept-encoding").expect("the known ones are listed");
    let accepted = accepted.to_str().expect("plain text");
    assert!(accepted.contains("gzip") && accepted.contains("zstd"), "{accepted}");
}

#[tokio::test]
async fn other_signals_and_methods_are_not_implemented() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    for (path, expected) in [
        ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "exports metrics"),
        ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", "exports logs"),
        ("/opentelemetry.proto.collector.trace.v1.TraceService/Import", "Export only"),
        ("/some.other.Service/Call", "TraceService/Export"),
    ] {
        let status = refused(running.addr, path, None, frame(false, b"")).await;
        assert_eq!(status.code(), Code::Unimplemented, "{path}");
        assert!(status.message().contains(expected), "{path}: {status}");
    }
}

#[tokio::test]
async fn calls_on_one_connection_are_served_at_one_time() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    running.intake.close();
    let client = client(running.addr).await;
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.export(request(1)).await })
        })
        .collect();
    running.intake.wait_for(50).await;
    running.intake.open();
    for call in calls {
        call.await.expect("no panic").expect("the request is fine");
    }
    assert_eq!(running.intake.spans().len(), 50);
}

#[tokio::test]
async fn a_sent_again_batch_is_handed_on_again() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut client = client(running.addr).await;
    for _ in 0..2 {
        client.export(request(2)).await.expect("duplicates are by design");
    }
    assert_eq!(running.intake.spans(), [request(2), request(2)]);
}

#[tokio::test]
async fn health_tells_that_it_serves() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    let mut health = HealthClient::new(channel(running.addr).await);
    for service in ["", "opentelemetry.proto.collector.trace.v1.TraceService", "tracejoin.v1.ClientRecordService"] {
        let reply = health.check(HealthCheckRequest { service: service.to_owned() }).await.expect("a known service");
        assert_eq!(reply.into_inner().status(), ServingStatus::Serving, "{service:?}");
    }
}

/// The services that reflection lists and the symbols that it describes, by the client of each version of the protocol.
macro_rules! reflected {
    ($version:ident, $addr:expr) => {{
        use tonic_reflection::pb::$version::ServerReflectionRequest;
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;

        let symbol = |name: &str| MessageRequest::FileContainingSymbol(name.to_owned());
        let asked = [
            MessageRequest::ListServices(String::new()),
            symbol("opentelemetry.proto.collector.trace.v1.TraceService"),
            symbol("tracejoin.v1.ClientRecordService"),
        ];
        let asked = asked.map(|ask| ServerReflectionRequest { host: String::new(), message_request: Some(ask) });
        let mut client = ServerReflectionClient::new(channel($addr).await);
        let mut replies =
            client.server_reflection_info(tokio_stream::iter(asked)).await.expect("it is served").into_inner();
        let mut services = BTreeSet::new();
        let mut files = 0;
        while let Some(reply) = replies.message().await.expect("the stream ends well") {
            match reply.message_response {
                Some(MessageResponse::ListServicesResponse(list)) => {
                    services.extend(list.service.into_iter().map(|service| service.name));
                }
                Some(MessageResponse::FileDescriptorResponse(found)) => {
                    assert!(!found.file_descriptor_proto.is_empty());
                    files += 1;
                }
                other => panic!("unexpected reply: {other:?}"),
            }
        }
        (services, files)
    }};
}

#[tokio::test]
async fn reflection_describes_what_is_served() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    for (services, files) in [reflected!(v1, running.addr), reflected!(v1alpha, running.addr)] {
        assert!(services.contains("opentelemetry.proto.collector.trace.v1.TraceService"), "{services:?}");
        assert!(services.contains("tracejoin.v1.ClientRecordService"), "{services:?}");
        assert!(services.contains("grpc.health.v1.Health"), "{services:?}");
        assert!(!services.iter().any(|name| name.contains("metrics") || name.contains("logs")), "{services:?}");
        assert_eq!(files, 2);
    }
}

#[tokio::test]
async fn open_calls_are_answered_when_it_stops() {
    let running = start(Endpoint::Grpc, Limits::default()).await;
    running.intake.close();
    let mut client = client(running.addr).await;
    let call = tokio::spawn(async move { client.export(request(1)).await });
    running.intake.wait_for(1).await;
    running.stop.cancel();
    running.intake.open();
    call.await.expect("no panic").expect("the open call is answered");
    tokio::time::timeout(PATIENCE, running.serving).await.expect("it ends").expect("no panic");
}
