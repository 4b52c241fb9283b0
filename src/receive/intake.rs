//! What a receiver hands on, and what it may be answered. The stages behind implement these traits, so that a listener
//! knows nothing of them.

use std::time::Duration;

use futures::future::BoxFuture;
use normalise::{ClientRecordBody, FieldError};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use serde_json::value::RawValue;
use thiserror::Error;

use super::records::typed::EncodedRecord;

/// What became of an accepted OTLP request: everything not counted here is committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanOutcome {
    /// Spans refused for good.
    pub rejected: u64,
    /// Why, and how to mend it, in English; empty where there is nothing to say.
    pub message: String,
}

/// A client record that was refused for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Its place in the upload, from 0.
    pub index: usize,
    /// The field at fault; empty where it is the record as a whole.
    pub field: String,
    /// What is wrong and what to do about it.
    pub reason: String,
}

/// What became of an upload of client records: those accepted are committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordOutcome {
    /// New records.
    pub accepted: u64,
    /// Records that were there already, with the same measured fields.
    pub duplicates: u64,
    /// Those refused, by index.
    pub rejected: Vec<RejectedRecord>,
    /// Fields that no record has, counted over the upload.
    pub ignored_fields: u64,
}

/// Why nothing of a request was taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A limit is reached for now. The message names the limit, its value and the setting.
    #[error("{message}")]
    Overloaded {
        /// The limit, its value and the setting.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The database is unavailable.
    #[error("{message}")]
    Unavailable {
        /// What is unavailable.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The data cannot be stored, now or later.
    #[error("{message}")]
    Invalid {
        /// What is wrong and what to do about it.
        message: String,
    },
}

/// Takes decoded OTLP requests. Resolves after the commit.
pub trait SpanIntake: Send + Sync + 'static {
    /// Takes one request: all of it is committed but for what the outcome counts, or none of it is acknowledged.
    fn accept(&self, request: ExportTraceServiceRequest) -> BoxFuture<'_, Result<SpanOutcome, Refusal>>;
}

/// Takes lines of event logs, still as JSON. Resolves after the commit.
pub trait EventIntake: Send + Sync + 'static {
    /// Takes one upload; of its lines, those that say the same are duplicates.
    fn accept(&self, lines: Vec<RawRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>>;
}

/// One member of an upload: its raw JSON, or why it is not JSON.
pub type RawRecord = Result<Box<RawValue>, String>;

/// A client record as it came.
#[derive(Debug, Clone)]
pub enum SentRecord {
    /// Over HTTP.
    Json(Box<RawValue>),
    /// Over gRPC.
    Message(EncodedRecord),
}

impl SentRecord {
    /// The body, whichever way it came.
    ///
    /// # Errors
    /// What is no object.
    pub fn body(&self) -> Result<ClientRecordBody, FieldError> {
        match self {
            Self::Json(raw) => ClientRecordBody::parse(raw),
            Self::Message(record) => record.body().map_err(|reason| FieldError { field: String::new(), reason }),
        }
    }
}

impl From<Box<RawValue>> for SentRecord {
    fn from(raw: Box<RawValue>) -> Self {
        Self::Json(raw)
    }
}

/// One record of an upload, or why it cannot be read.
pub type ReceivedRecord = Result<SentRecord, String>;

/// Takes client records as they came. Resolves after the commit.
pub trait RecordIntake: Send + Sync + 'static {
    /// Takes one upload, in its order.
    fn accept(&self, records: Vec<ReceivedRecord>) -> BoxFuture<'_, Result<RecordOutcome, Refusal>>;
}
