//! Plain types that every stage shares. This module imports nothing of ours.

pub mod alias;
pub mod arrival;
pub mod dimension;
pub mod event;
pub mod flag;
pub mod id;
pub mod metric;
pub mod observation;
pub mod phase;
pub mod reading;
pub mod record;
pub mod request;
pub mod response_metrics;
pub mod rhythm;
pub mod run;
pub mod selection;
pub mod span;
#[cfg(test)]
mod stored_numbers;
pub mod time;

pub use alias::{Alias, Side, is_placeholder_id};
pub use arrival::{Key, ReceivedLog, ReceivedRecord, TraceArrivals};
pub use dimension::{Dimension, Dimensions};
pub use event::{EventKind, EventLog, StreamEvent};
pub use flag::{Flag, Flags};
pub use id::{SpanId, TraceId};
pub use metric::{Metric, Reading, Section, Unit};
pub use observation::{Labels, Observation, Readings, Slice};
pub use phase::{Phase, ServerPhase, ServerPhases};
pub use record::{ClientRecord, Completeness, ResultClass, Setup, StreamSummary};
pub use request::{ClientSide, JoinMethod, Rates, Request, ServerSide, State, TtftPhases};
pub use response_metrics::{MetricsKind, ResponseMetrics};
pub use rhythm::{Buffering, Gaps, buffering};
pub use run::{Iterations, Run, RunEnd};
pub use selection::{GroupKey, Order, OrderKey, Selection};
pub use span::{Attributes, ClockDomain, Fragment, Resource, Scope, Span, SpanEvent, SpanKind, Value};
pub use time::{Interval, Nanos, UnixNanos};
