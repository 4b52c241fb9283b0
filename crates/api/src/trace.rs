//! One trace, and the requests in it.

mod of_request;

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::explained::Explained;
use crate::nullable::nullable;
use model::{Completeness, JoinMethod, ResultClass, ServerPhase, State};

/// The answer to a question about a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TraceAnswer {
    /// A trace with several requests.
    Several(SeveralAnswer),
    /// A trace with one request.
    One(Box<RequestAnswer>),
}

/// A trace with several requests: each has its own phases, the trace has none.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = SeveralRequests)]
pub struct SeveralAnswer {
    /// The trace.
    #[schema(example = "0000000000000007000000000000012f")]
    pub trace_id: String,
    /// Always `several`.
    pub state: SeveralState,
    /// The requests.
    pub requests: Vec<RequestAnswer>,
}

/// The state of a trace with several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeveralState {
    /// More than one request.
    Several,
}

/// One request explained. Times are in milliseconds; `null` is unknown, and `flags` say why.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Request)]
pub struct RequestAnswer {
    /// The trace.
    #[schema(example = "0000000000000007000000000000012f")]
    pub trace_id: String,
    /// The trace of the server's spans, where they have another: client and server were joined by the request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "00000000000000070000000000000777")]
    pub server_trace_id: Option<String>,
    /// The request id that the client told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "req_0001")]
    pub request_id: Option<String>,
    /// The client's own span id, which tells apart the requests of one trace.
    #[schema(example = "00000000006acfc0")]
    #[serde(deserialize_with = "nullable")]
    pub client_span_id: Option<String>,
    /// The time that decides the request's window: the client's start, else the first arrival.
    #[schema(format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    pub window_at: String,
    /// `pending`, `excluded`, `matched`, `client_only` or `server_only`.
    #[schema(value_type = String, example = "matched")]
    pub state: State,
    /// Remarks, such as `queue_unknown` or `late`.
    #[schema(example = json!(["ttft_from_inner"]))]
    pub flags: Vec<String>,
    /// `ok`, `error`, `timeout`, `cancelled` or `truncated`.
    #[schema(value_type = Option<String>, example = "ok")]
    #[serde(deserialize_with = "nullable")]
    pub result: Option<ResultClass>,
    /// Whether all of a streamed answer arrived: `ok`, `no_end`, `missing` or `both`.
    #[schema(value_type = Option<String>, example = "ok")]
    #[serde(deserialize_with = "nullable")]
    pub completeness: Option<Completeness>,
    /// What the client measured; null without a client record.
    #[serde(deserialize_with = "nullable")]
    pub client: Option<ClientAnswer>,
    /// What the server measured; null without an entry span.
    #[serde(deserialize_with = "nullable")]
    pub server: Option<ServerAnswer>,
    /// The owners of the request's time; null without an entry span.
    #[serde(deserialize_with = "nullable")]
    pub phases: Option<PhasesAnswer>,
    /// The part of `generation_ms` up to the first token.
    #[serde(deserialize_with = "nullable")]
    pub prefill_ms: Option<f64>,
    /// The part of `generation_ms` after the first token.
    #[serde(deserialize_with = "nullable")]
    pub decode_ms: Option<f64>,
    /// The owners of the time to the first token; null where one of the sides does not tell it.
    #[serde(deserialize_with = "nullable")]
    pub ttft: Option<TtftAnswer>,
    /// What the client saw of the stream.
    #[serde(deserialize_with = "nullable")]
    pub stream: Option<StreamAnswer>,
    /// Speeds.
    pub rates: RatesAnswer,
    /// Tokens of the prompt.
    #[serde(deserialize_with = "nullable")]
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    #[serde(deserialize_with = "nullable")]
    pub output_tokens: Option<i64>,
    /// The labels that are known.
    #[schema(value_type = HashMap<String, String>, example = json!({"model": "m-7b", "streaming": "true"}))]
    pub dimensions: model::Dimensions,
    /// 0 until it is joined, then 1; rises when late data changed the request.
    #[schema(minimum = 0)]
    pub revision: i32,
    /// What tied the two sides together: `trace_id` or `request_id`.
    #[schema(value_type = String, example = "trace_id")]
    pub join_method: JoinMethod,
    /// (client duration − unattributed) / client duration; null where either is unknown.
    #[serde(deserialize_with = "nullable")]
    pub explained_ratio: Option<f64>,
    /// Which dialects and rules told each phase: `dialect: rule`, or `response_metrics: kind` where the answer's own
    /// timing did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, Vec<String>>, example = json!({"gpu_queue": ["response_metrics: vllm"]}))]
    pub phase_sources: BTreeMap<ServerPhase, BTreeSet<String>>,
    /// The answer's own timing, where the client's record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_metrics: Option<ResponseMetricsAnswer>,
    /// The spans that the request was painted from, outermost first.
    pub spans: Vec<SpanAnswer>,
}

/// What the answer told of its own timing, in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ResponseMetrics)]
pub struct ResponseMetricsAnswer {
    /// In which form it was told.
    #[schema(example = "vllm")]
    pub kind: String,
    /// What became of it.
    pub placement: PlacementAnswer,
    /// The engine's whole time.
    #[serde(deserialize_with = "nullable")]
    pub total_ms: Option<f64>,
    /// Work of a gateway in front of the engine.
    #[serde(deserialize_with = "nullable")]
    pub gateway_ms: Option<f64>,
    /// Waiting for a slot.
    #[serde(deserialize_with = "nullable")]
    pub queue_ms: Option<f64>,
    /// Slot to the first token.
    #[serde(deserialize_with = "nullable")]
    pub prefill_ms: Option<f64>,
    /// First token to the last.
    #[serde(deserialize_with = "nullable")]
    pub decode_ms: Option<f64>,
    /// Slot to the last token.
    #[serde(deserialize_with = "nullable")]
    pub generation_ms: Option<f64>,
}

/// What became of the answer's own timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacementAnswer {
    /// It is in the phases, since no span told the same.
    Painted,
    /// Spans told it already: it is compared with them.
    Compared,
    /// It fits no single call.
    Unplaced,
    /// It is far longer than the request: in another unit.
    UnitSuspect,
    /// No server's time is known to lay it into.
    NoServer,
}

/// The client's side, in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Client)]
pub struct ClientAnswer {
    /// Where it comes from.
    pub source: ClientSource,
    /// Start of sending to the last byte.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: Option<f64>,
    /// The same with setup.
    #[serde(deserialize_with = "nullable")]
    pub wall_ms: Option<f64>,
    /// Connection setup.
    #[serde(deserialize_with = "nullable")]
    pub setup_ms: Option<f64>,
    /// Start of sending to the first business event.
    #[serde(deserialize_with = "nullable")]
    pub ttft_ms: Option<f64>,
    /// Start of sending to the first text that a person sees.
    #[serde(deserialize_with = "nullable")]
    pub ttft_visible_ms: Option<f64>,
    /// Start of sending to the first response byte.
    #[serde(deserialize_with = "nullable")]
    pub headers_ms: Option<f64>,
    /// Scheduled to started.
    #[serde(deserialize_with = "nullable")]
    pub client_queue_ms: Option<f64>,
    /// HTTP status.
    #[serde(deserialize_with = "nullable")]
    pub status: Option<i64>,
}

/// Who tells the client's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientSource {
    /// A client record.
    Record,
    /// A CLIENT span of the caller, since no record came.
    Span,
}

/// The server's side, in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Server)]
pub struct ServerAnswer {
    /// The entry span.
    #[schema(example = "00000000006acfc1")]
    pub entry_span_id: String,
    /// The server's total time: exactly the sum of its phases.
    pub total_ms: f64,
    /// Entry start to the first token.
    #[serde(deserialize_with = "nullable")]
    pub ttft_ms: Option<f64>,
}

/// The owners of a request's time, in milliseconds. All but `network_envelope_ms` and `wall_envelope_ms` add up to the
/// server's total.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Phases)]
pub struct PhasesAnswer {
    /// Client duration less the server's total.
    #[serde(deserialize_with = "nullable")]
    pub network_envelope_ms: Option<f64>,
    /// Client wall time less the server's total, where the client cannot tell its setup apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_envelope_ms: Option<f64>,
    /// Authentication, limits, routing, preparation, waiting in pools, writing the answer.
    #[serde(deserialize_with = "nullable")]
    pub gateway_ms: Option<f64>,
    /// Accepted by the inference scheduler, no slot yet.
    #[serde(deserialize_with = "nullable")]
    pub gpu_queue_ms: Option<f64>,
    /// Inference.
    #[serde(deserialize_with = "nullable")]
    pub generation_ms: Option<f64>,
    /// An external call that does not disclose its queue.
    pub provider_ms: f64,
    /// Between the processes of the server side.
    pub upstream_envelope_ms: f64,
    /// The server's time that nothing explains.
    pub unattributed_ms: f64,
}

/// The owners of the time to the first token, in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Ttft)]
pub struct TtftAnswer {
    /// Client TTFT less the server's.
    pub envelope_ms: f64,
    /// As in `phases`, cut at the first token.
    #[serde(deserialize_with = "nullable")]
    pub gateway_ms: Option<f64>,
    /// As in `phases`, cut at the first token.
    #[serde(deserialize_with = "nullable")]
    pub gpu_queue_ms: Option<f64>,
    /// As in `phases`, cut at the first token.
    #[serde(deserialize_with = "nullable")]
    pub generation_ms: Option<f64>,
    /// As in `phases`, cut at the first token.
    pub provider_ms: f64,
    /// As in `phases`, cut at the first token.
    pub upstream_envelope_ms: f64,
    /// As in `phases`, cut at the first token.
    pub unattributed_ms: f64,
}

/// What the client saw of a stream.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Stream)]
pub struct StreamAnswer {
    /// Events with content.
    #[serde(deserialize_with = "nullable")]
    pub business_events: Option<i64>,
    /// Business events that arrived together with another.
    #[serde(deserialize_with = "nullable")]
    pub batched_events: Option<i64>,
    /// Their share of the business events.
    #[serde(deserialize_with = "nullable")]
    pub batched_share: Option<f64>,
    /// Gap between business events, median.
    #[serde(deserialize_with = "nullable")]
    pub p50_gap_ms: Option<f64>,
    /// Gap, 0.95-quantile.
    #[serde(deserialize_with = "nullable")]
    pub p95_gap_ms: Option<f64>,
    /// Gap, 0.99-quantile.
    #[serde(deserialize_with = "nullable")]
    pub p99_gap_ms: Option<f64>,
    /// Longest gap.
    #[serde(deserialize_with = "nullable")]
    pub max_gap_ms: Option<f64>,
    /// Gaps over one second.
    #[serde(deserialize_with = "nullable")]
    pub gaps_over_1s: Option<i64>,
    /// Their share of all gaps.
    #[serde(deserialize_with = "nullable")]
    pub stall_rate: Option<f64>,
    /// Whether the end marker came.
    #[serde(deserialize_with = "nullable")]
    pub done_received: Option<bool>,
    /// Highest sequence number seen.
    #[serde(deserialize_with = "nullable")]
    pub last_seq: Option<i64>,
    /// Sequence numbers that never came.
    #[serde(deserialize_with = "nullable")]
    pub missing_seq: Option<i64>,
    /// Start of sending to the last business event.
    #[serde(deserialize_with = "nullable")]
    pub last_event_ms: Option<f64>,
    /// Tokens that came after the first business event.
    #[serde(deserialize_with = "nullable")]
    pub tokens_after_first: Option<i64>,
    /// Business events that came in bursts after a silence, as out of a buffer on the way: the evidence for the flag
    /// `suspected_buffering`. 0 where nothing speaks for one, null where who measured could not tell.
    #[serde(default)]
    pub buffered_events: Option<i64>,
    /// Their share of the business events.
    #[serde(default)]
    pub buffered_share: Option<f64>,
    /// The median silence before such a burst.
    #[serde(default)]
    pub buffer_silence_ms: Option<f64>,
    /// The median number of events in one.
    #[serde(default)]
    pub buffer_burst: Option<i64>,
}

/// Speeds; null where a count or a time in them is not above zero.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Rates)]
pub struct RatesAnswer {
    /// Tokens a second, from request to last event.
    #[serde(deserialize_with = "nullable")]
    pub rate_e2e: Option<f64>,
    /// Tokens a second after the first token, from first to last event.
    #[serde(deserialize_with = "nullable")]
    pub rate_stream: Option<f64>,
    /// Tokens a second that came after the first event, from first to last event.
    #[serde(deserialize_with = "nullable")]
    pub rate_after_first: Option<f64>,
    /// Milliseconds from first to last event, a token after the first.
    #[serde(deserialize_with = "nullable")]
    pub tpot_ms: Option<f64>,
    /// Milliseconds of generation, a token.
    #[serde(deserialize_with = "nullable")]
    pub generation_ms_per_output_token: Option<f64>,
}

/// A span and what it was read as.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Span)]
pub struct SpanAnswer {
    /// Its id.
    #[schema(example = "00000000006acfc1")]
    pub span_id: String,
    /// Its parent's id, as it was sent.
    #[serde(deserialize_with = "nullable")]
    pub parent_span_id: Option<String>,
    /// Its name.
    #[schema(example = "inference.generate")]
    pub name: String,
    /// `server`, `client`, `internal`, `producer`, `consumer` or `unspecified`.
    #[schema(example = "internal")]
    pub kind: String,
    /// The service that emitted it.
    pub service: String,
    /// Start, from the entry span's start; on another clock as it was laid. Null where the span has no place there.
    #[serde(deserialize_with = "nullable")]
    pub start_offset_ms: Option<f64>,
    /// Length by its own clock; null where its end is missing or before its start.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: Option<f64>,
    /// Whose time it is; null is transparent.
    #[schema(value_type = Option<String>, example = "generation")]
    #[serde(deserialize_with = "nullable")]
    pub phase: Option<ServerPhase>,
    /// The rule that decided.
    pub rule: String,
    /// The clock that it was measured by.
    pub clock_domain: String,
    /// Whether it takes part in the phases: a span that does not is detached, ignored, or longer than its parent.
    pub painted: bool,
}

/// serde's own way would try both forms and name no field where neither fits.
impl<'de> Deserialize<'de> for TraceAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let answer = Value::deserialize(deserializer)?;
        let read = if answer.get("requests").is_some() {
            SeveralAnswer::deserialize(answer).map(Self::Several)
        } else {
            RequestAnswer::deserialize(answer).map(|one| Self::One(Box::new(one)))
        };
        read.map_err(D::Error::custom)
    }
}

impl TraceAnswer {
    /// The view of all requests of one trace; `None` where there is none.
    pub fn of(requests: &[Explained]) -> Option<Self> {
        match requests {
            [] => None,
            [one] => Some(Self::One(Box::new(one.into()))),
            [first, ..] => Some(Self::Several(SeveralAnswer {
                trace_id: first.request.trace_id.to_string(),
                state: SeveralState::Several,
                requests: requests.iter().map(RequestAnswer::from).collect(),
            })),
        }
    }

    pub fn requests(&self) -> &[RequestAnswer] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => &several.requests,
        }
    }
}
