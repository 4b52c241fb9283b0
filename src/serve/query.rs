//! What a reader may ask: the parameters that all reading resources share.
//!
//! A resource lists its parameters as structs that derive [`utoipa::IntoParams`]; [`Parameters::read`] takes the known
//! names from there, so that the document and the check cannot differ.

mod distribution;
mod parameters;
mod selection;
mod time;

pub use distribution::{Distribution, DistributionParams};
pub use parameters::{Parameters, names};
pub use selection::{SelectionParams, WindowParams, read_selection, read_window};
pub use time::{parse_duration, parse_time};
