//! What is counted of streamed answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::nullable::nullable;
use model::{Completeness, Interval};
use stats::stream::{Output, Rhythm, Wholeness};

/// Streamed answers by whether all of them arrived, of every result: among `ok` ones alone none would be cut off. Groups
/// by result keep to theirs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[schema(as = CompletenessCounts)]
pub struct CompletenessAnswer {
    /// Requests that tell it.
    pub n: u64,
    /// End marker seen, no hole.
    pub ok: u64,
    /// No end marker.
    pub no_end: u64,
    /// Holes in the sequence.
    pub missing: u64,
    /// No end marker, and holes.
    pub both: u64,
    /// Streamed requests that do not tell it.
    pub not_told: u64,
}

impl From<&Wholeness> for CompletenessAnswer {
    fn from(wholeness: &Wholeness) -> Self {
        let count = |class| wholeness.classes.get(&class).copied().unwrap_or(0);
        Self {
            n: wholeness.n(),
            ok: count(Completeness::Ok),
            no_end: count(Completeness::NoEnd),
            missing: count(Completeness::Missing),
            both: count(Completeness::Both),
            not_told: wholeness.not_told,
        }
    }
}

/// How many of the requests behind the gaps and rates were held back on the way: their percentiles look better than a
/// person saw it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[schema(as = BufferingShare)]
pub struct BufferingAnswer {
    /// Requests whose rhythm could be judged.
    pub n: u64,
    /// Those flagged `suspected_buffering`.
    pub suspected: u64,
    /// Their share; null where none could be judged.
    #[serde(deserialize_with = "nullable")]
    pub share: Option<f64>,
    /// Streamed requests that could not be judged: too short, or without gaps.
    pub not_judged: u64,
}

impl From<&Rhythm> for BufferingAnswer {
    fn from(rhythm: &Rhythm) -> Self {
        Self { n: rhythm.judged, suspected: rhythm.suspected, share: rhythm.share(), not_judged: rhythm.not_judged }
    }
}

/// The output of all settled requests of the window together, of every result; no rate of a single request.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[schema(as = Throughput)]
pub struct ThroughputAnswer {
    /// All counted tokens by the length of the window. Null where no request tells its tokens; a lower bound where
    /// `not_counted` is not 0.
    #[serde(deserialize_with = "nullable")]
    pub output_tokens_per_second_window: Option<f64>,
    /// The tokens.
    pub output_tokens: u64,
    /// Requests whose tokens were counted.
    pub n: u64,
    /// Requests whose tokens nobody counted.
    pub not_counted: u64,
    /// The length of the window, `from` to `to`.
    pub window_seconds: f64,
}

impl ThroughputAnswer {
    /// Of an output in a window.
    pub fn of(output: &Output, window: Interval) -> Self {
        let window_seconds = (window.end - window.start).as_secs();
        let known = output.counted > 0 && window_seconds > 0.0;
        Self {
            output_tokens_per_second_window: known.then(|| output.tokens as f64 / window_seconds),
            output_tokens: output.tokens,
            n: output.counted,
            not_counted: output.not_counted,
            window_seconds,
        }
    }
}
