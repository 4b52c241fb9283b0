//! What an objective is about.

use std::fmt;

use model::{Metric, ResultClass, Section, Unit};

/// The quantity that an objective limits: a metric of each request, or a share of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Indicator {
    /// A value of each request: a phase of either pair, `ttft`, `duration`, `setup`, a rate, `stall_rate` and so on.
    Metric(Metric),
    /// The share of client records that ended in this class: `error_share`, `truncated_share` and so on.
    ResultShare(ResultClass),
    /// The share of client records that were matched: `join_coverage`.
    JoinCoverage,
    /// The part of all of the servers' time that nothing explains: `unattributed_share`.
    UnattributedShare,
    /// The share of planned iterations that a load generator did not start: `dropped_iterations`.
    DroppedIterations,
}

/// Which side of its threshold is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Small is good: times, and shares of what is unwanted.
    AtMost,
    /// Large is good: rates and coverage.
    AtLeast,
}

impl Direction {
    /// In words, before a threshold.
    pub const fn words(self) -> &'static str {
        match self {
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
        }
    }

    /// As a sign, before a threshold.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "≤",
            Self::AtLeast => "≥",
        }
    }
}

impl Indicator {
    /// Every indicator, in the order in which the documentation lists them.
    pub fn all() -> impl Iterator<Item = Self> {
        let shares = ResultClass::ALL.into_iter().filter(|class| *class != ResultClass::Ok).map(Self::ResultShare);
        Metric::ALL.iter().copied().map(Self::Metric).chain(shares).chain([
            Self::JoinCoverage,
            Self::UnattributedShare,
            Self::DroppedIterations,
        ])
    }

    /// From the name that an objective's `phase` gives, and whether the objective counts requests, by a quantile or a
    /// ratio. Only `unattributed_share` is one thing of each request, and another of all their time together.
    pub fn named(name: &str, of_each_request: bool) -> Option<Self> {
        let mut named = Self::all().filter(|indicator| indicator.name() == name);
        let first = named.next()?;
        Some(named.find(|_| !of_each_request).unwrap_or(first))
    }

    /// From its name alone: of the whole where a request has it too.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::named(name, false)
    }

    /// The name in an objective's `phase`, the API and the labels of alerts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.column(),
            Self::ResultShare(ResultClass::Ok) => "ok_share",
            Self::ResultShare(ResultClass::Error) => "error_share",
            Self::ResultShare(ResultClass::Timeout) => "timeout_share",
            Self::ResultShare(ResultClass::Cancelled) => "cancelled_share",
            Self::ResultShare(ResultClass::Truncated) => "truncated_share",
            Self::JoinCoverage => "join_coverage",
            Self::UnattributedShare => "unattributed_share",
            Self::DroppedIterations => "dropped_iterations",
        }
    }

    /// Which side of a threshold is good.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Metric(metric) => match metric.unit() {
                Unit::TokensPerSecond => Direction::AtLeast,
                Unit::Nanos | Unit::Millis | Unit::Share => Direction::AtMost,
            },
            Self::JoinCoverage => Direction::AtLeast,
            Self::ResultShare(_) | Self::UnattributedShare | Self::DroppedIterations => Direction::AtMost,
        }
    }

    /// The unit of its threshold and its values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Metric(metric) => metric.unit(),
            Self::ResultShare(_) | Self::JoinCoverage | Self::UnattributedShare | Self::DroppedIterations => {
                Unit::Share
            }
        }
    }

    /// Whether it needs the server's side of a request, so that one whose spans never came cannot tell it.
    pub fn needs_server(self) -> bool {
        match self {
            Self::Metric(metric) => !metric.client_tells(),
            Self::UnattributedShare => true,
            Self::ResultShare(_) | Self::JoinCoverage | Self::DroppedIterations => false,
        }
    }

    /// Whether it is a part of the time to the first token.
    pub fn is_of_ttft(self) -> bool {
        matches!(self, Self::Metric(metric) if metric == Metric::Ttft || metric.section() == Section::Ttft)
    }
}

impl fmt::Display for Indicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_and_none_is_taken_twice() {
        for indicator in Indicator::all() {
            let of_each_request = matches!(indicator, Indicator::Metric(_));
            assert_eq!(Indicator::named(indicator.name(), of_each_request), Some(indicator));
        }
        let pooled = Indicator::UnattributedShare;
        assert_eq!(Indicator::from_name("unattributed_share"), Some(pooled));
        let twice = Indicator::all().filter(|one| Indicator::all().filter(|two| one.name() == two.name()).count() > 1);
        assert_eq!(twice.collect::<Vec<_>>(), [Indicator::Metric(Metric::UnattributedShare), pooled]);
        for name in ["gpu_queue", "ttft_gpu_queue", "ttft", "duration", "setup", "rate_stream", "stall_rate"] {
            assert!(matches!(Indicator::from_name(name), Some(Indicator::Metric(_))), "{name}");
        }
        assert_eq!(Indicator::from_name("queue"), None);
    }

    #[test]
    fn only_rates_and_coverage_want_to_be_large() {
        let large: Vec<&str> =
            Indicator::all().filter(|one| one.direction() == Direction::AtLeast).map(Indicator::name).collect();
        assert_eq!(large, ["rate_e2e", "rate_stream", "rate_after_first", "join_coverage"]);
    }
}
