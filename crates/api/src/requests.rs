//! The requests behind a number.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::trace::RequestAnswer;

/// Requests of a window.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Requests)]
pub struct RequestsAnswer {
    /// Start of the window.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// The requests, in the order asked for; their `spans` are left empty.
    pub requests: Vec<RequestAnswer>,
}
