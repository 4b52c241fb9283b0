//! `kind: SLO`: one objective.

use super::alerting;
use super::burn;
use super::conditions;
use super::error::{DocumentError, Faults};
use super::fields::{At, field};
use super::goal::{self, Limit, unless_pooled};
use super::mapping::Known;
use super::node::Scalar;
use super::schema::{Metadata, Spec};
use super::values::{Count, Line, Period, Share};
use crate::indicator::Indicator;
use crate::objective::{Objective, ObjectiveId, Straddling};
use model::Nanos;

const WINDOW: Nanos = Nanos(600_000_000_000);
const MIN_N: u64 = 100;
/// Where the indicator needs the server's side; elsewhere nothing of the client's records can be missing.
const MIN_COVERAGE: f64 = 0.9;

/// What `metadata` gives.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) id: ObjectiveId,
    pub(super) description: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) budget: Option<ObjectiveId>,
}

impl Header {
    /// `None` where the name is missing or wrong.
    pub(super) fn read(metadata: &At<'_, Known<Metadata>>, faults: &mut Faults) -> Option<Self> {
        metadata.only_declared(&[], faults);
        let id = field!(metadata.name).required("give the objective a name, such as queue-p95", faults);
        let description = field!(metadata.description).optional(faults).map(|Line(text)| text.clone());
        let owner = field!(metadata.owner).optional(faults).map(|Line(text)| text.clone());
        let budget = field!(metadata.budget).optional(faults).cloned();
        Some(Self { id: id?.clone(), description, owner, budget })
    }
}

pub(super) fn read(header: Option<Header>, spec: &At<'_, Known<Spec>>, faults: &mut Faults) -> Option<Objective> {
    spec.only_declared(&["split"], faults);
    let phase = field!(spec.phase).need("name what is limited, such as gpu_queue, ttft or error_share");
    let counts_requests = !(spec.value.fields.quantile.is_absent() && spec.value.fields.ratio.is_absent());
    let indicator = faults.keep(phase.and_then(|phase| indicator(&phase, counts_requests)));
    let Some(indicator) = indicator else {
        // What does not depend on the phase is read all the same, for its mistakes.
        conditions::read(spec, None, faults);
        return None;
    };
    let limit = goal::read(spec, indicator, faults);
    terms(header, spec, indicator, limit, faults)
}

/// The indicator that a field names: of each request where the objective counts requests, else of the whole.
fn indicator(phase: &At<'_, Scalar>, counts_requests: bool) -> Result<Indicator, DocumentError> {
    let meant = Indicator::all().filter(|one| Indicator::named(one.name(), counts_requests) == Some(*one));
    let known: Vec<(&str, Indicator)> = meant.map(|indicator| (indicator.name(), indicator)).collect();
    phase.value.one_of(&known).map_err(|reason| phase.refuse(reason))
}

/// Reads what a `spec` gives beside its limit, and puts the objective together.
pub(super) fn terms(
    header: Option<Header>,
    spec: &At<'_, Known<Spec>>,
    indicator: Indicator,
    limit: Option<Limit>,
    faults: &mut Faults,
) -> Option<Objective> {
    let goal = limit.map(|limit| limit.goal);
    let conditions = conditions::read(spec, Some(indicator), faults);
    let window = field!(spec.window).optional(faults).map_or(WINDOW, |Period(window)| *window);
    let min_n = field!(spec.min_n).optional(faults).map_or(MIN_N, |Count(count)| *count);
    let min_coverage = field!(spec.min_coverage).optional(faults).map(|Share(share)| *share);
    let straddling = field!(spec.at_risk).given();
    let straddling = straddling
        .and_then(|field| faults.keep(unless_pooled(&field, goal, |straddling| *straddling == Straddling::Interval)));
    let require_bounds = field!(spec.require_bounds).given();
    let require_bounds =
        require_bounds.and_then(|field| faults.keep(unless_pooled(&field, goal, |required| *required)));
    let burn = burn::read(spec, indicator, goal, faults);
    let alerting = alerting::read(spec, goal, window, faults);
    let (header, limit) = (header?, limit?);
    Some(Objective {
        id: header.id,
        description: header.description,
        owner: header.owner,
        budget: header.budget,
        indicator,
        goal: limit.goal,
        threshold: limit.threshold,
        conditions,
        window,
        min_n,
        min_coverage: min_coverage.unwrap_or_else(|| default_coverage(indicator)),
        require_bounds: require_bounds.unwrap_or_default(),
        straddling: straddling.unwrap_or_default(),
        burn,
        alerting,
    })
}

/// The least coverage where an objective gives none: without the server's side a request cannot be missing.
pub(super) fn default_coverage(indicator: Indicator) -> f64 {
    if indicator.needs_server() { MIN_COVERAGE } else { 0.0 }
}
