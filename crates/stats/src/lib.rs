//! Quantiles, digests, intervals, bounds, coverage, bias: values in, values out.
//!
//! Requests become [`cell`]s; a [`Question`] asks the cells of a window and gets an [`Answer`].

pub mod answer;
pub mod bias;
pub mod bounds;
pub mod cell;
pub mod coverage;
pub mod digest;
pub mod interval;
pub mod quantile;
pub mod rollup;
pub mod sample;
pub mod scope;
pub mod stream;
pub mod summary;

pub use answer::{Answer, Contents, Group, Question, Window};
pub use quantile::Quantile;
