//! Explains traces from what the store holds: joined anew by the same pure function that the worker uses, so that the
//! spans need not be kept a second time beside the row.

use futures::future::BoxFuture;

use super::source::{SourceError, TraceSource};
use super::trace::Explained;
use crate::join::worker::JoinRules;
use crate::join::{self, Joined, TraceInputs};
use crate::model::{Flag, TraceId, UnixNanos};
use crate::store::{RequestRow, Store, StoreError};

/// The traces in a store.
#[derive(Clone)]
pub struct StoredTraces {
    store: Store,
    rules: JoinRules,
}

impl StoredTraces {
    /// Of a store, joined by the rules that its workers use.
    pub fn new(store: Store, rules: JoinRules) -> Self {
        Self { store, rules }
    }

    async fn read(&self, trace_id: TraceId) -> Result<Vec<Explained>, SourceError> {
        let Some(arrivals) = self.store.trace(trace_id).await? else { return Ok(Vec::new()) };
        let rows = self.store.rows_of(trace_id).await?;
        let rules = self.rules.clone();
        let joining = tokio::task::spawn_blocking(move || {
            let progress = rules.progress(&arrivals, UnixNanos::now());
            let inputs = TraceInputs::from_arrivals(trace_id, arrivals, rules.span_limit);
            join::explain(inputs, progress, rules.read.as_ref()).shown()
        });
        let shown = joining.await.map_err(|error| SourceError::Internal(Box::new(error)))?;
        Ok(shown.into_iter().map(|joined| explained(joined, &rows)).collect())
    }
}

/// Adds what only the row knows: how often late data changed it.
fn explained(joined: Joined, rows: &[RequestRow]) -> Explained {
    let row = rows.iter().find(|row| row.request.client_span == joined.request.client_span);
    let mut explained = Explained::of(joined, row.map_or(0, |row| row.revision));
    explained.request.flags.set_if(row.is_some_and(|row| row.request.flags.has(Flag::Late)), Flag::Late);
    explained
}

impl From<StoreError> for SourceError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(format!("the database cannot be read for now: {error}"))
    }
}

impl TraceSource for StoredTraces {
    fn explain(&self, trace: TraceId) -> BoxFuture<'_, Result<Vec<Explained>, SourceError>> {
        Box::pin(self.read(trace))
    }
}
