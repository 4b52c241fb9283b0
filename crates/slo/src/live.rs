//! Which window a live objective is judged over.

use super::objective::Objective;
use model::{Interval, Nanos, Slice, UnixNanos};

/// How much longer than it takes to settle a request is waited for.
const MARGIN: Nanos = Nanos(1_000_000_000);

/// The parts of a live window that must hold traffic.
pub const PARTS: u32 = 10;

/// The window of an objective that ends as late as everything has settled at `now`.
pub fn live_window(objective: &Objective, settle: Nanos, now: UnixNanos) -> Interval {
    let end = live_end(settle, now);
    Interval { start: end - objective.window, end }
}

/// Where a window ends that ends as late as everything has settled at `now`.
pub fn live_end(settle: Nanos, now: UnixNanos) -> UnixNanos {
    now - settle - MARGIN
}

/// A window served in whole minutes would reach into what has not settled, where quick requests are known before slow
/// ones: this one ends with the last minute that has. `None` where the window holds no end of a minute.
pub fn settled_minutes(window: Interval) -> Option<Interval> {
    let end = Slice::minute_of(window.end);
    (end > window.start).then_some(Interval { end, ..window })
}
