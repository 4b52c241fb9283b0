//! One trace: `GET /api/v1/traces/{trace_id}`.

mod report;
mod view;

pub use report::text;
pub use view::{Explained, ExplainedSpan, RequestAnswer, SpanAnswer, TraceAnswer};

#[cfg(test)]
mod tests;
