//! Reads what an objective's verdict rests on.

use super::evidence::{Evidence, question};
use super::indicator::Indicator;
use super::objective::Objective;
use super::outcome::{admits, classes};
use super::tally::Tally;
use super::verdict::Verdict;
use crate::aggregate::scope::Dictionary;
use crate::aggregate::{ReadError, Reader};
use crate::model::{Dimension, Interval, Nanos, Slice, UnixNanos};

/// How much longer than it takes to settle a request is waited for.
const MARGIN: Nanos = Nanos(1_000_000_000);

/// The parts of a live window that must hold traffic.
pub(super) const PARTS: u32 = 10;

/// The window of an objective that ends as late as everything has settled at `now`.
pub fn live_window(objective: &Objective, settle: Nanos, now: UnixNanos) -> Interval {
    let end = live_end(settle, now);
    Interval { start: end - objective.window, end }
}

/// Where a window ends that ends as late as everything has settled at `now`.
pub fn live_end(settle: Nanos, now: UnixNanos) -> UnixNanos {
    now - settle - MARGIN
}

/// The verdict of an objective over a window. A `live` one moves with the time of day, so that it may begin before there
/// was any traffic; any other is whole.
///
/// # Errors
/// All of [`ReadError`].
pub async fn assess(
    reader: &Reader,
    objective: &Objective,
    window: Interval,
    live: bool,
) -> Result<Verdict, ReadError> {
    if objective.indicator == Indicator::DroppedIterations {
        return assess_iterations(reader, objective, window).await;
    }
    let mut read = reader.contents(&question(objective, window)).await?;
    if let Some(earlier) = settled_minutes(window).filter(|_| live && read.served.end > window.end) {
        read = reader.contents(&question(objective, earlier)).await?;
    }
    let filled = if live { Some(filled(reader, objective, window, &read.contents.dictionary).await?) } else { None };
    Ok(Verdict::of(objective, Evidence::of(objective, read.served, &read.contents, filled)))
}

/// The verdict on the iterations of the runs that finished in a window. No request tells of them, so they are counted by
/// what the runs say, and nothing of it can be missing but whole runs.
///
/// # Errors
/// [`ReadError::Store`].
pub async fn assess_iterations(
    reader: &Reader,
    objective: &Objective,
    finished: Interval,
) -> Result<Verdict, ReadError> {
    let runs: Option<Vec<String>> =
        objective.conditions.labels.get(&Dimension::Run).map(|runs| runs.iter().cloned().collect());
    let told = reader.iterations(finished, runs.as_deref()).await?;
    let tally = Tally { good: told.started, bad: told.dropped, ..Tally::default() };
    Ok(Verdict::of(objective, Evidence::counted(objective, finished, tally)))
}

/// A window served in whole minutes would reach into what has not settled, where quick requests are known before slow
/// ones: this one ends with the last minute that has. `None` where the window holds no end of a minute.
fn settled_minutes(window: Interval) -> Option<Interval> {
    let end = Slice::minute_of(window.end);
    (end > window.start).then_some(Interval { end, ..window })
}

/// The part of a window's tenths in which there is a settled client record that the objective is about.
async fn filled(
    reader: &Reader,
    objective: &Objective,
    window: Interval,
    dictionary: &Dictionary,
) -> Result<f64, ReadError> {
    let admitted = dictionary.iter().filter(|(_, labels)| admits(objective, labels)).map(|(id, _)| *id);
    let admitted: Vec<i64> = admitted.collect();
    let busy = reader.busy_parts(window, PARTS, &admitted, &classes(objective.indicator)).await?;
    Ok(f64::from(busy) / f64::from(PARTS))
}
