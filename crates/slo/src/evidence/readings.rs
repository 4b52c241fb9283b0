//! The values of a window's requests, sorted by what they are to an objective.
//!
//! What is counted here from cells is what [`outcome`](super::super::outcome::outcome) says of each request.

use super::super::indicator::Indicator;
use super::super::objective::{Goal, Objective};
use super::super::outcome::admits;
use super::super::tally::Tally;
use super::counted::{Evidence, share_of};
use super::decisive::Decisive;
use model::{Metric, ResultClass, State};
use stats::cell::{Cell, CellKey, Series, is_cut_off};
use stats::interval::Ranks;
use stats::sample::{Sample, Values};
use stats::summary::{Absence, Ends};
use stats::{Contents, Quantile, bounds, interval};

/// The cells that an objective is about.
fn admitted<'a>(objective: &Objective, contents: &'a Contents) -> impl Iterator<Item = (&'a CellKey, &'a Cell)> {
    contents
        .cells
        .iter()
        .map(|(key, cell)| (key, cell))
        .filter(move |(key, _)| contents.dictionary.get(&key.labels).is_some_and(|labels| admits(objective, labels)))
}

/// The tally of an objective whose events are client records, whatever they measured.
pub fn tally_of_counts(objective: &Objective, contents: &Contents) -> Tally {
    let mut tally = Tally::default();
    for (key, cell) in admitted(objective, contents) {
        let records = key.client_records(&cell.counts);
        let bad = match objective.indicator {
            Indicator::ResultShare(class) => key.result.map(|result| result == class),
            _ => Some(key.state != State::Matched),
        };
        match bad {
            Some(true) => tally.bad += records,
            Some(false) => tally.good += records,
            None => tally.missing += records,
        }
    }
    tally
}

/// The servers' time that nothing explains, as a share of all of their time.
pub fn pooled(objective: &Objective, contents: &Contents, start: impl Fn(Tally) -> Evidence) -> Evidence {
    let whole = || admitted(objective, contents).filter(|(key, _)| key.result == Some(ResultClass::Ok));
    let (unattributed, total) =
        (sample(whole(), Series::Of(Metric::Unattributed)), sample(whole(), Series::Of(Metric::ServerTotal)));
    let records: u64 = whole().map(|(key, cell)| key.client_records(&cell.counts)).sum();
    let missing = records.saturating_sub(unattributed.n());
    Evidence {
        n: unattributed.n(),
        phase_coverage: share_of(unattributed.n(), records),
        value: (total.sum() > 0.0).then(|| unattributed.sum() / total.sum()),
        method: unattributed.method(),
        ..start(Tally { missing, ..Tally::default() })
    }
}

fn sample<'a>(cells: impl Iterator<Item = (&'a CellKey, &'a Cell)>, series: Series) -> Sample {
    let parts: Vec<Values> = cells.filter_map(|(_, cell)| cell.series.get(&series)).cloned().collect();
    Sample::of(parts)
}

/// The values of one metric.
pub struct Readings {
    whole: Sample,
    cut_off: Sample,
    /// How long those at most lasted that were cut off and tell no value.
    lasted: Sample,
    whole_records: u64,
    cut_off_records: u64,
    /// Client records whose end is unknown.
    endless_records: u64,
}

impl Readings {
    /// Of the requests that an objective is about.
    pub fn of(objective: &Objective, metric: Metric, contents: &Contents) -> Self {
        let cells = |wanted: fn(Option<ResultClass>) -> bool| {
            admitted(objective, contents).filter(move |(key, _)| wanted(key.result))
        };
        let records = |wanted| cells(wanted).map(|(key, cell)| key.client_records(&cell.counts)).sum();
        let is_whole = |result| result == Some(ResultClass::Ok);
        Self {
            whole: sample(cells(is_whole), Series::Of(metric)),
            cut_off: sample(cells(is_cut_off), Series::cut_off(metric)),
            lasted: sample(cells(is_cut_off), Series::Lasted(metric)),
            whole_records: records(is_whole),
            cut_off_records: records(is_cut_off),
            endless_records: records(|result| result.is_none()),
        }
    }

    /// What they say, from a `start` with their tally.
    pub fn evidence(&self, objective: &Objective, start: impl Fn(Tally) -> Evidence) -> Evidence {
        let decisive = Decisive::of(objective, &self.whole, &self.cut_off);
        let mut evidence = start(self.tally(objective, &decisive));
        let Some(target) = objective.goal.target().filter(|_| evidence.n > 0) else {
            return evidence;
        };
        evidence.method = decisive.method();
        evidence.rank_error = decisive.rank_error(decisive.good.max(1));
        evidence.ranks = decisive.widened(interval::ranks(evidence.n, target));
        match objective.goal {
            Goal::Quantile { .. } => add_quantile(&mut evidence, &decisive, target),
            Goal::Ratio { .. } | Goal::Share { .. } | Goal::Pooled => evidence.add_share(objective, target),
        }
        evidence
    }

    fn tally(&self, objective: &Objective, decisive: &Decisive<'_>) -> Tally {
        let short = self.lasted.count_at_most(objective.threshold);
        let untold_whole = self.whole_records.saturating_sub(self.whole.n());
        let untold_cut_off = self.cut_off_records.saturating_sub(self.cut_off.n() + short);
        Tally {
            good: decisive.good,
            bad: decisive.bad,
            left_out: decisive.left_out + short,
            missing: untold_whole + untold_cut_off + self.endless_records,
        }
    }
}

/// The quantile with its interval and its worst cases.
fn add_quantile(evidence: &mut Evidence, decisive: &Decisive<'_>, target: Quantile) {
    let n = evidence.n;
    evidence.value = decisive.value_at(target.rank(n));
    evidence.interval_coverage = Some(interval::coverage(n, target));
    let ends = |ranks: Ranks| decisive.ends(ranks.lower, ranks.upper);

    let (better_needs, worse_needs) = interval::least_n(target);
    let (lower, upper) = ends(evidence.ranks);
    let (lower_needs, upper_needs) = decisive.in_order(better_needs, worse_needs);
    let absence = match (lower, upper) {
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some(Absence::LowerNeeds(lower_needs)),
        (Some(_), None) => Some(Absence::UpperNeeds(upper_needs)),
        (None, None) => Some(Absence::BothNeed(lower_needs, upper_needs)),
    };
    evidence.interval = Ends { lower, upper, absence };

    let worst = bounds::worst_case(n, evidence.missing(), target);
    let (lower, upper) = ends(decisive.widened(Ranks { lower: worst.lower, upper: worst.upper }));
    let absence = match (lower, upper) {
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some(Absence::MissingBelow),
        (Some(_), None) => Some(Absence::MissingAbove),
        (None, None) => Some(Absence::MissingEither),
    };
    evidence.bounds = Ends { lower, upper, absence };
}
