//! Everything that is kept: PostgreSQL, and all the SQL there is.
//!
//! What arrives is appended by one group commit ([`Store::submit`]); settled traces are claimed, joined and written as
//! one `request` row each ([`Store::claim`]).

mod alert;
mod arrival;
mod copy;
mod dimension;
mod encode;
mod error;
mod join_queue;
mod maintenance;
mod objective;
mod options;
mod partition;
mod pool;
mod read;
mod request;
mod rollup;
mod run;
mod session;
mod settling;
mod slo_minute;
mod traffic;
mod window;
mod writer;

pub use alert::{AlertClaim, AlertTransition, Delivery, DeliveryState, Resend, StoredAlert, StoredWatch};
pub use arrival::{Arrival, ArrivalKind};
pub use dimension::{DimensionTuple, OVERFLOW_DIMS};
pub use encode::DecodeError;
pub use error::{StoreError, SubmitError};
pub use join_queue::Claim;
pub use maintenance::Maintenance;
pub use objective::{ObjectiveChange, StoredObjective};
pub use options::StoreOptions;
pub use pool::Store;
pub use request::RequestRow;
pub use rollup::{RollupClaim, RollupRow};
pub use settling::Unsettled;
pub use slo_minute::{
    LabelledRequests, OutcomeCounts, SLO_MINUTES_KEPT, SloMinuteClaim, SloMinuteRow, SloProgress, SloVersion,
};
pub use window::Snapshot;

/// How many parts the work of joining is divided into; several instances take different buckets.
pub const BUCKETS: i16 = 16;
