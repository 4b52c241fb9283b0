//! What a reader may ask: the extractor of all queries, and the groups of parameters that several resources share.
//!
//! A group is one struct, which serde parses and [`utoipa::IntoParams`] documents, so that the two cannot differ.

mod distribution;
mod parameters;
mod selection;
mod time;
mod values;

pub use distribution::{Distribution, DistributionParams};
pub use parameters::Parameters;
pub use selection::{FilterParams, WindowParams, read_selection};
pub use time::{parse_duration, parse_time};
pub use values::{list, number, several, single};
