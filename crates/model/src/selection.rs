//! Which requests a question is about.

use std::collections::{BTreeMap, BTreeSet};

use super::dimension::{Dimension, Dimensions};
use super::metric::Metric;
use super::record::ResultClass;
use super::time::Interval;

/// Which requests a question is about: a window, labels, and classes of result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The stretch of window times (`Request::window_at`).
    pub window: Interval,
    /// For each label the values of which a request must have one; a label that is not there takes any value.
    pub filters: BTreeMap<Dimension, BTreeSet<String>>,
    /// The classes of result; never empty.
    pub results: BTreeSet<ResultClass>,
}

impl Selection {
    /// Whether a request's labels pass every filter; an unknown label passes none.
    pub fn admits(&self, labels: &Dimensions) -> bool {
        self.filters
            .iter()
            .all(|(dimension, values)| labels.get(*dimension).is_some_and(|label| values.contains(label)))
    }
}

/// What a list of requests is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKey {
    /// The time that decides the window.
    WindowAt,
    /// A metric; requests that do not tell it are left out.
    Metric(Metric),
}

/// How a list of requests is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub key: OrderKey,
    /// Largest first.
    pub descending: bool,
}

/// One key by which requests are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// The class of result.
    Result,
    /// A label.
    Dimension(Dimension),
}

impl GroupKey {
    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Dimension(dimension) => dimension.name(),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        if name == "result" { Some(Self::Result) } else { Dimension::from_name(name).map(Self::Dimension) }
    }

    /// All of them, labels first.
    pub fn all() -> impl Iterator<Item = Self> {
        Dimension::ALL.iter().copied().map(Self::Dimension).chain([Self::Result])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixNanos;

    #[test]
    fn an_unknown_label_passes_no_filter() {
        let window = Interval { start: UnixNanos(0), end: UnixNanos(1) };
        let filters = BTreeMap::from([(Dimension::Model, BTreeSet::from(["a".to_owned(), "b".to_owned()]))]);
        let selection = Selection { window, filters, results: BTreeSet::from([ResultClass::Ok]) };
        let mut labels = Dimensions::default();
        assert!(!selection.admits(&labels));
        labels.set(Dimension::Model, Some("b"));
        assert!(selection.admits(&labels));
        labels.set(Dimension::Model, Some("c"));
        assert!(!selection.admits(&labels));
    }

    #[test]
    fn every_group_key_is_found_by_its_name() {
        for key in GroupKey::all() {
            assert_eq!(GroupKey::from_name(key.name()), Some(key));
        }
    }
}
