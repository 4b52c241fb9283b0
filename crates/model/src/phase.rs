//! The owners of time.

use serde::{Deserialize, Serialize};

use super::time::Nanos;

/// An owner of a stretch of the server's time. The order is the order of strength in which sibling subtrees are merged
/// (design, section 3, rule 4): a smaller one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerPhase {
    /// Inference, from slot to last token or cancel.
    Generation,
    /// An external call that does not disclose its queue.
    Provider,
    /// Accepted by the inference scheduler, no slot yet.
    GpuQueue,
    /// Authentication, limits, routing, preparation, waiting in pools, writing the answer.
    Gateway,
    /// An inner hop: a CLIENT span less the other process's own span inside it.
    UpstreamEnvelope,
    /// The server's time that nothing above explains.
    Unattributed,
}

impl ServerPhase {
    /// All of them, strongest first.
    pub const ALL: [Self; 6] =
        [Self::Generation, Self::Provider, Self::GpuQueue, Self::Gateway, Self::UpstreamEnvelope, Self::Unattributed];

    /// The name in the API, the database and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Provider => "provider",
            Self::GpuQueue => "gpu_queue",
            Self::Gateway => "gateway",
            Self::UpstreamEnvelope => "upstream_envelope",
            Self::Unattributed => "unattributed",
        }
    }
}

/// Every phase of a request, in the order in which answers list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Client duration less the server's total.
    NetworkEnvelope,
    /// A part of the server's total.
    Server(ServerPhase),
}

impl Phase {
    /// All of them, in the order of a request's way.
    pub const ALL: [Self; 7] = [
        Self::NetworkEnvelope,
        Self::Server(ServerPhase::Gateway),
        Self::Server(ServerPhase::GpuQueue),
        Self::Server(ServerPhase::Generation),
        Self::Server(ServerPhase::Provider),
        Self::Server(ServerPhase::UpstreamEnvelope),
        Self::Server(ServerPhase::Unattributed),
    ];

    /// The name in the API, the database and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetworkEnvelope => "network_envelope",
            Self::Server(phase) => phase.name(),
        }
    }
}

/// The server's total, split. `None` is unknown, which is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ServerPhases {
    /// See [`ServerPhase::Gateway`].
    pub gateway: Option<Nanos>,
    /// See [`ServerPhase::GpuQueue`].
    pub gpu_queue: Option<Nanos>,
    /// See [`ServerPhase::Generation`]; contains `prefill` and `decode`.
    pub generation: Option<Nanos>,
    /// The part of `generation` up to the first token, where it is told.
    pub prefill: Option<Nanos>,
    /// The part of `generation` after the first token, where it is told.
    pub decode: Option<Nanos>,
    /// See [`ServerPhase::Provider`]; zero where there is no such call.
    pub provider: Nanos,
    /// See [`ServerPhase::UpstreamEnvelope`]; zero where there is no inner hop.
    pub upstream_envelope: Nanos,
    /// See [`ServerPhase::Unattributed`].
    pub unattributed: Nanos,
}

impl ServerPhases {
    /// The sum of the phases, unknown counted as zero: exactly the server's total.
    pub fn total(&self) -> Nanos {
        ServerPhase::ALL.into_iter().filter_map(|phase| self.get(phase)).sum()
    }

    /// One phase; `None` where it is unknown.
    pub fn get(&self, phase: ServerPhase) -> Option<Nanos> {
        match phase {
            ServerPhase::Generation => self.generation,
            ServerPhase::Provider => Some(self.provider),
            ServerPhase::GpuQueue => self.gpu_queue,
            ServerPhase::Gateway => self.gateway,
            ServerPhase::UpstreamEnvelope => Some(self.upstream_envelope),
            ServerPhase::Unattributed => Some(self.unattributed),
        }
    }
}
