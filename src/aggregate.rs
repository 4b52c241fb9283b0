//! Digests, quantiles, intervals, bounds, coverage: pure.

pub mod metric;

pub use metric::{Metric, Reading, Section, Unit};
