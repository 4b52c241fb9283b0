//! RFC 9457 problem documents.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An RFC 9457 problem document.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI for the kind of problem; `about:blank` says that the status tells it.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    pub kind: String,
    /// The status in words.
    #[schema(example = "Bad Request")]
    pub title: String,
    /// The HTTP status.
    #[schema(example = 400)]
    pub status: u16,
    /// What is wrong and what to change.
    pub detail: String,
    /// The parameter at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// What would have been accepted in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub accepted: Vec<String>,
    /// What is in the way of being ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub reasons: Vec<String>,
    /// What is wrong with a document, in the order of its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldProblem>,
}

/// A field of a document that cannot be used.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Its line, from 1.
    #[schema(example = 7)]
    pub line: u64,
    /// Its column, from 1.
    #[schema(example = 17)]
    pub column: u64,
    /// Its path in the document.
    #[schema(example = "spec.threshold_ms")]
    pub field: String,
    /// What is wrong and what to do.
    pub reason: String,
}
