//! Reads what an objective's verdict rests on.

use model::{Dimension, Interval};
use slo::evidence::{Evidence, question};
use slo::indicator::Indicator;
use slo::live::{PARTS, settled_minutes};
use slo::objective::Objective;
use slo::outcome::{admits, classes};
use slo::tally::Tally;
use slo::verdict::Verdict;
use stats::scope::Dictionary;

use crate::reader::{ReadError, Reader};

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
