//! tracejoin: joins what a client measured with what the server traced, and names the owner of a slow LLM answer.
//!
//! The modules in the order in which data flows: receive → normalise → store → join → aggregate → slo → exposition →
//! serve. A stage never imports what stands downstream of it; `cli` composes them.

pub mod model;

pub mod receive;

pub mod normalise;

pub mod store;

pub mod archive;

pub mod ingest;

pub mod join;

pub mod aggregate;

pub mod slo;

pub mod exposition;

pub mod serve;

pub mod probe;
pub mod sse;

pub mod config;
pub mod private_postgres;
pub mod telemetry;

pub mod cli;
