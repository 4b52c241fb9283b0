//! The labels and token counts of a request: the client's first, completed by what its spans tell.

use std::cmp::Reverse;

use super::paint::Painting;
use super::tree::{Forest, Place};
use model::dimension::{input_range, output_range};
use model::{ClientRecord, Dimension, Dimensions, SpanId, UnixNanos};

/// What the painted spans of a request tell beside time.
#[derive(Debug, Clone, Default)]
pub struct ServerDetails {
    /// Model, provider, region, pool, priority.
    pub dimensions: Dimensions,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Whether the answer was streamed.
    pub streaming: Option<bool>,
    /// Whether the request loaded the model first.
    pub cold_start: Option<bool>,
}

/// Reads the painted spans: of several that tell one thing, a span that did not fail counts before one that did, then
/// the deepest, then the one that ended last.
pub fn server_details(forest: &Forest, entry: Place, painting: &Painting) -> ServerDetails {
    let mut ranked: Vec<(Rank, Place)> = Vec::new();
    let mut level = vec![entry];
    for depth in 0.. {
        let painted = level.iter().filter(|place| painting.shift(**place).is_some());
        ranked.extend(painted.map(|place| (rank(forest, painting, *place, depth), *place)));
        level = level.iter().flat_map(|place| forest.node(*place).children.iter().copied()).collect();
        if level.is_empty() {
            break;
        }
    }
    ranked.sort();
    let mut details = ServerDetails::default();
    for (_, place) in ranked {
        let reading = &forest.node(place).reading;
        for (dimension, value) in &reading.dimensions.0 {
            details.dimensions.0.entry(*dimension).or_insert_with(|| value.clone());
        }
        details.input_tokens = details.input_tokens.or(reading.input_tokens);
        details.output_tokens = details.output_tokens.or(reading.output_tokens);
        details.streaming = details.streaming.or(reading.streaming);
        details.cold_start = details.cold_start.or(reading.cold_start);
    }
    details
}

type Rank = (bool, Reverse<usize>, Reverse<Option<UnixNanos>>, SpanId);

fn rank(forest: &Forest, painting: &Painting, place: Place, depth: usize) -> Rank {
    let span = &forest.node(place).span;
    // By the clock of the entry span: readings of two machines are never compared.
    let end = span.end.zip(painting.shift(place)).map(|(end, shift)| end + shift);
    (span.error, Reverse(depth), Reverse(end), span.span_id)
}

/// The labels that a client's record tells.
pub fn of_client(record: &ClientRecord) -> Dimensions {
    let mut labels = record.dimensions.clone();
    labels.set(Dimension::Run, record.run.as_deref());
    labels.set(Dimension::Scenario, record.scenario.as_deref());
    set_measured(&mut labels, [record.streaming, record.cold_start], [record.input_tokens, record.output_tokens]);
    labels
}

/// All labels: the client's, completed by the server's.
pub fn complete(client: &Dimensions, details: &ServerDetails) -> Dimensions {
    let mut labels = details.dimensions.clone();
    set_measured(&mut labels, [details.streaming, details.cold_start], [details.input_tokens, details.output_tokens]);
    labels.0.extend(client.0.clone());
    labels
}

/// What was counted becomes a range, never an exact length.
fn set_measured(
    labels: &mut Dimensions,
    [streaming, cold_start]: [Option<bool>; 2],
    [input, output]: [Option<i64>; 2],
) {
    labels.set(Dimension::Streaming, streaming.map(|flag| flag.to_string()));
    labels.set(Dimension::ColdStart, cold_start.map(|flag| flag.to_string()));
    labels.set(Dimension::InputRange, input.map(input_range));
    labels.set(Dimension::OutputRange, output.map(output_range));
}
