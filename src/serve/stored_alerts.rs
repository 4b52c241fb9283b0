//! Alerts as the store holds them.

use futures::future::BoxFuture;

use super::source::{AlertSource, DeliveredTransition, SourceError};
use crate::store::{Store, StoredAlert};
use model::Interval;

impl AlertSource for Store {
    fn alerts(&self, firing: Option<bool>) -> BoxFuture<'_, Result<Vec<StoredAlert>, SourceError>> {
        Box::pin(async move { Ok(Store::alerts(self, firing).await?) })
    }

    fn history(&self, window: Interval, limit: u32) -> BoxFuture<'_, Result<Vec<DeliveredTransition>, SourceError>> {
        Box::pin(async move {
            let transitions = self.alert_history(window.start, window.end, limit).await?;
            let keys: Vec<_> = transitions.iter().map(|transition| transition.key).collect();
            let mut deliveries = self.deliveries(&keys).await?;
            let told = |transition: crate::store::AlertTransition| {
                let states = deliveries.remove(&transition.key).unwrap_or_default();
                (transition, states)
            };
            Ok(transitions.into_iter().map(told).collect())
        })
    }
}
