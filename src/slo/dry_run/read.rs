//! Reads the requests of a replay.

use super::history::History;
use super::{DryRunError, DryRunQuestion, MAX_ROWS, Replayed, replay};
use crate::model::{Interval, Nanos};
use crate::slo::evidence::question;
use crate::store::Store;

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
