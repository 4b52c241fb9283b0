//! Reads the requests of a replay.

use model::{Interval, Nanos};
use slo::dry_run::{DryRunQuestion, DryRunRefusal, History, MAX_ROWS, Replayed, replay};
use slo::evidence::question;

use crate::reader::ReadError;
use crate::store::{Store, StoreError};

/// Why nothing is replayed.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The question itself.
    #[error(transparent)]
    Refused(#[from] DryRunRefusal),
    /// Too many requests.
    #[error(
        "more than {MAX_ROWS} requests would have to be read; give a shorter stretch, shorter burn windows or narrower \
         conditions"
    )]
    TooManyRows,
    /// The requests could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The replay panicked.
    #[error("the replay broke off: {0}")]
    BrokeOff(#[from] tokio::task::JoinError),
}

impl From<StoreError> for DryRunError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// Replays objectives over what is stored.
#[derive(Clone)]
pub struct DryRuns {
    store: Store,
}

impl DryRuns {
    /// Over what `store` holds.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Replays an objective.
    ///
    /// # Errors
    /// All of [`DryRunError`].
    pub async fn replay(&self, asked: &DryRunQuestion) -> Result<Replayed, DryRunError> {
        asked.check()?;
        let settle = Nanos::from(self.store.options().settle);
        let needed = Interval { start: asked.window.start - settle - asked.look_back(), end: asked.window.end };
        let mut snapshot = self.store.snapshot().await?;
        let dictionary = snapshot.labels(needed, false).await?;
        let labels: Vec<i64> = question(&asked.objective, needed).needed_labels(&dictionary).into_iter().collect();
        let mut history = History::new(asked.objective.clone(), dictionary);
        if !snapshot.visit(needed, &labels, MAX_ROWS, |at, observation| history.add(at, &observation)).await? {
            return Err(DryRunError::TooManyRows);
        }
        drop(snapshot);
        // Some seconds of reckoning, which would hold up whatever else this thread does.
        let asked = asked.clone();
        let reckoning = tokio::task::spawn_blocking(move || {
            history.sort();
            replay(&asked, &history, settle)
        });
        Ok(reckoning.await?)
    }
}
