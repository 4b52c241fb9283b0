//! The listeners over real sockets, in front of an intake that only remembers what it was handed.

mod fake;
mod grpc;
mod grpc_bounds;
mod http;
mod http_bounds;
mod raw_grpc;
mod raw_http;
mod records;
mod typed;
mod typed_client;
