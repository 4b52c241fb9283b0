//! What the resources read from. The parts behind implement these traits, so that a resource knows no database and can be
//! tested without one.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

use super::error::ApiError;
use crate::objectives::catalogue::{CatalogueError, Change, PastVersion, Versioned};
use crate::objectives::dry_runs::DryRunError;
use crate::objectives::gates::{GateError, GateQuestion, Judged};
use crate::objectives::status::ObjectiveStatus;
use crate::store::{AlertTransition, DeliveryState, StoreError, StoredAlert};
use api::Explained;
use model::{Interval, Order, Run, RunEnd, Selection, TraceId, UnixNanos};
use slo::dry_run::{DryRunQuestion, Replayed};
use slo::{Objective, ObjectiveId};
use stats::{Question, Window};

/// Why nothing could be read.
#[derive(Debug, Error)]
pub enum SourceError {
    /// There is no database to read from for now. The text reaches the caller, so it holds nothing of the database's own.
    #[error("{0}")]
    Unavailable(String),
    /// More is asked for than is answered at once.
    #[error("{detail}")]
    TooMany {
        /// The parameter that asks for it.
        parameter: &'static str,
        /// The limit, and what to change.
        detail: String,
    },
    /// A fault of ours.
    #[error(transparent)]
    Internal(#[from] Box<dyn StdError + Send + Sync>),
}

/// How long a caller waits before it asks an absent database again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

impl From<StoreError> for SourceError {
    fn from(error: StoreError) -> Self {
        if !error.is_absent() {
            return Self::Internal(Box::new(error));
        }
        tracing::warn!(%error, "database unavailable");
        let seconds = RETRY_AFTER.as_secs();
        Self::Unavailable(format!("the database is unavailable; ask again in {seconds} s"))
    }
}

impl From<SourceError> for ApiError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Unavailable(detail) => Self::Unavailable { detail, retry_after: RETRY_AFTER },
            SourceError::TooMany { parameter, detail } => Self::parameter(parameter, detail),
            SourceError::Internal(source) => Self::Internal(source),
        }
    }
}

impl From<CatalogueError> for ApiError {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::Refused(refusal) => Self::Objective(refusal),
            CatalogueError::Store(error) => SourceError::from(error).into(),
        }
    }
}

/// Explains single traces.
pub trait TraceSource: Send + Sync + 'static {
    /// All requests of a trace; empty where nothing of it is stored.
    fn explain(&self, trace: TraceId) -> BoxFuture<'_, Result<Vec<Explained>, SourceError>>;
}

/// Reads what is stored of a window.
pub trait WindowSource: Send + Sync + 'static {
    /// All that the question needs to be answered, of its window or a wider one.
    fn contents<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Window, SourceError>>;

    /// The first requests of a selection, by an order; without their spans.
    fn list<'a>(
        &'a self,
        selection: &'a Selection,
        order: Order,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Explained>, SourceError>>;
}

/// A change of an alert, and what became of telling it.
pub type DeliveredTransition = (AlertTransition, Vec<DeliveryState>);

/// Knows the alerts.
pub trait AlertSource: Send + Sync + 'static {
    /// Those that fire, those that do not, or both; those that started last come first.
    fn alerts(&self, firing: Option<bool>) -> BoxFuture<'_, Result<Vec<StoredAlert>, SourceError>>;

    /// The transitions of a window, newest first.
    fn history(&self, window: Interval, limit: u32) -> BoxFuture<'_, Result<Vec<DeliveredTransition>, SourceError>>;
}

/// Knows whether the process can do its work.
pub trait Readiness: Send + Sync + 'static {
    /// What is in the way, each with what to do about it; empty where nothing is.
    fn obstacles(&self) -> BoxFuture<'_, Vec<String>>;

    /// What is wrong without keeping it from its work.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Keeps runs of load generators.
pub trait RunSource: Send + Sync + 'static {
    /// A run; `None` where nothing was ever told of it.
    fn run<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Run>, SourceError>>;

    /// Keeps a configuration in the place of an earlier one.
    fn configure<'a>(
        &'a self,
        id: &'a str,
        configuration: &'a Value,
        at: UnixNanos,
    ) -> BoxFuture<'a, Result<Run, SourceError>>;

    /// Keeps how a run ended in the place of an earlier telling.
    fn finish<'a>(&'a self, id: &'a str, end: &'a RunEnd) -> BoxFuture<'a, Result<Run, SourceError>>;
}

/// Knows the objectives, and changes them.
pub trait ObjectiveSource: Send + Sync + 'static {
    /// All of them as they are now, in the order of their names.
    fn current(&self) -> BoxFuture<'_, Result<Arc<[Versioned]>, SourceError>>;

    /// Puts a set in the place of `whole` and its parts, all at once or not at all.
    fn put<'a>(
        &'a self,
        whole: &'a ObjectiveId,
        set: &'a [Objective],
        changed_by: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>>;

    /// Deletes one with its parts.
    fn delete<'a>(
        &'a self,
        id: &'a ObjectiveId,
        changed_by: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>>;

    /// All that one ever was, newest first.
    fn versions<'a>(&'a self, id: &'a ObjectiveId) -> BoxFuture<'a, Result<Vec<PastVersion>, CatalogueError>>;
}

/// Judges objectives over windows that are over.
pub trait GateSource: Send + Sync + 'static {
    /// What a gate finds.
    fn judge<'a>(&'a self, asked: &'a GateQuestion) -> BoxFuture<'a, Result<Judged, GateError>>;
}

/// Knows whether objectives hold.
pub trait StatusSource: Send + Sync + 'static {
    /// How an objective stands at `now`.
    fn status<'a>(
        &'a self,
        versioned: &'a Versioned,
        now: UnixNanos,
    ) -> BoxFuture<'a, Result<ObjectiveStatus, SourceError>>;
}

/// Replays objectives over what is stored.
pub trait ReplaySource: Send + Sync + 'static {
    /// What an objective would have told.
    fn replay<'a>(&'a self, asked: &'a DryRunQuestion) -> BoxFuture<'a, Result<Replayed, DryRunError>>;
}
