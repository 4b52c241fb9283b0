//! What a span means: which owner its time has, and what else it tells. One file a system.

mod ai_sdk;
mod apisix;
mod client;
mod durations;
mod dynamo;
mod envoy;
mod envoy_ai_gateway;
mod first_token;
mod genai;
pub(super) mod http;
mod kong;
mod labels;
mod litellm;
mod llm_d;
mod native;
mod openinference;
mod openllmetry;
mod origin;
mod proxy;
mod ray_serve;
#[cfg(test)]
pub(crate) mod sample;
mod sglang;
mod smg;
mod tensorrt_llm;
mod tgi;
mod triton;
mod vllm;

pub(super) use durations::far_beyond;

use model::reading::{Anchor, ClientEnd, FirstToken, FirstTokenSource, Laid, Reading, Role, SubPhase};
use model::{ServerPhase, Span};

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
    events: &'static [&'static str],
}

/// In the order in which they are asked: engines before proxies, what is special before what is general.
const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "sglang",
        recognised_by: "Req … with rid, module or SGLang's scope or service; its stage names",
        read: sglang::read,
        keys: sglang::KEYS,
        events: &[],
    },
    Dialect {
        name: "smg",
        recognised_by: "SGLang's model gateway: scope or service smg, or module=smg",
        read: smg::read,
        keys: smg::KEYS,
        events: &[],
    },
    Dialect {
        name: "tgi",
        recognised_by: "handler spans in TGI's scope, service or module, or with Rust-style durations",
        read: tgi::read,
        keys: tgi::KEYS,
        events: &[],
    },
    Dialect {
        name: "triton",
        recognised_by: "InferRequest, triton.model_name, the events REQUEST_START and QUEUE_START; compute with COMPUTE_START",
        read: triton::read,
        keys: triton::KEYS,
        events: triton::EVENTS,
    },
    Dialect {
        name: "tensorrt-llm",
        recognised_by: "scope trt.llm, a request span in its service, gen_ai.latency.kv_cache_transfer_time, its events",
        read: tensorrt_llm::read,
        keys: tensorrt_llm::KEYS,
        events: tensorrt_llm::EVENTS,
    },
    Dialect {
        name: "vllm",
        recognised_by: "llm_request, omni_request, vllm.request of kind SERVER or in vLLM's scope; gen_ai.latency.time_in_*",
        read: vllm::read,
        keys: vllm::KEYS,
        events: &[],
    },
    Dialect {
        name: "envoy-ai-gateway",
        recognised_by: "scope envoyproxy/ai-gateway, service ai-gateway",
        read: envoy_ai_gateway::read,
        keys: &[],
        events: &[],
    },
    Dialect {
        name: "kong",
        recognised_by: "kong, kong.*; kong.propagation_only",
        read: kong::read,
        keys: kong::KEYS,
        events: &[],
    },
    Dialect {
        name: "apisix",
        recognised_by: "apisix.route_id, apisix.service_id, apisix.phase.*",
        read: apisix::read,
        keys: apisix::KEYS,
        events: &[],
    },
    Dialect {
        name: "envoy",
        recognised_by: "component=proxy, upstream_cluster, response_flags, scope envoy",
        read: envoy::read,
        keys: envoy::KEYS,
        events: &[],
    },
    Dialect {
        name: "dynamo",
        recognised_by: "http-request and engine.generate in Dynamo's scope, service or module or with its attributes; router.route_request, handle_payload",
        read: dynamo::read,
        keys: dynamo::KEYS,
        events: &[],
    },
    Dialect {
        name: "llm-d",
        recognised_by: "gateway.request*, llm_d.epp.*, llm_d.pd_proxy.*",
        read: llm_d::read,
        keys: &[],
        events: &[],
    },
    Dialect {
        name: "ray-serve",
        recognised_by: "proxy_http_request, route_to_replica, replica_handle_request",
        read: ray_serve::read,
        keys: &[],
        events: &[],
    },
    Dialect {
        name: "litellm",
        recognised_by: "Received Proxy Server Request, litellm_request, litellm.preprocessing.duration_ms, LiteLLM's scope or service",
        read: litellm::read,
        keys: litellm::KEYS,
        events: &[],
    },
    Dialect {
        name: "native",
        recognised_by: "span names such as inference.generate; llm.phase on any span",
        read: native::read,
        keys: native::KEYS,
        events: &[],
    },
    Dialect {
        name: "ai-sdk",
        recognised_by: "ai.….doStream, .doGenerate, .doEmbed",
        read: ai_sdk::read,
        keys: &[],
        events: &[],
    },
    Dialect {
        name: "openinference",
        recognised_by: "openinference.span.kind",
        read: openinference::read,
        keys: openinference::KEYS,
        events: &[],
    },
    Dialect {
        name: "openllmetry",
        recognised_by: "llm.request.type on a client span",
        read: openllmetry::read,
        keys: openllmetry::KEYS,
        events: &[],
    },
    Dialect {
        name: "genai",
        recognised_by: "gen_ai.operation.name; a client span with gen_ai.provider.name or gen_ai.system",
        read: genai::read,
        keys: genai::KEYS,
        events: &[],
    },
    Dialect {
        name: "http",
        recognised_by: "http.request.method or http.method; ASGI's http send and http receive",
        read: http::read,
        keys: http::KEYS,
        events: &[],
    },
];

/// What a person may know of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
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
    client::fill(span, &mut reading);
    native::declare(span, &mut reading);
    reading
}

/// The span attributes that any dialect reads.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let own = DIALECTS.iter().flat_map(|dialect| dialect.keys).chain(origin::KEYS).copied();
    own.chain(labels::keys()).chain(first_token::keys())
}

/// The events that any dialect reads.
pub(super) fn events() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().flat_map(|dialect| dialect.events).copied().chain(first_token::events())
}

/// The resource attributes that any dialect reads.
pub(super) fn resource_keys() -> impl Iterator<Item = &'static str> {
    vllm::RESOURCE_KEYS.iter().copied()
}

#[cfg(test)]
mod tests;
