//! Which requests a question's numbers are about, and which its coverage is about.
//!
//! The two differ: a request whose spans never came cannot tell the labels that only its server knows. Filtering it out
//! by such a label would make the coverage look better than it is.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::CellKey;
use model::{Dimension, GroupKey, Labels, ResultClass, Selection, State};

/// Labels by their stored id.
pub type Dictionary = BTreeMap<i64, Labels>;

/// Labels that no span tells.
pub const CLIENTS_OWN: [Dimension; 3] = [Dimension::Run, Dimension::Scenario, Dimension::Concurrency];

/// What a request's label must be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// One of these.
    AnyOf(BTreeSet<String>),
    /// Unknown: the group of requests that do not tell it.
    Unknown,
}

impl Wanted {
    fn admits(&self, label: Option<&str>) -> bool {
        match (self, label) {
            (Self::AnyOf(values), Some(label)) => values.contains(label),
            (Self::Unknown, None) => true,
            (Self::AnyOf(_), None) | (Self::Unknown, Some(_)) => false,
        }
    }
}

/// Who tells which label in a window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tellers {
    client: BTreeSet<Dimension>,
    server: BTreeSet<Dimension>,
}

impl Tellers {
    /// From the labels of everything in the window that a client's own labels in `scope` do not rule out: what the
    /// clients of another run tell says nothing of this one's.
    pub fn of(dictionary: &Dictionary, scope: &Scope) -> Self {
        let mut tellers = Self { client: BTreeSet::from(CLIENTS_OWN), ..Self::default() };
        for labels in dictionary.values().filter(|labels| scope.may_be_of_its_clients(labels)) {
            tellers.client.extend(labels.client.0.keys());
            tellers.server.extend(labels.all.0.keys().filter(|label| labels.client.get(**label).is_none()));
        }
        tellers
    }
}

/// Labels and results that a number is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    labels: BTreeMap<Dimension, Wanted>,
    results: BTreeSet<ResultClass>,
}

impl Scope {
    /// What a selection says.
    pub fn of(selection: &Selection) -> Self {
        let wanted = selection.filters.iter().map(|(label, values)| (*label, Wanted::AnyOf(values.clone())));
        Self { labels: wanted.collect(), results: selection.results.clone() }
    }

    /// The same, narrowed to one group.
    #[must_use]
    pub fn narrowed(&self, group: &GroupLabels) -> Self {
        let mut scope = self.clone();
        for (key, value) in &group.0 {
            match (key, value) {
                (GroupKey::Dimension(label), Some(value)) => {
                    scope.labels.insert(*label, Wanted::AnyOf(BTreeSet::from([value.clone()])));
                }
                (GroupKey::Dimension(label), None) => {
                    scope.labels.insert(*label, Wanted::Unknown);
                }
                (GroupKey::Result, value) => {
                    let class = value.as_deref().and_then(ResultClass::from_name);
                    scope.results = class.into_iter().collect();
                }
            }
        }
        scope
    }

    /// Whether the labels that only clients can tell are as wanted.
    fn may_be_of_its_clients(&self, labels: &Labels) -> bool {
        CLIENTS_OWN
            .iter()
            .all(|label| self.labels.get(label).is_none_or(|wanted| wanted.admits(labels.all.get(*label))))
    }

    /// Whether requests with these labels count in the numbers: every label must be as wanted.
    pub fn admits_labels(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(label, wanted)| wanted.admits(labels.all.get(*label)))
    }

    /// Whether requests of this class count.
    pub fn admits_result(&self, result: Option<ResultClass>) -> bool {
        result.is_some_and(|class| self.results.contains(&class))
    }

    /// Whether requests of this cell count in the coverage.
    ///
    /// A label that no client in the window tells does not filter. One that some clients tell filters, but keeps a
    /// request whose spans never came and whose client does not tell it, if the server tells it for others.
    pub fn covers(&self, key: &CellKey, labels: &Labels, tellers: &Tellers) -> bool {
        // A server alone often cannot tell how its request ended.
        (key.result.is_none() || self.admits_result(key.result))
            && self.labels.iter().all(|(label, wanted)| {
                let told = labels.all.get(*label);
                let hidden = told.is_none() && key.state == State::ClientOnly && tellers.server.contains(label);
                !tellers.client.contains(label) || hidden || wanted.admits(told)
            })
    }

    /// Whether any request with these labels can count, in the numbers or in the coverage.
    pub fn needs(&self, id: i64, labels: &Labels, tellers: &Tellers) -> bool {
        // A lone record of an unknown class is covered wherever any request is.
        self.covers(&CellKey { labels: id, state: State::ClientOnly, result: None }, labels, tellers)
    }

    /// The labels by which the coverage is not filtered, since no client in the window tells them.
    pub fn not_filtered_by(&self, tellers: &Tellers) -> Vec<Dimension> {
        self.labels.keys().copied().filter(|label| !tellers.client.contains(label)).collect()
    }
}

/// The labels that the requests of a group share, in the order asked for; `None` where they do not tell one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupLabels(pub Vec<(GroupKey, Option<String>)>);

impl GroupLabels {
    pub fn of(keys: &[GroupKey], cell: &CellKey, labels: &Labels) -> Self {
        let label = |key: &GroupKey| match key {
            GroupKey::Result => cell.result.map(|class| class.name().to_owned()),
            GroupKey::Dimension(dimension) => labels.all.get(*dimension).map(str::to_owned),
        };
        Self(keys.iter().map(|key| (*key, label(key))).collect())
    }
}
