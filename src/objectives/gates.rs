//! Reads what a gate needs: each row of its window once, whatever the number of objectives.

use std::collections::{BTreeMap, BTreeSet};

use super::assess::{assess, assess_iterations};
use crate::reader::{ReadError, Reader};
use crate::store::{Store, StoreError, Unsettled};
use model::{Dimension, Interval, Metric, Observation, Readings, Slice, UnixNanos};
use slo::evidence::{Evidence, question};
use slo::explain::{Baseline, Collector, Explanation, Means, Pair, Past, Splits, Unread};
use slo::gate::of_run;
use slo::objective::Conditions;
use slo::{Indicator, Objective, Status, Verdict};
use stats::Contents;
use stats::cell::{Cell, CellKey};
use stats::scope::Dictionary;

/// Requests of one window that are read one by one. Verdicts on more of them come from digests, and nothing explains them.
pub const MAX_ROWS: u64 = 1_000_000;

/// What a gate is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct GateQuestion {
    /// What must hold.
    pub objectives: Vec<Objective>,
    pub run: Option<String>,
    /// Over which window; `None` for that of the run's requests.
    pub window: Option<Interval>,
    /// What came later is not waited for.
    pub received_before: UnixNanos,
    /// Whether to give no verdicts as long as something has not settled.
    pub when_settled: bool,
    /// Whether to say where the time went.
    pub explain: bool,
    /// What to compare it with.
    pub baseline: Option<Against>,
}

/// What a window is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    Run(String),
    Window(Interval),
}

/// What a gate found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The window; `None` while no request of the run has settled.
    pub window: Option<Interval>,
    /// What has not settled.
    pub unsettled: Unsettled,
    /// The verdicts, in the order of the objectives; `None` where they were not to be given yet.
    pub verdicts: Option<Vec<(Objective, Verdict)>>,
    /// Where the time went.
    pub explanations: Vec<Explanation>,
}

/// Why a gate could not look.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Nothing of the run is kept.
    #[error(
        "no request of the run {0:?} is stored; check its name, and that the client records carry it as `run`; data older \
         than the retention is gone"
    )]
    UnknownRun(String),
    /// The window could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<StoreError> for GateError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// Judges windows.
#[derive(Clone)]
pub struct Gates {
    store: Store,
    reader: Reader,
}

impl Gates {
    /// Reads from `store`.
    pub fn new(store: Store) -> Self {
        Self { reader: Reader::new(store.clone()), store }
    }

    /// Answers a gate's question.
    ///
    /// # Errors
    /// All of [`GateError`].
    pub async fn judge(&self, asked: &GateQuestion) -> Result<Judged, GateError> {
        let run = asked.run.as_deref();
        let window = match (asked.window, run) {
            (Some(window), _) => Some(window),
            (None, Some(run)) => self.store.window_of_run(run).await?,
            (None, None) => None,
        };
        let unsettled = self.store.unsettled(asked.received_before, window, run).await?;
        let waits = asked.when_settled && !unsettled.is_settled();
        let Some(window) = window.filter(|_| !waits) else {
            return nothing_yet(asked, unsettled, waits);
        };
        let objectives = narrowed(&asked.objectives, run);
        let groups = if asked.explain { groups(&objectives) } else { Vec::new() };
        let read = self.read(window, &objectives, &groups).await?;
        let mut verdicts = Vec::new();
        for objective in objectives {
            let verdict = self.verdict(&objective, asked, window, read.contents.as_ref()).await?;
            verdicts.push((objective, verdict));
        }
        let mut explanations = Vec::new();
        for (group, now) in groups.iter().zip(read.splits) {
            let baseline = self.baseline(group, asked, window).await?;
            explanations.push(group.explain(&verdicts, now, baseline));
        }
        Ok(Judged { window: Some(window), unsettled, verdicts: Some(verdicts), explanations })
    }

    /// From the rows where they are there, else as a question about any window is answered.
    async fn verdict(
        &self,
        objective: &Objective,
        asked: &GateQuestion,
        window: Interval,
        contents: Option<&Contents>,
    ) -> Result<Verdict, GateError> {
        if objective.indicator == Indicator::DroppedIterations {
            // A run is told to have ended after its last request, so after the window of its requests.
            let end = if asked.run.is_some() { UnixNanos(i64::MAX) } else { window.end };
            return Ok(assess_iterations(&self.reader, objective, Interval { end, ..window }).await?);
        }
        match contents {
            Some(contents) => Ok(Verdict::of(objective, Evidence::of(objective, window, contents, None))),
            None => Ok(assess(&self.reader, objective, window, false).await?),
        }
    }

    async fn baseline(
        &self,
        group: &Group,
        asked: &GateQuestion,
        window: Interval,
    ) -> Result<Option<Baseline>, GateError> {
        let (run, window) = match &asked.baseline {
            Some(Against::Run(run)) => match self.store.window_of_run(run).await? {
                Some(window) => (Some(run.clone()), window),
                None => return Err(GateError::UnknownRun(run.clone())),
            },
            Some(Against::Window(window)) => (None, *window),
            None if asked.run.is_some() => return Ok(None),
            None => (None, Interval { start: window.start - window.length(), end: window.start }),
        };
        let mut group = group.clone();
        if asked.run.is_some() || run.is_some() {
            for objective in &mut group.objectives {
                match &run {
                    Some(run) => *objective = of_run(objective, run),
                    None => drop(objective.conditions.labels.remove(&Dimension::Run)),
                }
            }
        }
        let mut read = self.read(window, &[], std::slice::from_ref(&group)).await?;
        Ok(read.splits.pop().map(|splits| Baseline { run, splits }))
    }

    async fn read(&self, window: Interval, objectives: &[Objective], groups: &[Group]) -> Result<Read, GateError> {
        let first = Slice::of(window.start, window.start);
        if !self.store.keeps_rows_of(first, UnixNanos::now()) {
            // Some rows may be gone: only rollups tell all of it.
            let gone = Splits { window, splits: Vec::new(), records: 0, unread: Some(Unread::Gone) };
            return Ok(Read { contents: None, splits: vec![gone; groups.len()] });
        }
        let mut snapshot = self.store.snapshot().await?;
        let dictionary = snapshot.labels(window, false).await?;
        let grouped = groups.iter().filter_map(|group| group.objectives.first());
        let mut needed = BTreeSet::new();
        for objective in objectives.iter().chain(grouped) {
            needed.extend(question(objective, window).needed_labels(&dictionary));
        }
        let needed: Vec<i64> = needed.into_iter().collect();
        let mut rows = Rows::new(objectives, groups, window, &dictionary);
        let all = snapshot.visit(window, &needed, MAX_ROWS, |_, observation| rows.add(&observation)).await?;
        let (cells, splits) = rows.finish((!all).then_some(Unread::TooMany));
        let contents = all.then(|| Contents { cells: cells.into_iter().collect(), dictionary });
        Ok(Read { contents, splits })
    }
}

/// Where there is nothing to judge: because it is waited for, because nothing of the run has settled in time, or because
/// there is no such run.
fn nothing_yet(asked: &GateQuestion, unsettled: Unsettled, waits: bool) -> Result<Judged, GateError> {
    match &asked.run {
        Some(run) if unsettled.is_settled() => Err(GateError::UnknownRun(run.clone())),
        _ => {
            let verdicts = if waits { None } else { Some(Vec::new()) };
            Ok(Judged { window: asked.window, unsettled, verdicts, explanations: Vec::new() })
        }
    }
}

fn narrowed(objectives: &[Objective], run: Option<&str>) -> Vec<Objective> {
    let narrow = |objective: &Objective| run.map_or_else(|| objective.clone(), |run| of_run(objective, run));
    objectives.iter().map(narrow).collect()
}

/// Objectives whose requests are the same, looked at as the same pair.
#[derive(Debug, Clone)]
struct Group {
    pair: Pair,
    conditions: Conditions,
    objectives: Vec<Objective>,
}

fn groups(objectives: &[Objective]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for objective in objectives {
        let pair = Pair::of(objective.indicator);
        let same = |group: &&mut Group| group.pair == pair && group.conditions == objective.conditions;
        match groups.iter_mut().find(same) {
            Some(group) => group.objectives.push(objective.clone()),
            None => groups.push(Group {
                pair,
                conditions: objective.conditions.clone(),
                objectives: vec![objective.clone()],
            }),
        }
    }
    groups
}

impl Group {
    fn explain(&self, verdicts: &[(Objective, Verdict)], now: Splits, baseline: Option<Baseline>) -> Explanation {
        let is_broken = |objective: &Objective| {
            verdicts.iter().any(|(other, verdict)| other.id == objective.id && verdict.status == Status::Broken)
        };
        let mut broken = Vec::new();
        for (bit, objective) in self.objectives.iter().enumerate().filter(|(_, objective)| is_broken(objective)) {
            let past = now.splits.iter().filter(|split| split.past.checked_shr(bit as u32).unwrap_or(0) & 1 == 1);
            let means = Means::of(self.pair, past);
            broken.push(Past { objective: objective.id.clone(), indicator: objective.indicator, means });
        }
        let objectives = self.objectives.iter().map(|objective| objective.id.clone()).collect();
        Explanation { objectives, pair: self.pair, broken, now, baseline }
    }
}

/// What was read of a window.
struct Read {
    /// `None` where there are more rows than are read.
    contents: Option<Contents>,
    /// One for each group.
    splits: Vec<Splits>,
}

/// What the rows of a window become.
struct Rows<'a> {
    metrics: BTreeSet<Metric>,
    cells: BTreeMap<CellKey, Cell>,
    collectors: Vec<Collector<'a>>,
}

impl<'a> Rows<'a> {
    fn new(objectives: &[Objective], groups: &'a [Group], window: Interval, dictionary: &'a Dictionary) -> Self {
        let collector = |group: &'a Group| Collector::new(group.pair, &group.objectives, window, dictionary);
        let metrics = objectives.iter().flat_map(|objective| metrics(objective.indicator)).collect();
        Self { metrics, cells: BTreeMap::new(), collectors: groups.iter().filter_map(collector).collect() }
    }

    /// Cells take the metrics alone that an objective needs: all of them of a million requests would be too large.
    fn add(&mut self, observation: &Observation) {
        for collector in &mut self.collectors {
            collector.add(observation);
        }
        if self.metrics.is_empty() {
            return;
        }
        let mut readings = Readings::NONE;
        for metric in &self.metrics {
            readings.set(*metric, observation.readings.get(*metric));
        }
        let narrow = Observation { readings, ..observation.clone() };
        self.cells.entry(CellKey::of(&narrow)).or_default().add(&narrow);
    }

    fn finish(self, unread: Option<Unread>) -> (BTreeMap<CellKey, Cell>, Vec<Splits>) {
        (self.cells, self.collectors.into_iter().map(|collector| collector.finish(unread)).collect())
    }
}

/// What decides an indicator; of requests that were cut off also how long they lasted.
fn metrics(indicator: Indicator) -> Vec<Metric> {
    let lasted = [Metric::Duration, Metric::Wall];
    match indicator {
        Indicator::Metric(metric) => [&[metric], &lasted[..]].concat(),
        Indicator::UnattributedShare => {
            [&[Metric::Unattributed, Metric::ServerTotal, Metric::UnattributedShare], &lasted[..]].concat()
        }
        Indicator::ResultShare(_) | Indicator::JoinCoverage | Indicator::DroppedIterations => lasted.to_vec(),
    }
}
