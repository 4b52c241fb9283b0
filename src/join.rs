//! Entry span, painting, matching and checks, all pure; and the worker that settles traces.

mod assemble;
mod check;
mod copies;
mod entry;
mod first_token;
mod identity;
mod labels;
mod paint;
mod rates;
mod server_side;
mod server_time;
mod sibling;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
mod view;

pub use assemble::{Explained, Joined, Progress, TraceInputs, explain};
pub use identity::ArrivedRecord;
pub use view::ExplainedSpan;
