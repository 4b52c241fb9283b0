//! How early an alert would have been, compared with when people noticed.

use super::replayed::Firing;
use crate::alert::Trouble;
use model::{Nanos, UnixNanos};

/// Alerts that are further from the time are not about what was noticed: 6 hours.
const NEAR: Nanos = Nanos(6 * 3_600_000_000_000);

/// A time at which people noticed, and the alert that was about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noticed<'a> {
    /// When people noticed.
    pub at: UnixNanos,
    /// The alert that fired then, first of all that did; else the nearest within 6 hours.
    pub firing: Option<&'a Firing>,
    /// How long before the time it fired; negative where it fired after.
    pub before: Option<Nanos>,
}

/// Finds the alert for a time. A missing verdict is no alert about what people noticed.
pub fn noticed(at: UnixNanos, firings: &[Firing]) -> Noticed<'_> {
    let telling = || firings.iter().filter(|firing| firing.trouble != Trouble::NoVerdict);
    let on = telling().filter(|firing| firing.is_on(at)).min_by_key(|firing| firing.start);
    let distance = |firing: &&Firing| (at - firing.start).0.abs();
    let near = || telling().filter(|firing| distance(firing) <= NEAR.0).min_by_key(distance);
    let firing = on.or_else(near);
    Noticed { at, firing, before: firing.map(|firing| at - firing.start) }
}
