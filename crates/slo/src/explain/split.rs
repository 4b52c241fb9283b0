//! Requests with their decompositions.

use crate::indicator::Indicator;
use model::{Interval, Metric};

/// The parts of either pair.
pub const PARTS: usize = 7;

/// Which decomposition is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pair {
    /// The client's duration: the network envelope and the server's total.
    Total,
    /// The client's time to the first token: its envelope and the server's.
    Ttft,
}

impl Pair {
    /// The one to which an indicator belongs.
    pub fn of(indicator: Indicator) -> Self {
        if indicator.is_of_ttft() { Self::Ttft } else { Self::Total }
    }

    /// The metric that is the sum of the parts.
    pub const fn whole(self) -> Metric {
        match self {
            Self::Total => Metric::Duration,
            Self::Ttft => Metric::Ttft,
        }
    }

    /// Its parts, in the order of a request's way.
    pub const fn parts(self) -> [Metric; PARTS] {
        match self {
            Self::Total => [
                Metric::NetworkEnvelope,
                Metric::Gateway,
                Metric::GpuQueue,
                Metric::Generation,
                Metric::Provider,
                Metric::UpstreamEnvelope,
                Metric::Unattributed,
            ],
            Self::Ttft => [
                Metric::TtftEnvelope,
                Metric::TtftGateway,
                Metric::TtftGpuQueue,
                Metric::TtftGeneration,
                Metric::TtftProvider,
                Metric::TtftUpstreamEnvelope,
                Metric::TtftUnattributed,
            ],
        }
    }
}

/// One request with its whole decomposition, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    pub whole: f64,
    /// The parts; an unknown one is none of its own, and its time is in the unattributed one.
    pub parts: [Option<f64>; PARTS],
    /// Which of the objectives looked at it does not keep, a bit each.
    pub past: u64,
}

/// Requests of a window whose decomposition is whole, and how many there could have been.
#[derive(Debug, Clone, PartialEq)]
pub struct Splits {
    pub window: Interval,
    /// The requests.
    pub splits: Vec<Split>,
    /// Settled client records of whole answers that the conditions are about.
    pub records: u64,
    /// Why not all of them were looked at, so that nothing can be said.
    pub unread: Option<Unread>,
}

/// Why the requests of a window were not all looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unread {
    /// There are more than are read one by one.
    TooMany,
    /// The first of them are older than the retention.
    Gone,
}

impl Splits {
    /// The part of the records that tells the whole decomposition; `None` without any.
    pub fn coverage(&self) -> Option<f64> {
        (self.records > 0).then(|| self.splits.len() as f64 / self.records as f64)
    }
}
