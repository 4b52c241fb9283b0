//! gRPC calls from hand-made frames, for what no client library would send.

use std::net::SocketAddr;

use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt;

pub const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

pub async fn channel(addr: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("a valid address");
    endpoint.connect().await.expect("the listener accepts")
}

pub async fn client(addr: SocketAddr) -> TraceServiceClient<Channel> {
    TraceServiceClient::new(channel(addr).await)
}

/// A frame as gRPC lays it out: flag, length, message.
pub fn frame(compressed: bool, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a message of the tests");
    let mut frame = vec![u8::from(compressed)];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

/// Sends `body` to `path`, and returns the error that it was answered with before any message.
pub async fn refused(addr: SocketAddr, path: &str, encoding: Option<&str>, body: Vec<u8>) -> Status {
    refused_body(addr, path, encoding, Body::from(body)).await
}

/// As [`refused`], with a body that may come in parts.
pub async fn refused_body(addr: SocketAddr, path: &str, encoding: Option<&str>, body: Body) -> Status {
    let response = call(addr, path, encoding, body).await;
    Status::from_header_map(response.headers()).expect("the call is refused in its headers")
}

/// Sends `body` to `path`, and returns the message of the reply or the error that it was answered with before any.
pub async fn answered(addr: SocketAddr, path: &str, encoding: Option<&str>, body: Vec<u8>) -> Result<Bytes, Status> {
    let response = call(addr, path, encoding, Body::from(body)).await;
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Err(status);
    }
    let reply = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX).await.expect("a whole reply");
    let length = u32::from_be_bytes(reply[1..5].try_into().expect("four bytes"));
    assert_eq!((reply[0], length as usize), (0, reply.len() - 5), "one frame, not compressed");
    Ok(reply.slice(5..))
}

async fn call(addr: SocketAddr, path: &str, encoding: Option<&str>, body: Body) -> Response<tonic::body::Body> {
    let mut request = Request::post(format!("http://{addr}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    let request = request.body(tonic::body::Body::new(body)).expect("a valid request");
    channel(addr).await.oneshot(request).await.expect("the call is answered")
}
