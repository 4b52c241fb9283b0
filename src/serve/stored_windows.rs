//! Windows as the store holds them.

use futures::future::BoxFuture;

use super::source::{SourceError, WindowSource};
use crate::reader::{ReadError, Reader};
use crate::store::RequestRow;
use api::Explained;
use model::{Order, Selection};
use stats::{Question, Window};

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::Rollup(error) => Self::Internal(Box::new(error)),
            ReadError::TooManyGroups(_) => Self::TooMany { parameter: "group_by", detail: error.to_string() },
        }
    }
}

impl WindowSource for Reader {
    fn contents<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Window, SourceError>> {
        Box::pin(async move { Ok(Reader::contents(self, question).await?) })
    }

    fn list<'a>(
        &'a self,
        selection: &'a Selection,
        order: Order,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Explained>, SourceError>> {
        Box::pin(async move {
            let rows = Reader::list(self, selection, order, limit).await?;
            let explained = |row: RequestRow| Explained::of_row(row.request, row.revision);
            Ok(rows.into_iter().map(explained).collect())
        })
    }
}
