//! The one form in which an objective is kept and answered.

use serde_json::{Map, Value, json};

use super::API_VERSION;
use crate::indicator::Indicator;
use crate::objective::{Alerting, Burn, ColdStarts, Confirm, Goal, Objective, ObjectiveId, Straddling};
use model::{Nanos, Unit};

/// The document of an objective with every default written out, so that it says the same under later defaults. Reading it
/// gives the objective again.
pub fn to_json(objective: &Objective) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "SLO", "metadata": metadata(objective), "spec": spec(objective)})
}

fn metadata(objective: &Objective) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), objective.id.as_str().into());
    let budget = objective.budget.as_ref().map(ObjectiveId::as_str);
    let optional =
        [("description", objective.description.as_deref()), ("owner", objective.owner.as_deref()), ("budget", budget)];
    for (name, value) in optional {
        if let Some(value) = value {
            metadata.insert(name.to_owned(), value.into());
        }
    }
    metadata.into()
}

fn spec(objective: &Objective) -> Value {
    let mut spec = Map::new();
    spec.insert("phase".to_owned(), objective.indicator.name().into());
    match objective.goal {
        Goal::Quantile { target } => spec.insert("quantile".to_owned(), target.as_f64().into()),
        Goal::Ratio { target } => spec.insert("ratio".to_owned(), target.as_f64().into()),
        Goal::Share { .. } | Goal::Pooled => None,
    };
    let unit = objective.indicator.unit();
    let field = match unit {
        Unit::Nanos | Unit::Millis => "threshold_ms",
        Unit::TokensPerSecond => "threshold_tps",
        Unit::Share => "threshold",
    };
    spec.insert(field.to_owned(), number(unit.shown(objective.threshold)));
    let Value::Object(rest) = json!({
        "where": conditions(objective),
        "window": objective.window.in_words(),
        "min_n": objective.min_n,
        "min_coverage": number(objective.min_coverage),
        "require_bounds": objective.require_bounds,
        "at_risk": match objective.straddling {
            Straddling::PointEstimate => "point",
            Straddling::Interval => "interval",
        },
        "burn": burn(&objective.burn),
        "alert": alerting(&objective.alerting),
    }) else {
        return spec.into();
    };
    spec.extend(rest);
    spec.into()
}

fn conditions(objective: &Objective) -> Value {
    let conditions = &objective.conditions;
    let mut told = Map::new();
    for (dimension, values) in &conditions.labels {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let value = if let [one] = values.as_slice() { json!(one) } else { json!(values) };
        told.insert(dimension.name().to_owned(), value);
    }
    // Iterations that never became a request started no model.
    if objective.indicator != Indicator::DroppedIterations {
        let cold_starts = match conditions.cold_starts {
            ColdStarts::Excluded => "false",
            ColdStarts::Included => "any",
            ColdStarts::Only => "true",
        };
        told.insert("cold_start".to_owned(), cold_starts.into());
    }
    told.into()
}

fn burn(burn: &Burn) -> Value {
    if burn.windows.is_empty() {
        return false.into();
    }
    let windows = burn.windows.iter().map(|window| {
        json!({
            "factor": number(window.factor), "long": window.long.in_words(), "short": window.short.in_words(),
        })
    });
    json!({"windows": windows.collect::<Vec<_>>(), "min_traffic": burn.min_traffic, "min_bad": burn.min_bad})
}

fn alerting(alerting: &Alerting) -> Value {
    let wait = |wait: Option<Nanos>| wait.map_or_else(|| "never".to_owned(), Nanos::in_words);
    json!({
        "confirm": match alerting.confirm {
            Confirm::Interval => "interval",
            Confirm::Verdict => "verdict",
        },
        "no_verdict_after": wait(alerting.no_verdict_after),
        "silent_after": wait(alerting.silent_after),
    })
}

/// A number as a person writes it: 250, not 250.0.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { (value as i64).into() } else { value.into() }
}
