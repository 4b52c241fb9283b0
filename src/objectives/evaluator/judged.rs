//! One objective as a round found it: which of its troubles are there, and which requests show that.

use std::collections::BTreeSet;

use crate::objectives::catalogue::Versioned;
use crate::reader::Reader;
use crate::store::{RequestRow, StoreError};
use model::{Metric, Order, OrderKey, ResultClass, Selection, State, TraceId, UnixNanos};
use slo::alert::{Condition, Presence, Trouble, Watch};
use slo::burn::BurnState;
use slo::indicator::{Direction, Indicator};
use slo::objective::Objective;
use slo::outcome::{admits_cold_start, classes};
use slo::verdict::Verdict;

/// How many requests show what is wrong.
const EXEMPLARS: usize = 3;

/// How many are looked at for them: some are cold starts, or within the threshold.
const LOOKED_AT: u32 = 60;

/// An objective, judged.
pub(super) struct Judged {
    pub(super) versioned: Versioned,
    pub(super) verdict: Verdict,
    /// What its burn windows say, in their order; empty where they could not be read.
    pub(super) burn: Vec<BurnState>,
    /// Who told of its requests lately.
    pub(super) presence: Presence,
    /// What the next round has to know.
    pub(super) watch: Watch,
}

impl Judged {
    pub(super) fn objective(&self) -> &Objective {
        &self.versioned.objective
    }

    /// What the windows of a burn say.
    pub(super) fn burn_of(&self, trouble: &Trouble) -> Option<&BurnState> {
        let Trouble::Burn(window) = trouble else { return None };
        self.burn.iter().find(|state| (state.long, state.short) == (window.long, window.short))
    }

    /// Whether a trouble is there.
    pub(super) fn condition(&self, trouble: &Trouble, now: UnixNanos) -> Condition {
        let (burn, heard) = (self.burn_of(trouble), (&self.watch, &self.presence));
        Condition::of(trouble, self.objective(), &self.verdict, burn, heard, now)
    }

    /// Requests of the window that show what is wrong, the worst first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub(super) async fn exemplars(&self, trouble: &Trouble, reader: &Reader) -> Result<Vec<TraceId>, StoreError> {
        let objective = self.objective();
        let Some(order) = order(objective.indicator) else { return Ok(Vec::new()) };
        let lacks_server = match trouble {
            Trouble::Broken | Trouble::Burn(_) => objective.indicator == Indicator::JoinCoverage,
            Trouble::NoVerdict | Trouble::Silent(_) => true,
        };
        let newest = Order { key: OrderKey::WindowAt, descending: true };
        let selection = Selection {
            window: self.verdict.evidence.window,
            filters: objective.conditions.labels.clone(),
            results: if lacks_server { ResultClass::ALL.into() } else { shown_classes(objective.indicator) },
        };
        let rows = reader.list(&selection, if lacks_server { newest } else { order }, LOOKED_AT).await?;
        let shows = |row: &&RequestRow| {
            if lacks_server { row.request.state == State::ClientOnly } else { shows_it(objective, row) }
        };
        Ok(rows.iter().filter(shows).take(EXEMPLARS).map(|row| row.request.trace_id).collect())
    }
}

/// The worst first; `None` where no request tells.
fn order(indicator: Indicator) -> Option<Order> {
    let by = |metric, descending| Order { key: OrderKey::Metric(metric), descending };
    match indicator {
        Indicator::Metric(metric) => Some(by(metric, indicator.direction() == Direction::AtMost)),
        Indicator::UnattributedShare => Some(by(Metric::Unattributed, true)),
        Indicator::ResultShare(_) | Indicator::JoinCoverage => {
            Some(Order { key: OrderKey::WindowAt, descending: true })
        }
        Indicator::DroppedIterations => None,
    }
}

/// The classes of the requests that can show it.
fn shown_classes(indicator: Indicator) -> BTreeSet<ResultClass> {
    match indicator {
        Indicator::ResultShare(class) => [class].into(),
        _ => classes(indicator),
    }
}

/// Whether a request counts as a bad one.
fn shows_it(objective: &Objective, row: &RequestRow) -> bool {
    let request = &row.request;
    let counts = admits_cold_start(objective.conditions.cold_starts, &request.dimensions, false);
    let is_past = match objective.indicator {
        Indicator::Metric(metric) => metric.of(request).is_some_and(|value| !objective.is_good(value.as_f64())),
        _ => true,
    };
    counts && is_past && request.client.is_some() && request.state != State::Excluded
}
