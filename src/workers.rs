//! What runs beside the listeners: joining settled traces, building rollups.

pub mod join;
pub mod rollup;
