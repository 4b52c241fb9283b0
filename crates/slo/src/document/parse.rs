//! From text to documents.

use serde_saphyr::{Location, NonFiniteFloatPolicy, Options, Spanned, options};

use super::error::DocumentError;
use super::mapping::Mapping;
use super::schema::Document;

/// The documents of a text; empty ones are passed over.
///
/// # Errors
/// Where the text stops being YAML, and where it holds no document at all.
pub(super) fn parse(text: &str) -> Result<Vec<Spanned<Mapping<Document>>>, DocumentError> {
    let documents = serde_saphyr::from_multiple_with_options(text, reading()).map_err(|error| {
        let error = error.without_snippet();
        let place = error.location().unwrap_or(Location::UNKNOWN);
        DocumentError::at(place, "", format!("cannot be read as YAML: {}; correct it there", one_line(error)))
    })?;
    if documents.is_empty() {
        return Err(DocumentError::at(Location::UNKNOWN, "", "holds no objective; give one, as in docs/slo.md"));
    }
    Ok(documents)
}

/// Texts that some readers take for numbers or truth values stay texts: `region: no`, `pool: 007`.
fn reading() -> Options {
    options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// The reader's message without its place, which the error gives already.
fn one_line(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return format!("{key} is given twice");
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let place = first.rfind(" at line ").unwrap_or(first.len());
    first[..place].to_owned()
}
