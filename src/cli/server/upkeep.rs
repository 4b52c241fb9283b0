//! What a server does beside its work: partitions, retention, metrics, readiness.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::objectives::catalogue::Catalogue;
use crate::serve::source::Readiness;
use crate::store::Store;
use model::{Nanos, UnixNanos};

/// Partitions are made two days ahead, so a run that fails has many successors.
const MAINTAIN_EVERY: Duration = Duration::from_secs(600);
/// A database that takes longer to answer a ping is as good as away.
const PING_PATIENCE: Duration = Duration::from_secs(2);

/// Makes coming partitions and drops those past retention, days of the archive too, until `stop`.
pub async fn maintain(store: Store, archive: Option<Archive>, stop: CancellationToken) {
    loop {
        if let Some(archive) = &archive {
            archive.tidy();
        }
        match store.maintain(UnixNanos::now()).await {
            Ok(done) if done.created.is_empty() && done.dropped.is_empty() => {}
            Ok(done) => tracing::info!(created = ?done.created, dropped = ?done.dropped, "partitions were changed"),
            Err(error) => tracing::warn!(%error, "partitions could not be looked after; trying again later"),
        }
        if let Err(error) = store.forget_alerts(alerts_kept_from(&store)).await {
            tracing::warn!(%error, "old alerts could not be forgotten; trying again later");
        }
        if pause(MAINTAIN_EVERY, &stop).await {
            return;
        }
    }
}

/// The history of alerts is kept as long as rollups are.
fn alerts_kept_from(store: &Store) -> UnixNanos {
    UnixNanos::now() - Nanos::from(store.options().rollup_retention)
}

/// Waits, and says whether it is time to stop.
async fn pause(length: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => true,
        () = tokio::time::sleep(length) => false,
    }
}

/// Ready means that the database answers and nobody has asked to stop.
pub struct StoreReadiness {
    store: Store,
    archive: Option<Archive>,
    catalogue: Arc<Catalogue>,
    stop: CancellationToken,
}

impl StoreReadiness {
    /// Of a store, until `stop`.
    pub fn new(store: Store, archive: Option<Archive>, catalogue: Arc<Catalogue>, stop: CancellationToken) -> Self {
        Self { store, archive, catalogue, stop }
    }

    async fn look(&self) -> Vec<String> {
        if self.stop.is_cancelled() {
            return vec!["this process is stopping".to_owned()];
        }
        match tokio::time::timeout(PING_PATIENCE, self.store.ping()).await {
            Ok(Ok(())) => Vec::new(),
            Ok(Err(error)) => {
                tracing::warn!(%error, "database unavailable");
                vec!["the database does not answer: check that it runs; the log names the cause".to_owned()]
            }
            Err(_) => vec![format!("the database did not answer within {} s", PING_PATIENCE.as_secs())],
        }
    }
}

impl Readiness for StoreReadiness {
    fn obstacles(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(self.look())
    }

    fn remarks(&self) -> Vec<String> {
        self.archive.iter().filter_map(Archive::trouble).chain(self.catalogue.trouble()).collect()
    }
}
