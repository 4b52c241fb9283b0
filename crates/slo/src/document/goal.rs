//! How much of an indicator is allowed: `quantile` or `ratio`, and a threshold in the indicator's unit.

use super::error::{DocumentError, Faults};
use super::fields::{Field, Mapping};
use super::spec::LONGEST;
use crate::indicator::{Direction, Indicator};
use crate::objective::Goal;
use model::{Nanos, Unit};
use stats::Quantile;
use stats::quantile::BadQuantile;

const THRESHOLDS: [&str; 3] = ["threshold_ms", "threshold_tps", "threshold"];
/// Faster than any model: a larger number is a wrong unit.
const FASTEST: f64 = 1e6;

/// A goal and its threshold, in the unit in which the indicator is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// How it is meant.
    pub(super) goal: Goal,
    /// How much.
    pub(super) threshold: f64,
}

/// Reads it; `None` where something is noted as wrong.
pub(super) fn read(spec: &Mapping<'_>, indicator: Indicator, faults: &mut Faults) -> Option<Limit> {
    let threshold = threshold(spec, indicator, faults);
    let form = faults.keep(form(spec, indicator));
    let (threshold, form) = (threshold?, form?);
    let goal = match form {
        Some(goal) => goal,
        None if indicator == Indicator::UnattributedShare => Goal::Pooled,
        None => Goal::Share { target: share_target(threshold, indicator) },
    };
    Some(Limit { goal, threshold })
}

/// The quantile or ratio that is asked for; `None` where the threshold is itself a share.
fn form(spec: &Mapping<'_>, indicator: Indicator) -> Result<Option<Goal>, DocumentError> {
    let takes_none =
        matches!(indicator, Indicator::ResultShare(_) | Indicator::JoinCoverage | Indicator::DroppedIterations);
    match (spec.get("quantile"), spec.get("ratio")) {
        (Some(_), Some(ratio)) => Err(ratio.refuse("stands beside quantile; give one of them")),
        (Some(field), None) | (None, Some(field)) if takes_none => Err(field.refuse(format!(
            "does not fit {indicator}, which is itself a share of requests; leave it out, and say how much in threshold"
        ))),
        (Some(field), None) => Ok(Some(Goal::Quantile { target: quantile(&field)? })),
        (None, Some(field)) => Ok(Some(Goal::Ratio { target: quantile(&field)? })),
        (None, None) if matches!(indicator, Indicator::Metric(_)) => {
            let advice =
                "give quantile or ratio: the share of requests that must be within the threshold, such as 0.95";
            Err(spec.need("quantile", advice).map_or_else(|missing| missing, |field| field.refuse(advice)))
        }
        (None, None) => Ok(None),
    }
}

fn quantile(field: &Field<'_>) -> Result<Quantile, DocumentError> {
    let number = field.number()?;
    number.to_string().parse().map_err(|error: BadQuantile| field.refuse(error.to_string()))
}

/// Reads the threshold in the field that fits the indicator, and refuses the others.
fn threshold(spec: &Mapping<'_>, indicator: Indicator, faults: &mut Faults) -> Option<f64> {
    let (fitting, what) = match indicator.unit() {
        Unit::Nanos | Unit::Millis => (THRESHOLDS[0], "a time in milliseconds"),
        Unit::TokensPerSecond => (THRESHOLDS[1], "a rate in tokens a second"),
        Unit::Share => (THRESHOLDS[2], "a share from 0 to 1"),
    };
    let misfits: Vec<Field<'_>> =
        THRESHOLDS.iter().filter(|name| **name != fitting).filter_map(|name| spec.get(name)).collect();
    for misfit in &misfits {
        faults.add(misfit.refuse(format!("does not fit {indicator}, which is {what}; give {fitting} instead")));
    }
    match spec.get(fitting) {
        Some(field) => faults.keep(amount(&field, indicator)),
        None if misfits.is_empty() => {
            let missing = spec.need(fitting, format!("{indicator} is {what}: say how much is still good"));
            faults.keep(missing.map(|_| 0.0))
        }
        None => None,
    }
}

fn amount(field: &Field<'_>, indicator: Indicator) -> Result<f64, DocumentError> {
    match indicator.unit() {
        Unit::Nanos => Ok(nanos(field)?.0 as f64),
        Unit::Millis => Ok(positive(field, LONGEST.as_millis())?),
        Unit::TokensPerSecond => positive(field, FASTEST),
        Unit::Share => share(field, indicator),
    }
}

/// A time above nothing, exact to the nanosecond.
pub(super) fn nanos(field: &Field<'_>) -> Result<Nanos, DocumentError> {
    let millis = positive(field, LONGEST.as_millis())?;
    let places = millis.to_string().split_once('.').map_or(0, |(_, places)| places.len());
    let exact = Nanos::from_millis(millis).filter(|_| places <= 6);
    exact.ok_or_else(|| field.refuse("is finer than a nanosecond; give at most six decimal places"))
}

fn positive(field: &Field<'_>, most: f64) -> Result<f64, DocumentError> {
    let number = field.number()?;
    if number > 0.0 && number <= most {
        return Ok(number);
    }
    Err(field.refuse(format!("is {number}; give a number above 0 and at most {most}")))
}

/// A share; where it is one of requests, its target must be a number that is kept exactly.
fn share(field: &Field<'_>, indicator: Indicator) -> Result<f64, DocumentError> {
    let number = field.share()?;
    let places = number.to_string().split_once('.').map_or(0, |(_, places)| places.len());
    if places > 9 {
        return Err(field.refuse("has more than nine decimal places; round it"));
    }
    let holds_always = match indicator.direction() {
        Direction::AtMost => number == 1.0,
        Direction::AtLeast => number == 0.0,
    };
    if holds_always {
        return Err(field.refuse(format!("is {number}, which every value keeps; give a share that can be broken")));
    }
    Ok(number)
}

/// The least share of good requests behind a threshold that is a share. None bad at all is kept as the largest quantile.
fn share_target(threshold: f64, indicator: Indicator) -> Quantile {
    let kept: Option<Quantile> = threshold.to_string().parse().ok();
    match (kept, indicator.direction()) {
        (Some(share), Direction::AtLeast) => share,
        (Some(share), Direction::AtMost) => share.complement(),
        (None, _) => Quantile::LARGEST,
    }
}
