//! Objectives as people write them: YAML, also several documents a file, or JSON.

mod alerting;
mod budget;
mod burn;
mod conditions;
mod error;
mod fields;
mod goal;
mod json;
mod mapping;
mod node;
mod notes;
mod parse;
mod schema;
mod spec;
mod values;

use std::collections::HashMap;

use serde_saphyr::Spanned;

pub use error::DocumentError;
pub use json::to_json;
pub use notes::notes;

use self::error::Faults;
use self::fields::{At, field};
use self::mapping::Mapping;
use self::schema::Document;
use self::values::{API_VERSION, Kind};
use super::objective::{Objective, ObjectiveId};

/// Reads every document of a text. A budget becomes the objective of its whole and one for each of its parts, the whole
/// first.
///
/// # Errors
/// Every mistake of every document, in the order of the text; only one where the text is not YAML.
pub fn read(text: &str) -> Result<Vec<Objective>, Vec<DocumentError>> {
    let documents = parse::parse(text).map_err(|error| vec![error])?;
    let mut faults = Faults::default();
    let mut objectives = Vec::new();
    let mut lines: HashMap<ObjectiveId, u64> = HashMap::new();
    for document in &documents {
        for objective in read_document(document, &mut faults).unwrap_or_default() {
            let line = document.defined.line();
            if let Some(first) = lines.insert(objective.id.clone(), line) {
                let reason = format!("`{}` is already the objective of line {first}; rename one of them", objective.id);
                faults.add(DocumentError::at(document.defined, "metadata.name", reason));
            }
            objectives.push(objective);
        }
    }
    faults.unless_any(objectives)
}

fn read_document(document: &Spanned<Mapping<Document>>, faults: &mut Faults) -> Option<Vec<Objective>> {
    let document = faults.keep(At::root(document).mapping())?;
    document.only_declared(&[], faults);
    let version = document.field("apiVersion", &document.value.fields.api_version);
    version.required(&format!("give {API_VERSION}"), faults);
    let kind = field!(document.kind).required("give SLO or Budget", faults);
    let header = field!(document.metadata).required_mapping("give metadata: {name: …}", faults);
    let header = header.and_then(|header| spec::Header::read(&header, faults));
    let spec = field!(document.spec).required_mapping("give at least a phase and a threshold", faults);
    match (kind?, spec?) {
        (Kind::Slo, spec) => spec::read(header, &spec, faults).map(|objective| vec![objective]),
        (Kind::Budget, spec) => budget::read(header, &spec, faults),
    }
}

#[cfg(test)]
mod tests;
