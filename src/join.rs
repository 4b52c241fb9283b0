//! Entry span, painting, matching and checks, all pure; and the worker that settles traces.

mod across;
mod assemble;
mod caller;
mod check;
mod claim;
mod copies;
mod entry;
mod event_log;
mod first_token;
mod identity;
mod inputs;
mod kin;
mod labels;
mod paint;
mod rates;
mod response_metrics;
mod revision;
mod rules;
mod server_side;
mod server_time;
mod sibling;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
mod view;
mod witness;
pub mod worker;

pub use across::explain;
pub use assemble::{Explained, Joined, Progress};
pub use inputs::{Partner, TraceInputs};
pub use kin::{Kin, Pairing, client_ids, has_client, owner_of_lines};
pub use response_metrics::Placement;
pub use rules::{JoinRules, ReadSpan};
pub use view::{ExplainedSpan, ExplainedTiming, PhaseSources};
pub use witness::Witness;
