//! `where`: which requests an objective is about.

use std::collections::BTreeSet;

use super::error::{DocumentError, Faults};
use super::fields::At;
use super::mapping::Known;
use super::node::{Node, Scalar};
use super::schema::{Label, Spec};
use crate::indicator::Indicator;
use crate::objective::{ColdStarts, Conditions};
use model::Dimension;

/// The longest value of a label that is kept of a request, in bytes.
const LONGEST: usize = 256;

/// What is wrong is noted, and left out of the conditions.
pub(super) fn read(spec: &At<'_, Known<Spec>>, indicator: Option<Indicator>, faults: &mut Faults) -> Conditions {
    let mut conditions = Conditions::default();
    let labels = spec.field("where", &spec.value.fields.conditions).optional_mapping(faults);
    let Some(labels) = labels else { return conditions };
    labels.only(known(indicator), faults);
    for (name, label) in labels.entries() {
        match Dimension::from_name(name).filter(|_| known(indicator).contains(&name)) {
            Some(Dimension::ColdStart) => {
                conditions.cold_starts = faults.keep(cold_starts(&label)).unwrap_or_default();
            }
            Some(dimension) => {
                if let Some(values) = faults.keep(allowed_values(dimension, &label)) {
                    conditions.labels.insert(dimension, values);
                }
            }
            None => {}
        }
    }
    conditions
}

/// The labels that the indicator's requests have: of iterations that never became a request only the run is known.
fn known(indicator: Option<Indicator>) -> &'static [&'static str] {
    const ALL: [&str; Dimension::ALL.len()] = {
        let mut names = [""; Dimension::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Dimension::ALL[i].name();
            i += 1;
        }
        names
    };
    match indicator {
        Some(Indicator::DroppedIterations) => &["run"],
        _ => &ALL,
    }
}

fn cold_starts(label: &At<'_, Label>) -> Result<ColdStarts, DocumentError> {
    let known = [("false", ColdStarts::Excluded), ("any", ColdStarts::Included), ("true", ColdStarts::Only)];
    let scalar = match label.value {
        Node::Scalar(scalar) => scalar,
        Node::List(_) => &Scalar::List,
        Node::Mapping(_) => &Scalar::Mapping,
    };
    scalar.one_of(&known).map_err(|reason| label.refuse(reason))
}

/// The values of a label, each of them one that a request can have.
fn allowed_values(dimension: Dimension, label: &At<'_, Label>) -> Result<BTreeSet<String>, DocumentError> {
    let values = values(label)?;
    for value in &values {
        if let Some(form) = dimension.refuses(value) {
            return Err(label.refuse(format!("is {value:?}, which no request has; give {form}")));
        }
    }
    Ok(values.into_iter().collect())
}

fn values(label: &At<'_, Label>) -> Result<Vec<String>, DocumentError> {
    match label.value {
        Node::List(items) if items.is_empty() => Err(label.refuse("is empty; give a value or leave it out")),
        Node::List(_) => {
            let items = label.list()?;
            items.iter().map(|item| item.value.label(LONGEST).map_err(|reason| item.refuse(reason))).collect()
        }
        Node::Scalar(scalar) => Ok(vec![scalar.label(LONGEST).map_err(|reason| label.refuse(reason))?]),
        Node::Mapping(_) => Err(label.refuse(Scalar::Mapping.label(LONGEST).err().unwrap_or_default())),
    }
}
