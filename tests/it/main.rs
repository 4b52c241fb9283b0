//! All integration tests, linked once: they run against a real PostgreSQL and real sockets.

mod common;

mod alerts;
mod archive;
mod callers;
mod cases;
mod cli;
mod clients;
mod deployment;
mod design;
mod design_citations;
mod docs;
mod events;
mod expectation;
mod gate;
mod ingest;
mod integrations;
mod joining;
mod metrics;
mod private_postgres;
mod probe;
mod recorded;
mod request_id;
mod rules;
mod slo_minutes;
mod slos;
mod store_join;
mod store_run;
mod store_schema;
mod store_size;
mod store_support;
mod store_writer;
mod typed;
mod verdicts;
mod window_support;
mod windows;
