//! How objectives stand by what the store holds.

use futures::future::BoxFuture;

use super::source::{SourceError, StatusSource};
use crate::objectives::assess::assess;
use crate::objectives::catalogue::Versioned;
use crate::objectives::minutes::{MinuteCounts, MinuteError};
use crate::objectives::status::{Burning, ObjectiveStatus};
use crate::reader::Reader;
use crate::store::Store;
use model::UnixNanos;
use slo::live::live_window;

/// Judges objectives by the requests of a store.
pub struct StoredStatuses {
    store: Store,
    reader: Reader,
    minutes: MinuteCounts,
}

impl StoredStatuses {
    pub fn new(store: Store) -> Self {
        Self { reader: Reader::new(store.clone()), minutes: MinuteCounts::new(store.clone()), store }
    }

    async fn read(&self, versioned: &Versioned, now: UnixNanos) -> Result<ObjectiveStatus, SourceError> {
        let window = live_window(&versioned.objective, self.store.options().settle.into(), now);
        let verdict = assess(&self.reader, &versioned.objective, window, true).await?;
        let burning = match self.burning(versioned, now).await {
            Ok(burning) => Ok(burning),
            Err(MinuteError::NoMinutes(reason)) => Err(reason),
            Err(MinuteError::Store(error)) => return Err(error.into()),
        };
        let mut alerts = self.store.alerts(Some(true)).await?;
        alerts.retain(|alert| alert.slo == versioned.objective.id.as_str());
        Ok(ObjectiveStatus { verdict, burning, alerts })
    }

    async fn burning(&self, versioned: &Versioned, now: UnixNanos) -> Result<Burning, MinuteError> {
        let mut reading = self.minutes.for_budget(std::slice::from_ref(versioned), now).await?;
        let windows = reading.burn(versioned).await?;
        Ok(Burning { windows, budget: reading.budget(versioned).await? })
    }
}

impl StatusSource for StoredStatuses {
    fn status<'a>(
        &'a self,
        versioned: &'a Versioned,
        now: UnixNanos,
    ) -> BoxFuture<'a, Result<ObjectiveStatus, SourceError>> {
        Box::pin(self.read(versioned, now))
    }
}
