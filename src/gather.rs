//! Loads what a pairing by request id needs (`join::Lookup` says what that is).

use std::collections::{BTreeSet, HashMap};

use join::{Lookup, ReadSpan, RequestIdPairing};
use model::{Key, TraceArrivals};

use crate::store::{Claim, Store, StoreError};

/// Where arrivals are loaded from.
pub trait Arrivals {
    /// Loads what arrived under some keys; those without arrivals are left out.
    fn load(&mut self, keys: &[Key]) -> impl Future<Output = Result<HashMap<Key, TraceArrivals>, StoreError>> + Send;
}

impl Arrivals for Claim {
    async fn load(&mut self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        self.others(keys).await
    }
}

impl Arrivals for Store {
    async fn load(&mut self, keys: &[Key]) -> Result<HashMap<Key, TraceArrivals>, StoreError> {
        self.arrivals(keys).await
    }
}

/// Loads all that may belong to traces that name these request ids.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn gather(
    source: &mut impl Arrivals,
    request_ids: BTreeSet<String>,
    read: &ReadSpan,
) -> Result<RequestIdPairing, StoreError> {
    let mut lookup = Lookup::new(request_ids);
    while let Some(keys) = lookup.next_keys(read) {
        lookup.supply(source.load(&keys).await?);
    }
    Ok(lookup.finish())
}
