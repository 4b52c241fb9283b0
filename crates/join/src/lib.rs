//! Entry span, painting, matching and checks: what arrived of a trace becomes requests split into phases.
//!
//! No database, network, clock or runtime: what arrived and the time of day are arguments.

mod across;
mod assemble;
mod caller;
mod canonical;
mod check;
mod claim;
mod copies;
mod entry;
mod event_log;
mod first_token;
mod identity;
mod inputs;
mod labels;
mod paint;
mod rates;
mod request_id_pairing;
mod response_metrics;
mod rules;
mod server_side;
mod server_time;
mod sibling;
mod sides;
#[cfg(test)]
mod tests;
mod timeline;
mod tolerance;
mod trace;
mod tree;
mod view;

pub use across::explain;
pub use assemble::{Explained, Joined, Progress};
pub use inputs::{Partner, TraceInputs};
pub use request_id_pairing::{Lookup, Pairing, RequestIdPairing, SERVERS_ENOUGH, client_ids, has_client, is_linked};
pub use response_metrics::Placement;
pub use rules::{JoinRules, ReadSpan};
pub use sides::owner_of_lines;
pub use trace::{JoinedTrace, TraceRelations, join_trace};
pub use view::{ExplainedSpan, ExplainedTiming, PhaseSources};
