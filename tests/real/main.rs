//! tracejoin among real parts: a gateway under the OpenTelemetry SDK, an instrumented FastAPI application, k6, an
//! OpenTelemetry Collector, PostgreSQL.
//!
//! `tests/real/setup` prepares them (each test runs it; it does nothing once they are there). The tests take turns, since
//! they measure time on one machine, and print what they found: `cargo test --test real -- --nocapture`.

mod alerting;
mod alertmanager;
mod asgi;
mod collector;
mod crash;
mod database;
mod differences;
mod gateway;
mod k6;
mod k6_client;
mod live;
mod metrics;
mod network;
mod nginx;
mod outage;
mod phases;
mod process;
mod prometheus;
mod python_client;
mod scratch;
mod setup;
mod streaming;
mod tracejoin;
