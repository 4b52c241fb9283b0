//! The one form in which an objective is kept and answered.

use serde_json::Value;

use super::mapping::{Entries, Known, Mapping, Named};
use super::node::{Checked, Given, Node, Scalar, without_place};
use super::schema::{self, Alert, Document, Label, Metadata, Spec, Window};
use super::values::{ApiVersion, Count, Kind, Line, Minutes, Number, Period, Share, Wait};
use crate::indicator::Indicator;
use crate::objective::{Alerting, Burn, BurnWindow, ColdStarts, Goal, Objective};
use model::Unit;

/// The document of an objective with every default written out, so that it means the same under later defaults. Reading
/// it gives the objective again.
pub fn to_json(objective: &Objective) -> Value {
    let document = Document {
        api_version: ApiVersion.into(),
        kind: Kind::Slo.into(),
        metadata: metadata(objective).into(),
        spec: spec(objective).into(),
    };
    serde_json::to_value(document).expect("every name is a text and no value is a mistake")
}

fn metadata(objective: &Objective) -> Metadata {
    Metadata {
        name: objective.id.clone().into(),
        description: given(objective.description.clone().map(Line)),
        owner: given(objective.owner.clone().map(Line)),
        budget: given(objective.budget.clone()),
    }
}

fn spec(objective: &Objective) -> Spec {
    let mut spec = Spec {
        phase: Scalar::Text(objective.indicator.name().to_owned()).into(),
        conditions: conditions(objective).into(),
        window: Period(objective.window).into(),
        min_n: Count(objective.min_n).into(),
        min_coverage: Share(objective.min_coverage).into(),
        require_bounds: objective.require_bounds.into(),
        at_risk: objective.straddling.into(),
        burn: burn(&objective.burn),
        alert: alert(&objective.alerting).into(),
        ..Spec::default()
    };
    match objective.goal {
        Goal::Quantile { target } => spec.quantile = target.into(),
        Goal::Ratio { target } => spec.ratio = target.into(),
        Goal::Share { .. } | Goal::Pooled => {}
    }
    let unit = objective.indicator.unit();
    let field = match unit {
        Unit::Nanos | Unit::Millis => &mut spec.threshold_ms,
        Unit::TokensPerSecond => &mut spec.threshold_tps,
        Unit::Share => &mut spec.threshold,
    };
    *field = Number(unit.shown(objective.threshold)).into();
    spec
}

fn conditions(objective: &Objective) -> Named<Label> {
    let conditions = &objective.conditions;
    let mut labels = Vec::new();
    for (dimension, values) in &conditions.labels {
        let mut texts: Vec<Scalar> = values.iter().cloned().map(Scalar::Text).collect();
        let label = match (texts.len(), texts.pop()) {
            (1, Some(only)) => Node::Scalar(only),
            (_, last) => Node::List(texts.into_iter().chain(last).map(without_place).collect()),
        };
        labels.push((dimension.name(), label));
    }
    // Iterations that never became a request started no model.
    if objective.indicator != Indicator::DroppedIterations {
        let cold_starts = match conditions.cold_starts {
            ColdStarts::Excluded => "false",
            ColdStarts::Included => "any",
            ColdStarts::Only => "true",
        };
        labels.push(("cold_start", Node::Scalar(Scalar::Text(cold_starts.to_owned()))));
    }
    let entry = |(name, label): (&str, Label)| (without_place(name.to_owned()), without_place(label));
    Node::Mapping(Entries(labels.into_iter().map(entry).collect()))
}

fn burn(burn: &Burn) -> Given<Mapping<schema::Burn>> {
    if burn.windows.is_empty() {
        return Node::Scalar(Scalar::Flag(false)).into();
    }
    let window = |window: &BurnWindow| {
        let fields = Window {
            factor: Number(window.factor).into(),
            long: Minutes(window.long).into(),
            short: Minutes(window.short).into(),
        };
        without_place(Node::Mapping(Known::from(fields)))
    };
    schema::Burn {
        windows: Node::List(burn.windows.iter().map(window).collect()).into(),
        min_traffic: Count(burn.min_traffic).into(),
        min_bad: Count(burn.min_bad).into(),
    }
    .into()
}

fn alert(alerting: &Alerting) -> Alert {
    Alert {
        confirm: alerting.confirm.into(),
        no_verdict_after: Wait(alerting.no_verdict_after).into(),
        silent_after: Wait(alerting.silent_after).into(),
    }
}

fn given<T>(value: Option<T>) -> Given<Checked<T>> {
    value.map_or_else(Given::default, Given::from)
}
