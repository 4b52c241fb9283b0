//! The server's part of one request: entry, time, phases, first token.

use super::first_token::server_ttft;
use super::labels::{self, ServerDetails};
use super::paint::{self, Painting};
use super::response_metrics::{self, OwnTiming, Placement};
use super::server_time::{ClientTime, server_time};
use super::sibling;
use super::tree::{Forest, Place};
use model::{ClientRecord, Flag, Flags, Interval, ResultClass, ServerPhases, ServerSide};

/// What the spans of a request tell.
pub struct ServerPart {
    /// The entry span, its total and its first token; `None` where its own clock is invalid.
    pub side: Option<ServerSide>,
    /// The total, split.
    pub phases: Option<ServerPhases>,
    /// The time to the first token, split, where that token lies inside the server's time.
    pub ttft: Option<ServerPhases>,
    /// Where the server's time lies on the entry span's clock.
    pub at: Option<Interval>,
    pub painting: Painting,
    /// Labels and token counts.
    pub details: ServerDetails,
    /// How it ended, where the entry span tells.
    pub result: Option<ResultClass>,
    /// The answer's own timing.
    pub own_timing: Option<OwnTiming>,
}

/// Places, paints and measures the spans under an entry span.
pub fn measure(forest: &mut Forest, entry: Place, record: Option<&ClientRecord>, flags: &mut Flags) -> ServerPart {
    let client_time = record.and_then(ClientTime::of_record);
    sibling::place_engines(forest, entry, client_time);
    let at = server_time(forest, entry, client_time, flags);
    let client = record.and_then(|record| record.duration.or(record.wall));
    let metrics = record.and_then(|record| record.response_metrics);
    let own_timing = metrics.map(|metrics| response_metrics::place(forest, entry, at, metrics, client));
    let painting = paint::paint(forest, entry, at, flags);
    let ttft = at.and_then(|at| server_ttft(forest, entry, at, &painting, flags));
    let cut = at.zip(ttft).map(|(at, ttft)| painting.phases(Interval { start: at.start, end: at.start + ttft }, at));
    let phases = at.map(|at| painting.phases(at, at));
    if let Some(timing) = &own_timing {
        remark(timing, phases.as_ref(), flags);
    }
    ServerPart {
        side: at.map(|at| ServerSide { entry: forest.node(entry).span.span_id, total: at.length(), ttft }),
        phases,
        ttft: cut,
        at,
        details: labels::server_details(forest, entry, &painting),
        result: result_of(forest, entry),
        painting,
        own_timing,
    }
}

/// What a reader must know of the answer's own timing.
fn remark(timing: &OwnTiming, phases: Option<&ServerPhases>, flags: &mut Flags) {
    let left_over = phases.is_some_and(|phases| timing.is_left_over(phases));
    match timing.placement {
        Placement::UnitSuspect => flags.set(Flag::UnitSuspect),
        Placement::Unplaced => flags.set(Flag::ResponseMetricsUnplaced),
        Placement::Painted | Placement::Compared => flags.set_if(left_over, Flag::ResponseMetricsUnplaced),
    }
    flags.set_if(phases.is_some_and(|phases| timing.disagrees(phases)), Flag::SourceDisagreement);
}

/// How the server says that it ended: by HTTP status, else by the span's status where that is ERROR.
fn result_of(forest: &Forest, entry: Place) -> Option<ResultClass> {
    let node = forest.node(entry);
    match node.reading.http_status {
        Some(status) => Some(ResultClass::from_status(status)),
        None => node.span.error.then_some(ResultClass::Error),
    }
}
