//! What is wrong with a document, and where.

use serde::Serialize;
use serde_saphyr::Location;

/// A field of a document that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{line}:{column}: {field}: {reason}")]
pub struct DocumentError {
    /// Its line in the text, from 1.
    pub line: u64,
    /// Its column, in characters, from 1.
    pub column: u64,
    /// Where it stands in its document: `spec.burn.windows[0].factor`; `document` for all of it.
    pub field: String,
    /// What is wrong and what to do.
    pub reason: String,
}

impl DocumentError {
    /// A refusal of what stands at a place.
    pub(super) fn at(place: Location, field: impl Into<String>, reason: impl Into<String>) -> Self {
        let field = Some(field.into()).filter(|field| !field.is_empty());
        let (line, column) = (place.line().max(1), place.column().max(1));
        Self { line, column, field: field.unwrap_or_else(|| "document".to_owned()), reason: reason.into() }
    }
}

/// The mistakes found so far, so that all are reported at once.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<DocumentError>);

impl Faults {
    /// Keeps a mistake and lets the reading go on.
    pub(super) fn add(&mut self, error: DocumentError) {
        self.0.push(error);
    }

    /// The value, or its error noted.
    pub(super) fn keep<T>(&mut self, result: Result<T, DocumentError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// The value where nothing was wrong; else what was, in the order of the text.
    pub(super) fn unless_any<T>(mut self, value: T) -> Result<T, Vec<DocumentError>> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|error| (error.line, error.column));
        Err(self.0)
    }
}

/// The known name most like one that is not known, if any is near.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(*best)
}
