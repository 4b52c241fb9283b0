//! A joined request: what is stored, aggregated and served.

use serde::{Deserialize, Serialize};

use super::dimension::Dimensions;
use super::flag::Flags;
use super::id::{SpanId, TraceId};
use super::phase::ServerPhases;
use super::record::{Completeness, ResultClass, StreamSummary};
use super::time::{Nanos, UnixNanos};

/// What became of a request (design, section 6). The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum State {
    /// Not settled yet, or a lone side that may still find its other.
    Pending = 0,
    /// In no distribution; a flag says why.
    Excluded = 1,
    /// A client record and an entry span.
    Matched = 2,
    /// A client record whose spans never came.
    ClientOnly = 3,
    /// An entry span whose client record never came.
    ServerOnly = 4,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Excluded, Self::Matched, Self::ClientOnly, Self::ServerOnly];

    /// The name in the API, the database and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Excluded => "excluded",
            Self::Matched => "matched",
            Self::ClientOnly => "client_only",
            Self::ServerOnly => "server_only",
        }
    }

    /// From the stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i16 == number)
    }
}

/// What ties the two sides together. The number is stored: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum JoinMethod {
    /// The W3C trace id.
    TraceId = 0,
    /// A request id that both sides carry, where a proxy replaced the trace id.
    RequestId = 1,
}

impl JoinMethod {
    /// From the stored number.
    pub const fn from_number(number: i16) -> Option<Self> {
        match number {
            0 => Some(Self::TraceId),
            1 => Some(Self::RequestId),
            _ => None,
        }
    }
}

/// The client's side of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientSide {
    /// Start of sending to the last byte.
    pub duration: Option<Nanos>,
    /// The same with setup.
    pub wall: Option<Nanos>,
    /// Connection setup.
    pub setup: Option<Nanos>,
    /// Start of sending to the first business event.
    pub ttft: Option<Nanos>,
    /// Start of sending to the first text that a person sees.
    pub ttft_visible: Option<Nanos>,
    /// Start of sending to the first response byte.
    pub headers: Option<Nanos>,
    /// Scheduled to started.
    pub client_queue: Option<Nanos>,
    /// HTTP status.
    pub status: Option<i64>,
}

impl ClientSide {
    /// First response byte to the first business event; `None` where the two contradict each other.
    pub fn headers_to_first_token(&self) -> Option<Nanos> {
        Some(self.ttft? - self.headers?).filter(|time| *time >= Nanos::ZERO)
    }
}

/// The server's side of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSide {
    pub entry: SpanId,
    /// The server's total time.
    pub total: Nanos,
    /// Entry start to the first token.
    pub ttft: Option<Nanos>,
}

/// The time to the first token, split like the total and cut at the server's first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtftPhases {
    /// Client TTFT less server TTFT.
    pub envelope: Nanos,
    /// The server's part.
    pub server: ServerPhases,
}

/// Speeds of an answer (design, section 5): tokens a second, and milliseconds a token. `None` where not defined.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Tokens over the time from request to last event.
    pub rate_e2e: Option<f64>,
    /// Tokens after the first over the time from first to last event.
    pub rate_stream: Option<f64>,
    /// Tokens that came after the first event over the same time.
    pub rate_after_first: Option<f64>,
    /// Milliseconds from first to last event, a token after the first.
    pub tpot_ms: Option<f64>,
    /// Milliseconds of generation, a token.
    pub generation_ms_per_output_token: Option<f64>,
}

/// One joined request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its trace; the client's, where client and server have different ones.
    pub trace_id: TraceId,
    /// The server's trace, where it is another one.
    pub server_trace: Option<TraceId>,
    /// The request id that the client told.
    pub request_id: Option<String>,
    /// The client's span id, which tells apart the requests of one trace.
    pub client_span: Option<SpanId>,
    /// The time that decides its window: the client's start, else the first arrival.
    pub window_at: UnixNanos,
    /// What became of it.
    pub state: State,
    /// How it ended; `None` where neither side tells.
    pub result: Option<ResultClass>,
    /// Remarks.
    pub flags: Flags,
    /// What tied the sides together.
    pub join_method: JoinMethod,
    /// The client's side.
    pub client: Option<ClientSide>,
    /// The server's side.
    pub server: Option<ServerSide>,
    /// Client duration less the server's total.
    pub network_envelope: Option<Nanos>,
    /// Client wall time less the server's total, where duration is unknown.
    pub wall_envelope: Option<Nanos>,
    /// The server's total, split.
    pub phases: Option<ServerPhases>,
    /// The time to the first token, split.
    pub ttft: Option<TtftPhases>,
    /// Speeds.
    pub rates: Rates,
    /// What the client saw of the stream.
    pub stream: Option<StreamSummary>,
    /// Whether all of the stream arrived.
    pub completeness: Option<Completeness>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// The labels that the client told.
    pub client_dimensions: Dimensions,
    /// All labels: the client's, completed by the server's.
    pub dimensions: Dimensions,
}

impl Request {
    /// Whether the rhythm of its stream could be judged, so that it would be marked if something held events back.
    pub fn tells_rhythm(&self) -> bool {
        self.stream.is_some_and(|stream| stream.suspected_buffering(None, None).is_some())
    }
}
