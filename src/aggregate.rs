//! Digests, quantiles, intervals, bounds, coverage: pure.

pub mod bounds;
pub mod digest;
pub mod interval;
pub mod metric;
pub mod quantile;

pub use metric::{Metric, Reading, Section, Unit};
pub use quantile::Quantile;
