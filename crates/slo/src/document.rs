//! Objectives as people write them: YAML, also several documents a file, or JSON.

mod alerting;
mod budget;
mod burn;
mod conditions;
mod error;
mod fields;
mod goal;
mod json;
mod node;
mod notes;
mod spec;

use std::collections::HashMap;

pub use error::DocumentError;
pub use json::to_json;
pub use notes::notes;

use self::error::Faults;
use self::fields::Mapping;
use self::node::Node;
use super::objective::{Objective, ObjectiveId};

/// The value of `apiVersion`.
pub const API_VERSION: &str = "tracejoin/v1";

const FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// Reads every document of a text. A budget becomes the objective of its whole and one for each of its parts, the whole
/// first.
///
/// # Errors
/// What is wrong, in the order of the text: all that can be told at once, which is one error where the text is not even
/// YAML.
pub fn read(text: &str) -> Result<Vec<Objective>, Vec<DocumentError>> {
    let documents = node::parse(text).map_err(|error| vec![error])?;
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

fn read_document(document: &Node, faults: &mut Faults) -> Option<Vec<Objective>> {
    let document = faults.keep(Mapping::root(document))?;
    document.only(&FIELDS, faults);
    let version = document.need("apiVersion", format!("give {API_VERSION}"));
    faults.keep(version.and_then(|version| version.one_of(&[(API_VERSION, ())])));
    let kind = document.need("kind", "give SLO or Budget");
    let kind = faults.keep(kind.and_then(|kind| kind.one_of(&[("SLO", false), ("Budget", true)])));
    let header = faults.keep(document.need("metadata", "give metadata: {name: …}").and_then(|field| field.mapping()));
    let header = header.and_then(|header| spec::Header::read(&header, faults));
    let spec = faults.keep(document.need("spec", "give at least a phase and a threshold").and_then(|f| f.mapping()));
    let (is_budget, spec) = (kind?, spec?);
    if is_budget { budget::read(header, &spec, faults) } else { spec::read(header, &spec, faults).map(|one| vec![one]) }
}

#[cfg(test)]
mod tests;
