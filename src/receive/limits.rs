//! The bounds of what a listener takes in, with their defaults and the settings that move them.

use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// A bound in bytes that can tell a sender which setting raises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimit {
    /// The bound, in bytes.
    pub bytes: usize,
    /// What is bounded, for messages.
    pub subject: &'static str,
    /// The flag that sets it.
    pub setting: &'static str,
}

impl ByteLimit {
    /// The same bound with another value.
    pub const fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// The refusal of something larger: names the limit, its value and its setting.
    pub fn exceeded(&self) -> String {
        format!(
            "{} exceeds the limit of {} bytes, which also holds after decompression: send smaller batches or raise {}",
            self.subject, self.bytes, self.setting
        )
    }
}

/// The bounds of every listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// One OTLP message over gRPC.
    pub grpc_message: ByteLimit,
    /// One OTLP body over HTTP.
    pub http_body: ByteLimit,
    /// One upload of client records.
    pub records_body: ByteLimit,
    /// Everything that is being read, decoded or stored at one time, over all listeners.
    pub in_flight: ByteLimit,
    /// Calls at one time on one gRPC connection; further ones wait at the sender.
    pub streams_per_connection: u32,
    /// Age at which a gRPC connection is asked to reconnect, so that senders spread over new instances.
    pub connection_age: Duration,
    /// How long such a connection may finish its calls.
    pub connection_age_grace: Duration,
    /// How long the head of one HTTP request may take to arrive; an idle connection is closed after as long.
    pub head_timeout: Duration,
    /// How long one body may take to arrive.
    pub body_timeout: Duration,
    /// How long open calls may finish when the program stops.
    pub drain_grace: Duration,
    /// What a sender is told to wait when a listener's own bound is reached.
    pub retry_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grpc_message: ByteLimit {
                bytes: 16 * MIB,
                subject: "the OTLP message",
                setting: "--otlp-max-message-bytes",
            },
            http_body: ByteLimit { bytes: 20 * MIB, subject: "the OTLP body", setting: "--otlp-max-body-bytes" },
            records_body: ByteLimit { bytes: 64 * MIB, subject: "the upload", setting: "--records-max-body-bytes" },
            in_flight: ByteLimit {
                bytes: 512 * MIB,
                subject: "the data being received at this moment",
                setting: "--max-in-flight-bytes",
            },
            streams_per_connection: 128,
            connection_age: Duration::from_secs(600),
            connection_age_grace: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            drain_grace: Duration::from_secs(10),
            retry_after: Duration::from_secs(1),
        }
    }
}
