//! From cells to an answer: groups, each with its distributions and its coverage.

use std::collections::{BTreeMap, BTreeSet};

use super::bias::Bias;
use super::cell::{Cell, CellKey, Series, is_cut_off};
use super::coverage::{Coverage, Tally};
use super::quantile::Quantile;
use super::sample::{Sample, Values};
use super::scope::{Dictionary, GroupLabels, Scope, Tellers};
use super::stream::{Output, Rhythm, Wholeness};
use super::summary::Summary;
use model::{GroupKey, Interval, Metric, ResultClass, Section, Selection, State};

/// From this many requests on a group is answered from digests.
pub const EXACT_BELOW: u64 = 10_000;

/// A question about the requests of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The requests that count.
    pub selection: Selection,
    /// The keys of a group; none for one group of all.
    pub group_by: Vec<GroupKey>,
    /// Which quantiles are wanted.
    pub quantiles: Vec<Quantile>,
}

/// What a window holds: cells in a fixed order, of all requests that a question can be about, and the labels of all
/// requests in the window. The same key may come several times, once a minute.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Counts and samples by cell.
    pub cells: Vec<(CellKey, Cell)>,
    /// The labels that the cells refer to.
    pub dictionary: Dictionary,
}

/// The contents of a window, and the window that they are of: one that rollups serve is widened to whole minutes.
#[derive(Debug, Clone)]
pub struct Window {
    pub served: Interval,
    /// What was found.
    pub contents: Contents,
    /// Client records of any window and label that came but whose traces have not settled yet, so that no count knows
    /// them.
    pub unsettled_records: u64,
}

/// One group of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What its requests share.
    pub labels: GroupLabels,
    /// Matched requests.
    pub n: u64,
    pub coverage: Coverage,
    /// Whether its streamed answers were whole, of every result.
    pub wholeness: Wholeness,
    /// Whether something held its streamed answers back.
    pub rhythm: Rhythm,
    /// The output of all of it, of every result.
    pub output: Output,
    /// Its distributions: the main metrics always, others where a request tells them.
    pub metrics: Vec<(Metric, Summary)>,
}

/// Groups and the coverage of what they are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The coverage of the whole.
    pub coverage: Coverage,
    /// The groups, ordered by their labels; one with no labels where no grouping was asked for.
    pub groups: Vec<Group>,
}

impl Question {
    /// Answers from a window's contents.
    pub fn answer(&self, contents: &Contents) -> Answer {
        let scope = Scope::of(&self.selection);
        let tellers = Tellers::of(&contents.dictionary, &scope);
        let coverage = coverage(contents, &scope, &tellers);
        let mut groups = Vec::new();
        for (labels, members) in self.groups(contents, &scope) {
            let narrowed = scope.narrowed(&labels);
            let coverage =
                if labels.0.is_empty() { coverage.clone() } else { self::coverage(contents, &narrowed, &tellers) };
            groups.push(self.group(labels, &members, coverage, contents, &narrowed));
        }
        Answer { coverage, groups }
    }

    /// The coverage alone.
    pub fn coverage(&self, contents: &Contents) -> Coverage {
        let scope = Scope::of(&self.selection);
        coverage(contents, &scope, &Tellers::of(&contents.dictionary, &scope))
    }

    /// How many groups the answer has.
    pub fn group_count(&self, contents: &Contents) -> usize {
        self.groups(contents, &Scope::of(&self.selection)).len()
    }

    /// The stored ids of the labels whose requests can count, out of all in the window.
    pub fn needed_labels(&self, dictionary: &Dictionary) -> BTreeSet<i64> {
        let scope = Scope::of(&self.selection);
        let tellers = Tellers::of(dictionary, &scope);
        let needed = dictionary.iter().filter(|(id, labels)| scope.needs(**id, labels, &tellers));
        needed.map(|(id, _)| *id).collect()
    }

    /// The cells that are read whole: those of groups below [`EXACT_BELOW`] requests, and beside them those that were
    /// cut off, where there are not too many.
    pub fn exact_cells(&self, contents: &Contents) -> BTreeSet<CellKey> {
        let mut exact = BTreeSet::new();
        let mut large = BTreeSet::new();
        for members in self.groups(contents, &Scope::of(&self.selection)).into_values() {
            let keys: BTreeSet<CellKey> = members.iter().map(|(key, _)| **key).collect();
            if requests(members.iter().copied()) >= EXACT_BELOW {
                large.extend(keys);
                continue;
            }
            let labels: BTreeSet<i64> = keys.iter().map(|key| key.labels).collect();
            let beside = || contents.pairs().filter(|(key, _)| is_cut_off(key.result) && labels.contains(&key.labels));
            if requests(beside()) < EXACT_BELOW {
                exact.extend(beside().map(|(key, _)| *key));
            }
            exact.extend(keys);
        }
        exact.difference(&large).copied().collect()
    }

    /// The cells of each group that hold values. Where nothing groups, there is one group even without a request.
    fn groups<'a>(&self, contents: &'a Contents, scope: &Scope) -> BTreeMap<GroupLabels, Vec<(&'a CellKey, &'a Cell)>> {
        let mut groups: BTreeMap<GroupLabels, Vec<_>> = BTreeMap::new();
        if self.group_by.is_empty() {
            groups.insert(GroupLabels::default(), Vec::new());
        }
        for (key, cell) in contents.pairs() {
            let Some(labels) = contents.dictionary.get(&key.labels) else { continue };
            let counts = matches!(key.state, State::Matched | State::ClientOnly);
            if counts && scope.admits_result(key.result) && scope.admits_labels(labels) {
                groups.entry(GroupLabels::of(&self.group_by, key, labels)).or_default().push((key, cell));
            }
        }
        groups
    }

    fn group(
        &self,
        labels: GroupLabels,
        members: &[(&CellKey, &Cell)],
        coverage: Coverage,
        contents: &Contents,
        scope: &Scope,
    ) -> Group {
        let n = members.iter().filter(|(key, _)| key.state == State::Matched).map(|(_, cell)| cell.counts.requests);
        let records = coverage.tally.client_records();
        let whole = members.iter().all(|(key, _)| key.result == Some(ResultClass::Ok));
        let mut metrics = Vec::new();
        for metric in Metric::ALL.iter().copied() {
            let sample = sample(members.iter().copied(), Series::Of(metric));
            if sample.n() == 0 && !is_always_shown(metric) {
                continue;
            }
            let censored = if whole { censored(metric, members, contents, scope) } else { None };
            metrics.push((metric, Summary::of(&sample, records, censored.as_ref(), &self.quantiles)));
        }
        let (n, rhythm) = (n.sum(), Rhythm::of(members.iter().copied(), &contents.dictionary));
        let (wholeness, output) = of_every_result(&labels, contents, scope);
        Group { labels, n, coverage, wholeness, rhythm, output, metrics }
    }
}

impl Contents {
    /// How many requests there are, in any state.
    pub fn requests(&self) -> u64 {
        requests(self.pairs())
    }

    fn pairs(&self) -> impl Iterator<Item = (&CellKey, &Cell)> {
        self.cells.iter().map(|(key, cell)| (key, cell))
    }
}

fn requests<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>) -> u64 {
    cells.map(|(_, cell)| cell.counts.requests).sum()
}

/// What would look better than it is if only some results counted: an answer that was cut off is no `ok` one. Groups by
/// result keep to theirs.
fn of_every_result(labels: &GroupLabels, contents: &Contents, scope: &Scope) -> (Wholeness, Output) {
    let by_result = labels.0.iter().any(|(key, _)| *key == GroupKey::Result);
    let all = || {
        contents.pairs().filter(|(key, _)| {
            let admitted = |labels| scope.admits_labels(labels) && (!by_result || scope.admits_result(key.result));
            contents.dictionary.get(&key.labels).is_some_and(admitted)
        })
    };
    (Wholeness::of(all(), &contents.dictionary), Output::of(all()))
}

fn is_always_shown(metric: Metric) -> bool {
    match metric.section() {
        Section::Phases => !matches!(metric, Metric::Prefill | Metric::Decode | Metric::WallEnvelope),
        Section::Client => matches!(metric, Metric::Duration | Metric::Ttft | Metric::Setup),
        Section::Server => metric == Metric::ServerTotal,
        Section::Stream => matches!(metric, Metric::MaxGap | Metric::StallRate),
        Section::Ttft | Section::Rates => true,
    }
}

fn sample<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>, series: Series) -> Sample {
    let parts: Vec<Values> = cells.filter_map(|(_, cell)| cell.series.get(&series)).cloned().collect();
    Sample::of(parts)
}

/// The sample of whole answers together with those that were cut off, at the time that they lasted.
fn censored(metric: Metric, members: &[(&CellKey, &Cell)], contents: &Contents, scope: &Scope) -> Option<Sample> {
    let series = match metric {
        Metric::Duration => Series::Of(Metric::Duration),
        Metric::Ttft => Series::CensoredTtft,
        _ => return None,
    };
    let mut parts: Vec<Values> =
        members.iter().filter_map(|(_, cell)| cell.series.get(&Series::Of(metric))).cloned().collect();
    for (key, cell) in contents.pairs().filter(|(key, _)| is_cut_off(key.result)) {
        let in_scope = contents.dictionary.get(&key.labels).is_some_and(|labels| scope.admits_labels(labels));
        if in_scope && let Some(values) = cell.series.get(&series) {
            parts.push(values.clone());
        }
    }
    Some(Sample::of(parts))
}

/// The coverage of a scope, over everything in the window.
fn coverage(contents: &Contents, scope: &Scope, tellers: &Tellers) -> Coverage {
    let mut tally = Tally::default();
    let mut covered = Vec::new();
    for (key, cell) in contents.pairs() {
        let Some(labels) = contents.dictionary.get(&key.labels) else { continue };
        if scope.covers(key, labels, tellers) {
            tally.add(key, &cell.counts);
            covered.push((key, cell));
        }
    }
    let durations =
        |state| sample(covered.iter().copied().filter(|(key, _)| key.state == state), Series::Of(Metric::Duration));
    let bias = Bias::of(&durations(State::Matched), &durations(State::ClientOnly));
    Coverage { tally, not_filtered_by: scope.not_filtered_by(tellers), bias }
}

#[cfg(test)]
mod tests;
