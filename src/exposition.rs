//! What Prometheus reads: counts and times of requests, objectives, and the own health of the process, as one document.
//!
//! Request metrics count first joins only (design, section 8), so that they never fall and may be summed over processes.

mod form;
mod labels;
mod objectives;
mod phases;
mod requests;
pub mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use prometheus_client::encoding::{prometheus_text, text};

pub use form::Form;
pub use labels::Combination;
pub use objectives::ObjectiveMetrics;
pub use phases::{BUCKETS, PHASES};
pub use requests::RequestMetrics;

use model::UnixNanos;

/// Renders all metrics of the process.
#[derive(Clone)]
pub struct Exposition {
    requests: Arc<RequestMetrics>,
}

impl Exposition {
    /// Of the requests that a process joins, and of what stands in their registry beside them.
    pub fn new(requests: Arc<RequestMetrics>) -> Self {
        Self { requests }
    }

    /// One valid document in the given form, as of `now`.
    ///
    /// # Errors
    /// Where a metric cannot write itself, which none of ours does.
    pub fn render(&self, form: Form, now: UnixNanos) -> Result<String, std::fmt::Error> {
        self.requests.read(now, |registry| {
            let mut document = String::new();
            match form {
                Form::Text => prometheus_text::encode(&mut document, registry)?,
                Form::OpenMetrics => text::encode(&mut document, registry)?,
            }
            Ok(document)
        })
    }
}
