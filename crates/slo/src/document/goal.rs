//! How much of an indicator is allowed: `quantile` or `ratio`, and a threshold in the indicator's unit.

use super::error::{DocumentError, Faults};
use super::fields::{At, Field, field};
use super::mapping::Known;
use super::node::Checked;
use super::schema::Spec;
use super::values::{LONGEST, Number, Share};
use crate::indicator::{Direction, Indicator};
use crate::objective::Goal;
use model::{Nanos, Unit};
use stats::Quantile;

/// Faster than any model: a larger number is a wrong unit.
const FASTEST: f64 = 1e6;

/// What a share of time cannot have.
pub(super) const NO_INTERVAL: &str = "does not fit a pooled share of time, which has no good and bad requests, so no \
                                      interval, no bounds and no burn rate; give a quantile or ratio, or leave it out";

/// A goal and its threshold, in the unit in which the indicator is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) goal: Goal,
    pub(super) threshold: f64,
}

/// `None` where something is noted as wrong.
pub(super) fn read(spec: &At<'_, Known<Spec>>, indicator: Indicator, faults: &mut Faults) -> Option<Limit> {
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
fn form(spec: &At<'_, Known<Spec>>, indicator: Indicator) -> Result<Option<Goal>, DocumentError> {
    let takes_none =
        matches!(indicator, Indicator::ResultShare(_) | Indicator::JoinCoverage | Indicator::DroppedIterations);
    match (field!(spec.quantile).given(), field!(spec.ratio).given()) {
        (Some(_), Some(ratio)) => Err(ratio.refuse("stands beside quantile; give one of them")),
        (Some(field), None) | (None, Some(field)) if takes_none => Err(field.refuse(format!(
            "does not fit {indicator}, which is itself a share of requests; leave it out, and give the share in threshold"
        ))),
        (Some(quantile), None) => Ok(Some(Goal::Quantile { target: *quantile.get()? })),
        (None, Some(ratio)) => Ok(Some(Goal::Ratio { target: *ratio.get()? })),
        (None, None) if matches!(indicator, Indicator::Metric(_)) => Err(field!(spec.quantile).missing(
            "give quantile or ratio: the share of requests that must be within the threshold, such as 0.95",
        )),
        (None, None) => Ok(None),
    }
}

/// Reads the threshold in the field that fits the indicator, and refuses the others.
fn threshold(spec: &At<'_, Known<Spec>>, indicator: Indicator, faults: &mut Faults) -> Option<f64> {
    let (millis, rate, share) = (field!(spec.threshold_ms), field!(spec.threshold_tps), field!(spec.threshold));
    let (fitting, name, others, what): (_, _, [&Field<'_, _>; 2], _) = match indicator.unit() {
        Unit::Nanos | Unit::Millis => (&millis, "threshold_ms", [&rate, &share], "a time in milliseconds"),
        Unit::TokensPerSecond => (&rate, "threshold_tps", [&millis, &share], "a rate in tokens a second"),
        Unit::Share => (&share, "threshold", [&millis, &rate], "a share from 0 to 1"),
    };
    let misfits: Vec<_> = others.iter().filter_map(|other| other.given()).collect();
    for misfit in &misfits {
        faults.add(misfit.refuse(format!("does not fit {indicator}, which is {what}; give {name} instead")));
    }
    match fitting.given() {
        Some(field) => faults.keep(amount(&field, indicator)),
        None => {
            if misfits.is_empty() {
                faults.add(fitting.missing(&format!("{indicator} is {what}: say how much is still good")));
            }
            None
        }
    }
}

fn amount(field: &At<'_, Checked<Number>>, indicator: Indicator) -> Result<f64, DocumentError> {
    match indicator.unit() {
        Unit::Nanos => Ok(nanos(field)?.0 as f64),
        Unit::Millis => Ok(positive(field, LONGEST.as_millis())?),
        Unit::TokensPerSecond => positive(field, FASTEST),
        Unit::Share => share(field, indicator),
    }
}

/// A time above nothing, exact to the nanosecond.
pub(super) fn nanos(field: &At<'_, Checked<Number>>) -> Result<Nanos, DocumentError> {
    let millis = positive(field, LONGEST.as_millis())?;
    let places = millis.to_string().split_once('.').map_or(0, |(_, places)| places.len());
    let exact = Nanos::from_millis(millis).filter(|_| places <= 6);
    exact.ok_or_else(|| field.refuse("is finer than a nanosecond; give at most six decimal places"))
}

fn positive(field: &At<'_, Checked<Number>>, most: f64) -> Result<f64, DocumentError> {
    let Number(number) = *field.get()?;
    if number > 0.0 && number <= most {
        return Ok(number);
    }
    Err(field.refuse(format!("is {number}; give a number above 0 and at most {most}")))
}

/// A share; where it is one of requests, its target must be a number that is kept exactly.
fn share(field: &At<'_, Checked<Number>>, indicator: Indicator) -> Result<f64, DocumentError> {
    let Share(number) = Share::try_from(*field.get()?).map_err(|reason| field.refuse(reason))?;
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

/// The value of a field, unless the objective is about a share of time and the value needs an interval.
pub(super) fn unless_pooled<T: Copy>(
    field: &At<'_, Checked<T>>,
    goal: Option<Goal>,
    needs_interval: impl FnOnce(&T) -> bool,
) -> Result<T, DocumentError> {
    let value = field.get()?;
    if needs_interval(value) && goal == Some(Goal::Pooled) {
        return Err(field.refuse(NO_INTERVAL));
    }
    Ok(*value)
}
