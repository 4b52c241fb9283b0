//! Explains traces from what the store holds: joined anew by the same pure function that the worker uses, so that the
//! spans need not be kept a second time beside the row.

use futures::future::BoxFuture;

use super::source::{SourceError, TraceSource};
use crate::gather::gather;
use crate::store::{RequestRow, Store};
use api::Explained;
use join::{JoinRules, Joined, Pairing};
use model::{Flag, TraceArrivals, TraceId, UnixNanos};

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
        let owner = join::owner_of_lines(trace_id, &arrivals);
        if arrivals.records.is_empty() && owner != trace_id {
            return self.read_client(owner).await;
        }
        let has_client = join::has_client(&arrivals);
        let found = self.join(trace_id, arrivals).await?;
        if !has_client && let Some(client) = self.taken_by(trace_id, &found.server_ids).await? {
            return self.read_client(client).await;
        }
        self.shown(trace_id, found).await
    }

    /// Reads the trace under which the client's side of a request is kept.
    async fn read_client(&self, trace_id: TraceId) -> Result<Vec<Explained>, SourceError> {
        let Some(arrivals) = self.store.trace(trace_id).await? else { return Ok(Vec::new()) };
        let found = self.join(trace_id, arrivals).await?;
        self.shown(trace_id, found).await
    }

    async fn shown(&self, trace_id: TraceId, found: join::Explained) -> Result<Vec<Explained>, SourceError> {
        let rows = self.store.rows_of(trace_id).await?;
        Ok(found.shown().into_iter().map(|joined| explained(joined, &rows)).collect())
    }

    async fn join(&self, trace_id: TraceId, arrivals: TraceArrivals) -> Result<join::Explained, SourceError> {
        let request_ids = join::client_ids(&arrivals);
        let pairing = gather(&mut self.store.clone(), request_ids, self.rules.read.as_ref()).await?;
        let rules = self.rules.clone();
        let joining = tokio::task::spawn_blocking(move || {
            join::join_trace(trace_id, arrivals, Some(&pairing), &rules, UnixNanos::now()).explained
        });
        joining.await.map_err(|error| SourceError::Internal(Box::new(error)))
    }

    /// The trace of the record that spans of this one explain by a request id.
    async fn taken_by(&self, trace_id: TraceId, request_ids: &[String]) -> Result<Option<TraceId>, SourceError> {
        let (ids, read) = (request_ids.iter().cloned().collect(), self.rules.read.as_ref());
        let pairing = gather(&mut self.store.clone(), ids, read).await?;
        for request_id in request_ids {
            if let Pairing::Pair { client, server } = pairing.pairing(request_id, read)
                && server == trace_id
            {
                return Ok(Some(client));
            }
        }
        Ok(None)
    }
}

/// Adds what only the row knows: how often late data changed it.
fn explained(joined: Joined, rows: &[RequestRow]) -> Explained {
    let row = rows.iter().find(|row| row.request.client_span == joined.request.client_span);
    let mut explained = Explained::of(joined, row.map_or(0, |row| row.revision));
    explained.request.flags.set_if(row.is_some_and(|row| row.request.flags.has(Flag::Late)), Flag::Late);
    explained
}

impl TraceSource for StoredTraces {
    fn explain(&self, trace: TraceId) -> BoxFuture<'_, Result<Vec<Explained>, SourceError>> {
        Box::pin(self.read(trace))
    }
}
