//! The times of requests as histograms.

use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;

use super::labels::{Exemplar, With};
use model::Metric;

/// Upper bounds of the buckets, in seconds: from a fast gateway to the longest answer. They are the same for every phase
/// and never change with the configuration, so that histograms can be added up, and so that Prometheus can keep them as
/// native ones with custom bounds.
pub const BUCKETS: [f64; 21] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0,
    300.0, 600.0,
];

/// The times that have a histogram, by the names that objectives know: both pairs, and what the client measured.
pub const PHASES: [Metric; 17] = [
    Metric::NetworkEnvelope,
    Metric::Gateway,
    Metric::GpuQueue,
    Metric::Generation,
    Metric::Provider,
    Metric::UpstreamEnvelope,
    Metric::Unattributed,
    Metric::TtftEnvelope,
    Metric::TtftGateway,
    Metric::TtftGpuQueue,
    Metric::TtftGeneration,
    Metric::TtftProvider,
    Metric::TtftUpstreamEnvelope,
    Metric::TtftUnattributed,
    Metric::Duration,
    Metric::Ttft,
    Metric::Setup,
];

pub type Times = HistogramWithExemplars<Exemplar>;

/// Histograms by phase and combination.
pub type TimesFamily = Family<With, Times, fn() -> Times>;

/// A family without a histogram in it.
pub fn family() -> TimesFamily {
    Family::new_with_constructor(|| HistogramWithExemplars::new(BUCKETS.into_iter()))
}

/// A stored time in seconds. An envelope may be negative by a hair, which a sum that must not fall cannot take.
pub fn seconds(nanos: f64) -> f64 {
    nanos.max(0.0) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Unit;

    #[test]
    fn buckets_rise_from_a_millisecond_to_ten_minutes() {
        assert!(BUCKETS.windows(2).all(|pair| pair[0] < pair[1] && pair[1] / pair[0] <= 2.5));
        assert_eq!((BUCKETS[0], BUCKETS[20]), (0.001, 600.0));
    }

    #[test]
    fn every_phase_is_a_time_and_none_is_told_twice() {
        assert!(PHASES.iter().all(|metric| metric.unit() == Unit::Nanos));
        assert!((1..PHASES.len()).all(|at| !PHASES[..at].contains(&PHASES[at])));
        assert_eq!((seconds(-5e5), seconds(1.5e9)), (0.0, 1.5));
    }
}
