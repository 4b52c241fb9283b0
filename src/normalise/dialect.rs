//! What a span means: which owner its time has, and what else it tells. One file a system.

mod durations;
mod dynamo;
mod first_token;
mod genai;
pub(super) mod http;
mod labels;
mod litellm;
mod llm_d;
mod native;
mod proxy;
#[cfg(test)]
pub(crate) mod sample;
mod sglang;
mod tgi;
mod vllm;

use std::borrow::Cow;

pub(super) use durations::far_beyond;

use crate::model::{Dimensions, Flags, Nanos, ServerPhase, Span};

/// The part of a generation that a duration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubPhase {
    /// Up to the first token.
    Prefill,
    /// After the first token.
    Decode,
}

/// Which end of its span a duration without a position is laid against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Laid forward from the start.
    Start,
    /// Laid backwards from the end, in the order given.
    End,
}

/// A duration that a span tells as an attribute (design, section 3, rule 7).
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

/// How far a first-token time is to be trusted; a smaller one is trusted more (`span-dialects`, section 4).
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
    /// ASGI's start or body message, useful for its time only and never painted or shown.
    AsgiSend {
        /// Whether it carries a part of the body.
        body: bool,
    },
    /// Known noise: neither painted nor shown.
    Noise,
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
    /// Whether it writes the answer: it may extend the server's end, and its first-token event is the entry's.
    pub writes_response: bool,
    /// Durations without a position: those laid from the start first, then those laid from the end, last first.
    pub laid: Vec<Laid>,
    /// Phases that this system leaves out where they took no time.
    pub absent_is_zero: Vec<ServerPhase>,
    /// The first token.
    pub first_token: Option<FirstToken>,
    /// HTTP status, where told.
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
    fn of(dialect: &'static str, rule: impl Into<Cow<'static, str>>) -> Self {
        Self { dialect: Cow::Borrowed(dialect), rule: rule.into(), ..Self::default() }
    }
}

/// What one span name means in a dialect.
struct NameRule {
    name: &'static str,
    role: Role,
    phase: Option<ServerPhase>,
    sub: Option<SubPhase>,
}

impl NameRule {
    const fn new(name: &'static str, role: Role, phase: Option<ServerPhase>, sub: Option<SubPhase>) -> Self {
        Self { name, role, phase, sub }
    }

    fn find(rules: &'static [Self], name: &str) -> Option<&'static Self> {
        rules.iter().find(|rule| rule.name == name)
    }

    fn reading(&self, dialect: &'static str) -> Reading {
        Reading { role: self.role, phase: self.phase, sub: self.sub, ..Reading::of(dialect, self.name) }
    }
}

/// A system: how it is recognised and read, and which attributes and events that needs.
struct Dialect {
    name: &'static str,
    recognised_by: &'static str,
    read: fn(&Span) -> Option<Reading>,
    keys: &'static [&'static str],
}

/// In the order in which they are asked: engines before proxies, what is special before what is general.
const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "sglang",
        recognised_by: "Req … with rid, module or SGLang's scope; its stage names",
        read: sglang::read,
        keys: sglang::KEYS,
    },
    Dialect {
        name: "tgi",
        recognised_by: "handler spans in TGI's scope or with Rust-style durations",
        read: tgi::read,
        keys: tgi::KEYS,
    },
    Dialect {
        name: "vllm",
        recognised_by: "llm_request, omni_request, or gen_ai.latency.time_in_*",
        read: vllm::read,
        keys: vllm::KEYS,
    },
    Dialect {
        name: "envoy, kong, apisix",
        recognised_by: "component=proxy, upstream_cluster, response_flags; kong, kong.*; apisix.route_id",
        read: proxy::read,
        keys: proxy::KEYS,
    },
    Dialect {
        name: "dynamo",
        recognised_by: "http-request and engine.generate in Dynamo's scope",
        read: dynamo::read,
        keys: dynamo::KEYS,
    },
    Dialect {
        name: "litellm",
        recognised_by: "Received Proxy Server Request, litellm.preprocessing.duration_ms, LiteLLM's scope",
        read: litellm::read,
        keys: litellm::KEYS,
    },
    Dialect {
        name: "llm-d",
        recognised_by: "gateway.request*, llm_d.epp.*, llm_d.pd_proxy.*",
        read: llm_d::read,
        keys: &[],
    },
    Dialect {
        name: "native",
        recognised_by: "span names such as inference.generate; llm.phase on any span",
        read: native::read,
        keys: native::KEYS,
    },
    Dialect {
        name: "genai, openinference, openllmetry",
        recognised_by: "gen_ai.operation.name, openinference.span.kind, llm.request.type, litellm_request",
        read: genai::read,
        keys: genai::KEYS,
    },
    Dialect {
        name: "http",
        recognised_by: "http.request.method or http.method; ASGI's http send and http receive",
        read: http::read,
        keys: http::KEYS,
    },
];

/// What a person may know of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name, or the names of the systems that it tells apart.
    pub name: &'static str,
    /// What it recognises spans by.
    pub recognised_by: &'static str,
    /// The attributes that it reads beside those that all dialects share.
    pub keys: &'static [&'static str],
}

/// The dialects that are built in, in the order in which they are asked.
pub fn built_in() -> impl Iterator<Item = BuiltIn> {
    DIALECTS.iter().map(|dialect| BuiltIn {
        name: dialect.name,
        recognised_by: dialect.recognised_by,
        keys: dialect.keys,
    })
}

/// What a span tells to the built-in dialects: the first that recognises it decides; a declared phase stands above all.
pub fn read(span: &Span) -> Reading {
    complete(span, recognise(span))
}

/// What the first dialect that recognises a span reads of it.
pub(super) fn recognise(span: &Span) -> Reading {
    DIALECTS.iter().find_map(|dialect| (dialect.read)(span)).unwrap_or_default()
}

/// Fills in what a dialect left open: what has one meaning in all systems, and the phase that the span itself declares.
pub(super) fn complete(span: &Span, mut reading: Reading) -> Reading {
    labels::fill(span, &mut reading);
    first_token::fill(span, &mut reading);
    native::declare(span, &mut reading);
    reading
}

/// The span attributes that any dialect reads.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().flat_map(|dialect| dialect.keys).copied().chain(labels::keys()).chain(first_token::keys())
}

/// The events that any dialect reads.
pub(super) fn events() -> impl Iterator<Item = &'static str> {
    first_token::events()
}

#[cfg(test)]
mod tests;
