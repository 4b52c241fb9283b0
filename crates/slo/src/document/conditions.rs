//! `where`: which requests an objective is about.

use std::collections::BTreeSet;

use super::error::{DocumentError, Faults};
use super::fields::{Field, Mapping};
use crate::indicator::Indicator;
use crate::objective::{ColdStarts, Conditions};
use model::Dimension;

/// The longest value of a label that is kept of a request, in bytes.
const LONGEST: usize = 256;

/// Reads them. What is wrong is noted, and counts as not said.
pub(super) fn read(spec: &Mapping<'_>, indicator: Option<Indicator>, faults: &mut Faults) -> Conditions {
    let mut conditions = Conditions::default();
    let Some(told) = spec.optional("where", faults, Field::mapping) else { return conditions };
    told.only(known(indicator), faults);
    for (name, field) in told.fields() {
        match Dimension::from_name(name).filter(|_| known(indicator).contains(&name)) {
            Some(Dimension::ColdStart) => {
                conditions.cold_starts = faults.keep(cold_starts(&field)).unwrap_or_default();
            }
            Some(dimension) => {
                if let Some(values) = faults.keep(values(dimension, &field)) {
                    conditions.labels.insert(dimension, values);
                }
            }
            None => {}
        }
    }
    conditions
}

/// The labels that it may name: of iterations that never became a request only the run is known.
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

fn cold_starts(field: &Field<'_>) -> Result<ColdStarts, DocumentError> {
    field.one_of(&[("false", ColdStarts::Excluded), ("any", ColdStarts::Included), ("true", ColdStarts::Only)])
}

fn values(dimension: Dimension, field: &Field<'_>) -> Result<BTreeSet<String>, DocumentError> {
    let values = field.labels(LONGEST)?;
    for value in &values {
        if let Some(form) = dimension.refuses(value) {
            return Err(field.refuse(format!("is {value:?}, which no request has; give {form}")));
        }
    }
    Ok(values.into_iter().collect())
}
