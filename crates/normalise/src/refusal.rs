//! Spans that cannot be kept: counted by reason, and told to the sender with what to do about it.

use std::collections::BTreeMap;

use thiserror::Error;

use model::id::IdError;

/// Why one span is refused for good.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpanError {
    /// No trace to keep it under.
    #[error("trace_id {0}; send the 16 raw bytes (in JSON 32 hexadecimal digits) of the W3C trace id")]
    TraceId(IdError),
    /// No identity.
    #[error("span_id {0}; send the 8 raw bytes (in JSON 16 hexadecimal digits) of the W3C span id")]
    SpanId(IdError),
    /// A parent that no span can be.
    #[error("parent_span_id {0}; leave it empty for a root, else send the parent's 8 raw bytes")]
    Parent(IdError),
    /// Beyond the year 2262.
    #[error("{field} {nanos} lies beyond the year 2262; send nanoseconds since 1970, and check the unit")]
    Time {
        /// Which time.
        field: &'static str,
        /// What was sent.
        nanos: u64,
    },
    /// Its trace has more spans than are kept of one request.
    #[error(
        "its trace has more than {limit} spans in one request, of which the longest are kept; record fewer spans, or \
         raise {setting}={limit}"
    )]
    TraceTooLarge {
        /// Spans kept of one trace.
        limit: usize,
        /// The setting that raises the limit.
        setting: &'static str,
    },
}

impl SpanError {
    /// The reason under which it is counted.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TraceId(_) => "trace_id_invalid",
            Self::SpanId(_) => "span_id_invalid",
            Self::Parent(_) => "parent_span_id_invalid",
            Self::Time { .. } => "time_out_of_range",
            Self::TraceTooLarge { .. } => "trace_too_large",
        }
    }
}

/// Refusals of one OTLP request.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: BTreeMap<&'static str, u64>,
    examples: BTreeMap<&'static str, String>,
}

impl Refusals {
    /// Counts `spans` refused for one reason; `example` names one of them.
    pub fn add(&mut self, error: &SpanError, spans: u64, example: &str) {
        let reason = error.reason();
        *self.counts.entry(reason).or_default() += spans;
        self.examples.entry(reason).or_insert_with(|| format!("{example}: {error}"));
    }

    /// The counts by reason, and a message for the sender, empty where nothing was refused.
    pub fn finish(self) -> (BTreeMap<&'static str, u64>, String) {
        let mut message = String::new();
        for (reason, example) in &self.examples {
            if !message.is_empty() {
                message.push_str(". ");
            }
            let spans = self.counts.get(reason).copied().unwrap_or_default();
            message.push_str(&format!("{spans} refused as {reason}, such as {example}"));
        }
        (self.counts, message)
    }
}
