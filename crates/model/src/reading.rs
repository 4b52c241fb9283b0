//! What a dialect reads from one span.

use std::borrow::Cow;

use crate::{Dimensions, Flags, Nanos, ServerPhase};

/// The part of a generation that a duration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubPhase {
    /// Up to the first token.
    Prefill,
    /// After the first token.
    Decode,
}

/// Where inside its span a duration lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Laid forward from the start.
    Start,
    /// Laid backwards from the end, in the order given.
    End,
    /// At this offset from the start.
    At(Nanos),
    /// From this offset until the first span inside it on its clock begins. The length is the most that it can be, and
    /// what it is where nothing lies inside.
    UntilChild(Nanos),
}

/// A duration that a span tells by attributes or events (design, section 3, rule 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Laid {
    /// Whose time it is.
    pub phase: ServerPhase,
    /// Which part of a generation.
    pub sub: Option<SubPhase>,
    /// How long; never negative.
    pub length: Nanos,
    /// Where it is laid.
    pub anchor: Anchor,
}

/// How far a first-token time is to be trusted; a smaller one is trusted more .
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FirstTokenSource {
    /// An event that marks the first token.
    Event,
    /// An attribute of the server or engine that made the token.
    Attribute,
    /// The end of an engine's prefill span.
    PrefillEnd,
    /// What a gateway saw of its upstream.
    FirstChunk,
    /// The first chunk event, perhaps of a role-only chunk.
    ChunkEvent,
    /// The first body part written, perhaps without a token.
    BodySend,
}

/// A first token that a span tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstToken {
    /// From the span's own start.
    pub offset: Nanos,
    /// Where it comes from.
    pub source: FirstTokenSource,
}

/// What a span is in the house it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Nothing special: transparent unless it has a phase.
    #[default]
    Plain,
    /// An inference engine's own request span: yields to a gateway's as entry, and what it does not tell of its inside
    /// is unattributed.
    Engine,
    /// A stage inside an engine.
    EngineStage,
    /// The server span of a pure proxy, whose own time outside its attempts is gateway time.
    ProxyServer,
    /// A pure proxy's attempt: opaque where nothing lies inside it.
    ProxyAttempt,
    /// What a proxy's helper sees of the stream from beside it (Envoy's external processors): yields to the proxy's own
    /// span as entry, and tells nothing where a span beside it shows what it saw.
    Observer,
    /// ASGI's start or body message, useful for its time only and never painted or shown.
    AsgiSend {
        /// Whether it carries a part of the body.
        body: bool,
    },
    /// Known noise: neither painted nor shown.
    Noise,
}

/// What a CLIENT span lasts until.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientEnd {
    /// The answer's headers, or nobody knows: it must not be taken for the whole call.
    #[default]
    Headers,
    /// The answer's last byte.
    Body,
}

/// What one span tells, as its dialect reads it. Everything that later stages need of attributes and names is here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The dialect that recognised the span; empty where none did.
    pub dialect: Cow<'static, str>,
    /// The rule that decided, for a person to look up.
    pub rule: Cow<'static, str>,
    /// What the span is.
    pub role: Role,
    /// Whose time the span's interval is; `None` is transparent.
    pub phase: Option<ServerPhase>,
    /// Which part of a generation the interval is.
    pub sub: Option<SubPhase>,
    /// Whether the span may be a server's entry though its kind is not SERVER.
    pub root: bool,
    /// Whether it is a GenAI client span, which makes it a call whatever its kind.
    pub genai_client: bool,
    /// What it lasts until, where it is of kind CLIENT.
    pub client_end: ClientEnd,
    /// Whether it writes the answer: it may extend the server's end, and its first-token event is the entry's.
    pub writes_response: bool,
    /// Whether spans beside it that lie inside it in time are its own work, though they name its parent as theirs.
    pub holds_siblings: bool,
    /// Whether it hands the work on, and so may end while spans that name it as their parent go on: they are taken as
    /// its parent's.
    pub hands_on: bool,
    /// Durations that it tells of its inside: those laid from the start first, then those laid from the end, last
    /// first. A span inside that tells the same phase of the engine goes before them.
    pub laid: Vec<Laid>,
    /// Phases that this system leaves out where they took no time.
    pub absent_is_zero: Vec<ServerPhase>,
    pub first_token: Option<FirstToken>,
    /// Whether what looks like a first token in it is known to be none.
    pub no_first_token: bool,
    pub http_status: Option<i64>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Whether the answer was streamed.
    pub streaming: Option<bool>,
    /// Whether the request loaded the model first.
    pub cold_start: Option<bool>,
    /// The labels it tells (model, provider, region, pool, priority).
    pub dimensions: Dimensions,
    /// Request ids that the client may know too.
    pub request_ids: Vec<String>,
    /// Remarks, such as `unit_suspect`.
    pub flags: Flags,
}

impl Reading {
    /// What a dialect's rule recognised.
    pub fn of(dialect: &'static str, rule: impl Into<Cow<'static, str>>) -> Self {
        Self { dialect: Cow::Borrowed(dialect), rule: rule.into(), ..Self::default() }
    }

    /// A call of a model as its caller sees it.
    pub fn model_call(dialect: &'static str, rule: impl Into<Cow<'static, str>>) -> Self {
        Self { phase: Some(ServerPhase::Provider), genai_client: true, ..Self::of(dialect, rule) }
    }
}
