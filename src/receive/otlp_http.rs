//! OTLP over HTTP: `POST /v1/traces`, in protobuf or JSON.

mod reply;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::reply::{Failure, Wire};
use super::body::ReceivedBody;
use super::http_server;
use super::meter::Transport;
use super::otlp::{Decoded, SpanEndpoint, decode_protobuf, json, other_signal, weight};

/// Serves OTLP/HTTP on `listener` until `stop`, then lets open calls finish for `limits.drain_grace` at most.
pub async fn serve(listener: TcpListener, endpoint: SpanEndpoint, stop: CancellationToken) {
    let limits = Arc::clone(&endpoint.limits);
    http_server::serve(listener, router(endpoint), stop, &limits).await;
}

/// The routes of the OTLP/HTTP endpoint.
pub fn router(endpoint: SpanEndpoint) -> Router {
    Router::new()
        .route("/v1/traces", post(export_traces))
        .method_not_allowed_fallback(wrong_method)
        .fallback(wrong_path)
        .with_state(endpoint)
}

async fn export_traces(State(endpoint): State<SpanEndpoint>, headers: HeaderMap, body: Body) -> Response {
    let Some(wire) = Wire::of(&headers) else {
        Transport::OtlpHttp.refused("unknown_type");
        let detail = "send Content-Type application/x-protobuf or application/json";
        return Wire::Json.failure(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    };
    match export(&endpoint, wire, &headers, body).await {
        Ok(reply) => wire.success(&reply),
        Err(failure) => wire.failure(failure),
    }
}

async fn export(
    endpoint: &SpanEndpoint,
    wire: Wire,
    headers: &HeaderMap,
    body: Body,
) -> Result<ExportTraceServiceResponse, Failure> {
    let reservation = Arc::new(endpoint.budget.reserve());
    let limits = &endpoint.limits;
    let received = ReceivedBody::read(headers, body, limits.http_body, limits, Arc::clone(&reservation)).await;
    let decoded = match received {
        Ok(received) if received.is_heavy() => {
            let decoding = tokio::task::spawn_blocking(move || decode(wire, received));
            decoding.await.unwrap_or_else(|cause| Err(Failure::bad_request(format!("decoding failed: {cause}"))))
        }
        Ok(received) => decode(wire, received),
        Err(error) => Err(error.into()),
    };
    let (decoded, bytes) = decoded.inspect_err(|failure| Transport::OtlpHttp.refused(failure.reason))?;
    let exported = endpoint.export(Transport::OtlpHttp, decoded, bytes).await;
    drop(reservation);
    Ok(exported?)
}

/// The request and its size after decompression.
fn decode(wire: Wire, received: ReceivedBody) -> Result<(Decoded, usize), Failure> {
    let reservation = received.reservation();
    let bytes = received.decompress()?;
    let size = bytes.len();
    let decoded = match wire {
        Wire::Protobuf => {
            reservation.grow(weight::of_protobuf(&bytes))?;
            decode_protobuf(bytes)
        }
        Wire::Json => {
            reservation.grow(weight::of_json(&bytes))?;
            json::decode(&bytes)
        }
    };
    Ok((decoded.map_err(Failure::bad_request)?, size))
}

async fn wrong_method(headers: HeaderMap) -> Response {
    let wire = Wire::of(&headers).unwrap_or(Wire::Json);
    wire.failure(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "/v1/traces takes POST only"))
}

async fn wrong_path(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    let detail = other_signal(uri.path()).unwrap_or("traces are taken at POST /v1/traces");
    let wire = Wire::of(&headers).unwrap_or(Wire::Json);
    wire.failure(Failure::new(StatusCode::NOT_FOUND, detail))
}
