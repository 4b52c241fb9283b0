//! Entry span, painting, matching and checks, all pure; and the worker that settles traces.

mod assemble;
mod caller;
mod check;
mod copies;
mod entry;
mod first_token;
mod identity;
mod inputs;
mod labels;
mod paint;
mod rates;
mod response_metrics;
mod server_side;
mod server_time;
mod sibling;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
mod view;
pub mod worker;

pub use assemble::{Explained, Joined, Progress, explain};
pub use inputs::TraceInputs;
pub use response_metrics::Placement;
pub use view::{ExplainedSpan, ExplainedTiming, PhaseSources};
