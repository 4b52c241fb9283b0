//! `alert`: what an alert needs to fire, and how long it waits.

use super::error::Faults;
use super::fields::{At, field};
use super::goal::unless_pooled;
use super::mapping::Known;
use super::schema::Spec;
use super::values::Wait;
use crate::objective::{Alerting, Confirm, Goal};
use model::Nanos;

/// A source is not called silent sooner: senders gather what they send.
const SOONEST_SILENT: Nanos = Nanos(300_000_000_000);

/// What is wrong is noted, and the default stands in its place.
pub(super) fn read(spec: &At<'_, Known<Spec>>, goal: Option<Goal>, window: Nanos, faults: &mut Faults) -> Alerting {
    let confirm = if goal == Some(Goal::Pooled) { Confirm::Verdict } else { Confirm::Interval };
    let default = Alerting { confirm, no_verdict_after: Some(window), silent_after: Some(window.max(SOONEST_SILENT)) };
    let Some(alert) = field!(spec.alert).optional_mapping(faults) else { return default };
    alert.only_declared(&[], faults);
    let confirm = field!(alert.confirm)
        .given()
        .and_then(|field| faults.keep(unless_pooled(&field, goal, |confirm| *confirm == Confirm::Interval)));
    let no_verdict_after = field!(alert.no_verdict_after).optional(faults);
    let silent_after = field!(alert.silent_after).optional(faults);
    Alerting {
        confirm: confirm.unwrap_or(default.confirm),
        no_verdict_after: no_verdict_after.map_or(default.no_verdict_after, |Wait(wait)| *wait),
        silent_after: silent_after.map_or(default.silent_after, |Wait(wait)| *wait),
    }
}
