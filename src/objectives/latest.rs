//! The newest verdicts that this process reached, for whoever shows them.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use model::{Nanos, UnixNanos};
use slo::objective::ObjectiveId;
use slo::verdict::Status;

/// The newest verdict on each objective. Of several instances each knows those that it reached itself.
#[derive(Debug, Default)]
pub struct LatestVerdicts(RwLock<BTreeMap<ObjectiveId, (UnixNanos, Status)>>);

impl LatestVerdicts {
    /// Puts the verdicts of one evaluation in the place of all earlier ones, so that a deleted objective has none.
    pub fn replace(&self, at: UnixNanos, verdicts: impl IntoIterator<Item = (ObjectiveId, Status)>) {
        let all = verdicts.into_iter().map(|(id, verdict)| (id, (at, verdict))).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Those that are not older than `most`: another instance may be judging now.
    pub fn since(&self, now: UnixNanos, most: Nanos) -> Vec<(ObjectiveId, Status)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = all.iter().filter(|(_, (at, _))| *at + most >= now);
        fresh.map(|(id, (_, verdict))| (id.clone(), verdict.clone())).collect()
    }
}
