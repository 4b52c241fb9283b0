//! Builds rollups again whose rows have changed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{RollupRow, Store, StoreError};
use model::{Slice, UnixNanos};
use stats::rollup::{digested, encode};

/// A slice waits for this long after its last change, since changes come in bursts.
const QUIET: Duration = Duration::from_secs(5);

/// A slice that keeps changing is built this long after its first change all the same.
const LONGEST: Duration = Duration::from_secs(60);

/// How often changes are looked for.
const PAUSE: Duration = Duration::from_secs(2);

/// Slices looked up at once.
const BATCH: u32 = 64;

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebuilt {
    /// Slices that were due.
    pub due: usize,
    /// Slices that were built; others were claimed by another instance, or have no rows any more.
    pub built: usize,
}

/// Keeps rollups up to date. Several instances share the work.
#[derive(Clone)]
pub struct Rollups {
    store: Store,
}

impl Rollups {
    /// For `store`.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Works until `stop`. A failure is logged and tried again: marks stay until their slice is built.
    pub async fn run(&self, stop: CancellationToken) {
        loop {
            let pause = match self.rebuild(UnixNanos::now(), QUIET, LONGEST).await {
                Ok(Rebuilt { built, .. }) if built > 0 => Duration::ZERO,
                Ok(_) => PAUSE,
                Err(error) => {
                    tracing::warn!(%error, "could not rebuild rollups");
                    PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Builds slices that had no change for `quiet`, or have waited for `longest`.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn rebuild(&self, now: UnixNanos, quiet: Duration, longest: Duration) -> Result<Rebuilt, StoreError> {
        let due = self.store.due_rollups(now, quiet, longest, BATCH).await?;
        let mut built = 0;
        for slice in &due {
            built += usize::from(self.rebuild_slice(*slice, now).await?);
        }
        metrics::counter!("tracejoin_rollups_built_total").increment(built as u64);
        Ok(Rebuilt { due: due.len(), built })
    }

    async fn rebuild_slice(&self, slice: Slice, now: UnixNanos) -> Result<bool, StoreError> {
        let Some(mut claim) = self.store.claim_rollup(slice, now).await? else {
            return Ok(false);
        };
        let observations = claim.observations().await?;
        let rows: Vec<RollupRow> = digested(&observations)
            .map(|(slice, key, cell)| {
                let (counts, digests) = encode(&cell);
                RollupRow { slice, labels: key.labels, state: key.state, result: key.result, counts, digests }
            })
            .collect();
        claim.replace(&rows).await?;
        Ok(true)
    }
}
