//! Runs from what the store holds.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::source::{RunSource, SourceError};
use crate::store::Store;
use model::{Run, RunEnd, UnixNanos};

impl RunSource for Store {
    fn run<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Run>, SourceError>> {
        async move { Ok(Self::run(self, id).await?) }.boxed()
    }

    fn configure<'a>(
        &'a self,
        id: &'a str,
        configuration: &'a Value,
        at: UnixNanos,
    ) -> BoxFuture<'a, Result<Run, SourceError>> {
        async move { Ok(self.configure_run(id, configuration, at).await?) }.boxed()
    }

    fn finish<'a>(&'a self, id: &'a str, end: &'a RunEnd) -> BoxFuture<'a, Result<Run, SourceError>> {
        async move { Ok(self.finish_run(id, end).await?) }.boxed()
    }
}
