//! Wire types of REST answers: one type each, which the server writes, the OpenAPI document describes and the commands
//! read. A field that a reader needs and does not find is an error that names it.

pub mod coverage;
mod explained;
mod metric;
mod nullable;
pub mod phases;
mod problem;
mod requests;
mod stream;
mod time;
pub mod trace;

pub use coverage::{CoverageAnswer, CoverageSeriesAnswer, CoverageStep};
pub use explained::Explained;
pub use metric::{MetricAnswer, QuantileAnswer};
pub use phases::{GroupAnswer, PercentilesAnswer, SeriesAnswer};
pub use problem::{FieldProblem, Problem};
pub use requests::RequestsAnswer;
pub use stream::{BufferingAnswer, CompletenessAnswer, ThroughputAnswer};
pub use time::rfc3339;
pub use trace::{RequestAnswer, SpanAnswer, TraceAnswer, TtftAnswer};
