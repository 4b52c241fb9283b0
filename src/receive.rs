//! Listeners: OTLP over gRPC and HTTP, client records over HTTP. They decode, bound and answer; they store nothing.

pub mod intake;
