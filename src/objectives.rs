//! Objectives in the service: kept, judged in rounds, counted by minute, replayed, asked as a gate, reported.
//!
//! The rules themselves are the pure crate `slo`; what is here reads and writes the store.

pub mod assess;
pub mod catalogue;
pub mod dry_runs;
pub mod evaluator;
pub mod gates;
pub mod latest;
pub mod minutes;
pub mod notify;
pub mod status;
