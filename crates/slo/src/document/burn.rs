//! `burn`: over which windows a budget may not burn too fast.

use super::error::{DocumentError, Faults};
use super::fields::{At, field};
use super::goal::NO_INTERVAL;
use super::mapping::{Known, Mapping};
use super::node::{Checked, Node, Scalar};
use super::schema::{self, Spec};
use super::values::{Count, Minutes, Number};
use crate::indicator::Indicator;
use crate::objective::{Burn, BurnWindow, Goal};
use model::Nanos;
use stats::Quantile;

const MINUTE: Nanos = Nanos(60_000_000_000);
const MIN_TRAFFIC: u64 = 50;
const MIN_BAD: u64 = 5;
/// A factor, a long and a short window in minutes.
const DEFAULTS: [(f64, i64, i64); 3] = [(14.4, 60, 5), (6.0, 360, 30), (1.0, 4320, 360)];

const NO_MINUTES: &str = "does not fit dropped_iterations, which come once, when a run ends, so that they have no minute; \
                          leave it out";

/// What is wrong is noted, and the default stands in its place.
pub(super) fn read(spec: &At<'_, Known<Spec>>, indicator: Indicator, goal: Option<Goal>, faults: &mut Faults) -> Burn {
    let none = Burn { windows: Vec::new(), min_traffic: MIN_TRAFFIC, min_bad: MIN_BAD };
    let has_minutes = indicator != Indicator::DroppedIterations;
    let target = goal.and_then(Goal::target).filter(|_| has_minutes);
    let default = || target.map(default_windows).unwrap_or_default();
    let Some(field) = field!(spec.burn).given() else { return Burn { windows: default(), ..none } };
    if matches!(field.value, Node::Scalar(Scalar::Flag(false))) {
        return none;
    }
    if goal == Some(Goal::Pooled) || !has_minutes {
        faults.add(field.refuse(if has_minutes { NO_INTERVAL } else { NO_MINUTES }));
        return none;
    }
    let Some(burn) = faults.keep(field.mapping()) else { return none };
    burn.only_declared(&[], faults);
    let count = |count: Option<&Count>, default| count.map_or(default, |Count(count)| *count);
    Burn {
        windows: windows(&burn, target, faults).unwrap_or_else(default),
        min_traffic: count(field!(burn.min_traffic).optional(faults), MIN_TRAFFIC),
        min_bad: count(field!(burn.min_bad).optional(faults), MIN_BAD),
    }
}

/// The windows that stand where none are given: those that can fire.
pub(super) fn default_windows(target: Quantile) -> Vec<BurnWindow> {
    all_defaults().filter(|window| can_fire(window.factor, target)).collect()
}

/// Every window of the defaults.
pub(super) fn all_defaults() -> impl Iterator<Item = BurnWindow> {
    let minutes = |count: i64| Nanos(count * MINUTE.0);
    DEFAULTS.into_iter().map(move |(factor, long, short)| BurnWindow {
        factor,
        long: minutes(long),
        short: minutes(short),
    })
}

/// Whether a budget can burn so fast: with every request bad it burns 1/(1 − target) times faster than even.
fn can_fire(factor: f64, target: Quantile) -> bool {
    factor * target.rest() <= 1.0
}

fn windows(
    burn: &At<'_, Known<schema::Burn>>,
    target: Option<Quantile>,
    faults: &mut Faults,
) -> Option<Vec<BurnWindow>> {
    let list = field!(burn.windows).given()?;
    let items = faults.keep(list.list())?;
    if items.is_empty() {
        faults.add(burn.refuse("has no windows; give some, leave windows out for the usual ones, or set burn: false"));
    }
    let mut windows: Vec<BurnWindow> = Vec::new();
    for item in &items {
        let Some(window) = window(item, target, faults) else { continue };
        if windows.iter().any(|other| (other.long, other.short) == (window.long, window.short)) {
            faults.add(item.refuse("has the long and short of another; leave one of them out"));
        }
        windows.push(window);
    }
    windows.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    Some(windows)
}

fn window(item: &At<'_, Mapping<schema::Window>>, target: Option<Quantile>, faults: &mut Faults) -> Option<BurnWindow> {
    let window = faults.keep(item.mapping())?;
    window.only_declared(&[], faults);
    let factor = field!(window.factor).need("say how many times faster than even, such as 14.4");
    let factor = faults.keep(factor.and_then(|field| read_factor(&field, target)));
    let long = field!(window.long).required("give the longer window, such as 1h", faults);
    let short = field!(window.short);
    let (Some(Minutes(short)), field) = (short.required("give the shorter window, such as 5m", faults), short.given())
    else {
        return None;
    };
    let (factor, Minutes(long), field) = (factor?, long?, field?);
    if short >= long {
        faults.add(field.refuse("is not shorter than long; give the window that shows that it goes on"));
        return None;
    }
    Some(BurnWindow { factor, long: *long, short: *short })
}

fn read_factor(field: &At<'_, Checked<Number>>, target: Option<Quantile>) -> Result<f64, DocumentError> {
    let Number(factor) = *field.get()?;
    if factor <= 0.0 {
        return Err(field.refuse(format!("is {factor}; give a number above 0")));
    }
    let Some(target) = target.filter(|target| !can_fire(factor, *target)) else { return Ok(factor) };
    let most = 1.0 / target.rest();
    Err(field.refuse(format!(
        "is {factor} and can never be reached: with a target of {target} a budget in which every request is bad burns \
         {most:.3} times faster than even; give at most that"
    )))
}
