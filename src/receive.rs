//! Listeners: OTLP over gRPC and HTTP, client records and event logs over HTTP. They decode, bound and answer; they store nothing.

pub mod body;
pub mod budget;
pub mod events;
pub mod http_server;
pub mod intake;
pub mod limits;
pub mod meter;
pub mod otlp;
pub mod otlp_grpc;
pub mod otlp_http;
pub mod problem;
pub mod records;
