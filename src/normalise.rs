//! From the wire to the model: what is refused is counted, what is kept is trimmed to the allow-list.

mod allow;
pub mod canonical;
pub mod dialect;
pub mod dimensions;
mod fold;
mod otlp;
pub mod record;
mod refusal;
mod resource;
pub mod scalar;
mod span;
pub mod text;

pub use otlp::{Limits, Normalised, SPAN_LIMIT_SETTING, fragments};
