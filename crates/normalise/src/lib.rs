//! From the wire to the model: what is refused is counted, what is kept is trimmed to the allow-list.

mod allow;
pub mod dialect;
mod event;
mod fold;
mod otlp;
mod record;
mod refusal;
mod resource;
pub mod rules;
mod run;
mod scalar;
mod span;
mod text;

pub use event::{ExtraKeys, ParsedEvent, event};
pub use otlp::{Limits, Normalised, SPAN_LIMIT_SETTING, fragments};
pub use record::{
    ClientRecordBody, Count, DimensionsBody, Field, FieldError, Millis, ParsedRecord, SetupBody, StreamBody,
    TraceContext, TraceparentError, record,
};
pub use rules::Dialects;
pub use run::{RunError, run_configuration, run_name};
