//! Objectives as the catalogue holds them.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::source::{ObjectiveSource, SourceError};
use crate::objectives::catalogue::{Catalogue, CatalogueError, Change, PastVersion, Versioned};
use slo::{Objective, ObjectiveId};

impl ObjectiveSource for Catalogue {
    fn current(&self) -> BoxFuture<'_, Result<Arc<[Versioned]>, SourceError>> {
        Box::pin(async move { Ok(self.refresh().await?) })
    }

    fn put<'a>(
        &'a self,
        whole: &'a ObjectiveId,
        set: &'a [Objective],
        changed_by: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>> {
        Box::pin(Catalogue::put(self, whole, set, changed_by))
    }

    fn delete<'a>(
        &'a self,
        id: &'a ObjectiveId,
        changed_by: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Change>, CatalogueError>> {
        Box::pin(Catalogue::delete(self, id, changed_by))
    }

    fn versions<'a>(&'a self, id: &'a ObjectiveId) -> BoxFuture<'a, Result<Vec<PastVersion>, CatalogueError>> {
        Box::pin(Catalogue::versions(self, id))
    }
}
