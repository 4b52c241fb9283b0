//! Taking what an explanation needs from the rows of a window, one by one.

use super::split::{Pair, Split, Splits, Unread};
use crate::evidence::question;
use crate::objective::Objective;
use crate::outcome::{admits, is_settled_record, outcome};
use crate::tally::Outcome;
use model::{Interval, Observation, ResultClass};
use stats::cell::{self, CellKey};
use stats::scope::{Dictionary, Scope, Tellers};

/// Gathers the requests of objectives that share their conditions and their pair.
pub struct Collector<'a> {
    pair: Pair,
    objectives: &'a [Objective],
    dictionary: &'a Dictionary,
    scope: Scope,
    tellers: Tellers,
    found: Splits,
}

impl<'a> Collector<'a> {
    /// For a window whose requests have these labels. At least one objective must be given, and of more than 64 those
    /// beyond are not asked which requests are past them.
    pub fn new(pair: Pair, objectives: &'a [Objective], window: Interval, dictionary: &'a Dictionary) -> Option<Self> {
        let selection = question(objectives.first()?, window).selection;
        let scope = Scope::of(&selection);
        let tellers = Tellers::of(dictionary, &scope);
        let found = Splits { window, splits: Vec::new(), records: 0, unread: None };
        Some(Self { pair, objectives, dictionary, scope, tellers, found })
    }

    /// Adds a request where the conditions cover it.
    pub fn add(&mut self, observation: &Observation) {
        let Some(labels) = self.dictionary.get(&observation.labels) else { return };
        if observation.result != Some(ResultClass::Ok) {
            return;
        }
        if is_settled_record(observation) && self.scope.covers(&CellKey::of(observation), labels, &self.tellers) {
            self.found.records += 1;
        }
        if self.objectives.first().is_none_or(|first| !admits(first, labels)) {
            return;
        }
        if let Some(mut split) = split(self.pair, observation) {
            for (bit, objective) in self.objectives.iter().take(u64::BITS as usize).enumerate() {
                split.past |= u64::from(outcome(objective, observation, labels) == Outcome::Bad) << bit;
            }
            self.found.splits.push(split);
        }
    }

    /// What was found; `unread` says why that is not all.
    pub fn finish(self, unread: Option<Unread>) -> Splits {
        Splits { unread, ..self.found }
    }
}

/// The decomposition of a request, where it is whole: both sides are there, and the envelope between them is known.
fn split(pair: Pair, observation: &Observation) -> Option<Split> {
    let told = |metric| cell::told(metric, observation);
    let whole = told(pair.whole())?;
    let parts = pair.parts().map(told);
    let [envelope, .., unattributed] = parts;
    (envelope.is_some() && unattributed.is_some()).then_some(Split { whole, parts, past: 0 })
}
