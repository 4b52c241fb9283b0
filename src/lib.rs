//! tracejoin: joins what a client measured with what the server traced, and names the owner of a slow LLM answer.
//!
//! The service around the pure crates below `crates/`. Data flows receive → normalise → store → join → stats → slo →
//! exposition → serve, and a stage never imports what stands downstream of it; `cli` composes them.

pub mod receive;

pub mod store;

pub mod archive;

pub mod ingest;

pub mod gather;
pub mod reader;
pub mod workers;

pub mod objectives;

pub mod exposition;

pub mod serve;

pub mod probe;
pub mod sse;

pub mod config;
pub mod private_postgres;
pub mod telemetry;

pub mod cli;
