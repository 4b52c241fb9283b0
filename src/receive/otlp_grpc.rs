//! The gRPC listener: OTLP's trace service and the one of client records, beside gRPC health and reflection.

mod client_records;
mod codec;
mod service;
mod status;
mod traces;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::OriginalUri;
use axum::response::IntoResponse;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::SERVICE_NAME as TRACE_SERVICE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use self::service::ExportService;
use super::limits::Limits;
use super::otlp::{SpanEndpoint, other_signal};
use super::records::{RecordEndpoint, typed};

/// The services whose health is told.
const SERVICES: [&str; 2] = [TRACE_SERVICE, typed::SERVICE];
const HEALTH_SERVICE: &str = "grpc.health.v1.Health";
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves gRPC on `listener` until `stop`, then lets open calls finish for `limits.drain_grace` at most.
///
/// # Errors
/// A failure of the listener.
pub async fn serve(
    listener: TcpListener,
    spans: SpanEndpoint,
    records: RecordEndpoint,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let limits = Arc::clone(&spans.limits);
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in SERVICES {
        health.set_service_status(service, tonic_health::ServingStatus::Serving).await;
    }
    let routes = routes(spans, records)?.add_service(health_service);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));

    let shutdown = stop.clone();
    let serving = server(&limits).add_routes(routes).serve_with_incoming_shutdown(incoming, async move {
        shutdown.cancelled().await;
        for service in SERVICES {
            health.set_service_status(service, tonic_health::ServingStatus::NotServing).await;
        }
    });
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(limits.drain_grace).await;
    };
    tokio::select! {
        served = serving => served.context("the OTLP/gRPC listener failed"),
        () = overdue => {
            tracing::warn!(grace = ?limits.drain_grace, "otlp/grpc calls were still open when the program stopped");
            Ok(())
        }
    }
}

fn server(limits: &Limits) -> Server {
    Server::builder()
        .max_connection_age(limits.connection_age)
        .max_connection_age_grace(limits.connection_age_grace)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(limits.streams_per_connection)
}

fn routes(spans: SpanEndpoint, records: RecordEndpoint) -> anyhow::Result<Routes> {
    let mut routes = Routes::new(ExportService(spans))
        .add_service(ExportService(records))
        .add_service(reflection().build_v1().context("the reflection service cannot be built")?)
        .add_service(reflection().build_v1alpha().context("the reflection service cannot be built")?);
    let router = std::mem::take(routes.axum_router_mut());
    *routes.axum_router_mut() = router.fallback(unimplemented);
    Ok(routes)
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(opentelemetry_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(typed::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(TRACE_SERVICE)
        .with_service_name(typed::SERVICE)
        .with_service_name(HEALTH_SERVICE)
}

async fn unimplemented(OriginalUri(uri): OriginalUri) -> impl IntoResponse {
    let answer = match other_signal(uri.path()) {
        Some(answer) => answer.to_owned(),
        None => format!("{} is not served here: {TRACE_SERVICE}/Export and {}/Export are", uri.path(), typed::SERVICE),
    };
    Status::unimplemented(answer).into_http::<axum::body::Body>()
}
