//! `alert`: who is told of what, and when.

use super::error::{DocumentError, Faults};
use super::fields::{Field, Mapping};
use super::spec::{LONGEST, NO_INTERVAL, SHORTEST};
use crate::objective::{Alerting, Confirm, Goal};
use model::Nanos;

/// A source is not called silent sooner: senders gather what they send.
const SOONEST_SILENT: Nanos = Nanos(300_000_000_000);

/// Reads it. What is wrong is noted, and counts as not said.
pub(super) fn read(spec: &Mapping<'_>, goal: Option<Goal>, window: Nanos, faults: &mut Faults) -> Alerting {
    let confirm = if goal == Some(Goal::Pooled) { Confirm::Verdict } else { Confirm::Interval };
    let usual = Alerting { confirm, no_verdict_after: Some(window), silent_after: Some(window.max(SOONEST_SILENT)) };
    let Some(alert) = spec.optional("alert", faults, Field::mapping) else { return usual };
    alert.only(&["confirm", "no_verdict_after", "silent_after"], faults);
    Alerting {
        confirm: alert.optional("confirm", faults, |field| read_confirm(field, goal)).unwrap_or(usual.confirm),
        no_verdict_after: alert.optional("no_verdict_after", faults, wait).unwrap_or(usual.no_verdict_after),
        silent_after: alert.optional("silent_after", faults, wait).unwrap_or(usual.silent_after),
    }
}

fn read_confirm(field: &Field<'_>, goal: Option<Goal>) -> Result<Confirm, DocumentError> {
    let confirm = field.one_of(&[("interval", Confirm::Interval), ("verdict", Confirm::Verdict)])?;
    if confirm == Confirm::Interval && goal == Some(Goal::Pooled) {
        return Err(field.refuse(NO_INTERVAL));
    }
    Ok(confirm)
}

fn wait(field: &Field<'_>) -> Result<Option<Nanos>, DocumentError> {
    if field.text(100).is_ok_and(|text| text == "never") {
        return Ok(None);
    }
    field.duration(SHORTEST, LONGEST).map(Some)
}
