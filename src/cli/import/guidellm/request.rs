//! A request of a report; names are GuideLLM's. Prompts and answers are not read.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub struct Request {
    /// The id that the server gave its answer. `request_id` beside it is GuideLLM's own and never sent.
    pub response_id: Option<String>,
    /// Times and failure.
    pub info: Info,
    /// Tokens of the prompt.
    pub input_metrics: Option<Usage>,
    /// Tokens of the answer.
    pub output_metrics: Option<Usage>,
    /// What the server told of its own timing.
    pub response_metrics: Option<Map<String, Value>>,
}

/// Times and failure.
#[derive(Debug, Deserialize)]
pub struct Info {
    /// When what happened.
    pub timings: Timings,
    /// Why it failed.
    pub error: Option<String>,
}

/// Seconds of the Unix epoch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// When it was due.
    pub targeted_start: Option<f64>,
    /// When the backend took it up.
    pub resolve_start: Option<f64>,
    /// When its first header was written.
    pub request_start: Option<f64>,
    /// First event with a token of any kind.
    pub first_token_iteration: Option<f64>,
    /// First event with a token that is no reasoning.
    pub first_output_token_iteration: Option<f64>,
    /// Last event with a token.
    pub last_token_iteration: Option<f64>,
    /// Events of the stream.
    pub request_iterations: i64,
    /// Those with a token.
    pub token_iterations: i64,
    /// The end of the answer.
    pub request_end: Option<f64>,
    /// When the backend was done with it.
    pub resolve_end: Option<f64>,
}

/// Counts as the server told them, else as GuideLLM counted.
#[derive(Debug, Deserialize)]
pub struct Usage {
    /// All of them.
    pub total_tokens: Option<i64>,
    /// Those of text.
    pub text_tokens: Option<i64>,
}
