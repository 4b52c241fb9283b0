//! From cells to an answer: groups, each with its distributions and its coverage.

use std::collections::{BTreeMap, BTreeSet};

use super::bias::Bias;
use super::cell::{Cell, CellKey, Series, is_cut_off};
use super::coverage::{Coverage, Tally};
use super::quantile::Quantile;
use super::sample::{Sample, Values};
use super::scope::{Dictionary, GroupLabels, Scope, Tellers};
use super::summary::Summary;
use crate::model::{GroupKey, Interval, Metric, ResultClass, Section, Selection, State};

/// From this many requests on a group is answered from digests.
pub const EXACT_BELOW: u64 = 10_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Which requests.
    pub selection: Selection,
    /// How they are grouped.
    pub group_by: Vec<GroupKey>,
    /// Which quantiles are wanted.
    pub quantiles: Vec<Quantile>,
}

/// Everything in a window: cells in a fixed order, and the labels that their keys name. The same key may come several
/// times, once a minute.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// The cells.
    pub cells: Vec<(CellKey, Cell)>,
    /// The labels.
    pub dictionary: Dictionary,
}

/// The contents of a window, and the window that they are of: one that rollups serve is widened to whole minutes.
#[derive(Debug, Clone)]
pub struct Window {
    /// What was read.
    pub served: Interval,
    /// What was found.
    pub contents: Contents,
}

/// One group of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What its requests share.
    pub labels: GroupLabels,
    /// Matched requests.
    pub n: u64,
    /// Its coverage.
    pub coverage: Coverage,
    /// Its distributions: the main metrics always, others where a request tells them.
    pub metrics: Vec<(Metric, Summary)>,
}

/// The answer.
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
        let tellers = Tellers::of(contents.pairs(), &contents.dictionary);
        let scope = Scope::of(&self.selection);
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
        let tellers = Tellers::of(contents.pairs(), &contents.dictionary);
        coverage(contents, &Scope::of(&self.selection), &tellers)
    }

    /// The stored label ids of the groups that are small enough to be answered from all of their values.
    pub fn exact_labels(&self, contents: &Contents) -> BTreeSet<i64> {
        let scope = Scope::of(&self.selection);
        let mut exact = BTreeSet::new();
        let mut large = BTreeSet::new();
        for members in self.groups(contents, &scope).into_values() {
            let requests: u64 = members.iter().map(|(_, cell)| cell.counts.requests).sum();
            let ids = members.iter().map(|(key, _)| key.labels);
            if requests < EXACT_BELOW { exact.extend(ids) } else { large.extend(ids) }
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
        Group { labels, n: n.sum(), coverage, metrics }
    }
}

impl Contents {
    fn pairs(&self) -> impl Iterator<Item = (&CellKey, &Cell)> {
        self.cells.iter().map(|(key, cell)| (key, cell))
    }
}

fn is_always_shown(metric: Metric) -> bool {
    match metric.section() {
        Section::Phases => !matches!(metric, Metric::Prefill | Metric::Decode | Metric::WallEnvelope),
        Section::Client => matches!(metric, Metric::Duration | Metric::Ttft | Metric::Setup),
        Section::Server => metric == Metric::ServerTotal,
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
