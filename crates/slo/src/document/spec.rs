//! `kind: SLO`: what a document says of one objective.

use super::alerting;
use super::burn;
use super::conditions;
use super::error::{DocumentError, Faults};
use super::fields::{Field, Mapping};
use super::goal::{self, Limit};
use crate::indicator::Indicator;
use crate::objective::{Goal, Objective, ObjectiveId, Straddling};
use model::Nanos;

/// The shortest window, and the shortest wait of an alert.
pub(super) const SHORTEST: Nanos = Nanos(10_000_000_000);
/// The longest.
pub(super) const LONGEST: Nanos = Nanos(30 * 86_400_000_000_000);

const WINDOW: Nanos = Nanos(600_000_000_000);
const MIN_N: u64 = 100;
/// Where the indicator needs the server's side; elsewhere nothing of the client's records can be missing.
const MIN_COVERAGE: f64 = 0.9;
const LONGEST_DESCRIPTION: usize = 1000;
const LONGEST_OWNER: usize = 100;

/// What a share of time cannot have.
pub(super) const NO_INTERVAL: &str = "does not fit a pooled share of time, which has no good and bad requests, so no \
                                      interval, no bounds and no burn rate; give a quantile or ratio, or leave it out";

const METADATA: [&str; 4] = ["name", "description", "owner", "budget"];
const SPEC: [&str; 14] = [
    "phase",
    "quantile",
    "ratio",
    "threshold_ms",
    "threshold_tps",
    "threshold",
    "where",
    "window",
    "min_n",
    "min_coverage",
    "require_bounds",
    "at_risk",
    "burn",
    "alert",
];

/// What `metadata` says.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// The name.
    pub(super) id: ObjectiveId,
    /// For people.
    pub(super) description: Option<String>,
    /// Whom an alert is for.
    pub(super) owner: Option<String>,
    /// The budget that it belongs to.
    pub(super) budget: Option<ObjectiveId>,
}

impl Header {
    /// Reads it; `None` where the name is missing or wrong.
    pub(super) fn read(metadata: &Mapping<'_>, faults: &mut Faults) -> Option<Self> {
        metadata.only(&METADATA, faults);
        let name = metadata.need("name", "give the objective a name, such as queue-p95");
        let id = faults.keep(name.and_then(|name| name.id()));
        let text = |longest| move |field: &Field<'_>| field.text(longest).map(str::to_owned);
        let description = metadata.optional("description", faults, text(LONGEST_DESCRIPTION));
        let owner = metadata.optional("owner", faults, text(LONGEST_OWNER));
        let budget = metadata.optional("budget", faults, Field::id);
        Some(Self { id: id?, description, owner, budget })
    }
}

/// Reads an objective.
pub(super) fn read(header: Option<Header>, spec: &Mapping<'_>, faults: &mut Faults) -> Option<Objective> {
    spec.only(&SPEC, faults);
    let phase = spec.need("phase", "name what is limited, such as gpu_queue, ttft or error_share");
    let of_each_request = ["quantile", "ratio"].iter().any(|form| spec.get(form).is_some());
    let indicator = faults.keep(phase.and_then(|phase| indicator(&phase, of_each_request)));
    let Some(indicator) = indicator else {
        // What does not hang on the phase is read all the same, for its errors.
        conditions::read(spec, None, faults);
        return None;
    };
    let limit = goal::read(spec, indicator, faults);
    terms(header, spec, indicator, limit, faults)
}

/// The indicator that a field names: of each request where the objective counts requests, else of the whole.
fn indicator(phase: &Field<'_>, of_each_request: bool) -> Result<Indicator, DocumentError> {
    let meant = Indicator::all().filter(|one| Indicator::named(one.name(), of_each_request) == Some(*one));
    let known: Vec<(&str, Indicator)> = meant.map(|indicator| (indicator.name(), indicator)).collect();
    phase.one_of(&known)
}

/// Reads what a `spec` says beside its limit, and puts the objective together.
pub(super) fn terms(
    header: Option<Header>,
    spec: &Mapping<'_>,
    indicator: Indicator,
    limit: Option<Limit>,
    faults: &mut Faults,
) -> Option<Objective> {
    let goal = limit.map(|limit| limit.goal);
    let conditions = conditions::read(spec, Some(indicator), faults);
    let window = spec.optional("window", faults, |field| field.duration(SHORTEST, LONGEST)).unwrap_or(WINDOW);
    let min_n = spec.optional("min_n", faults, Field::count).unwrap_or(MIN_N);
    let min_coverage = spec.optional("min_coverage", faults, Field::share);
    let straddling = spec.optional("at_risk", faults, |field| straddling(field, goal)).unwrap_or_default();
    let require_bounds = spec.optional("require_bounds", faults, |field| require_bounds(field, goal));
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
        straddling,
        burn,
        alerting,
    })
}

/// The least coverage where an objective asks for none: without the server's side a request cannot be missing.
pub(super) fn default_coverage(indicator: Indicator) -> f64 {
    if indicator.needs_server() { MIN_COVERAGE } else { 0.0 }
}

fn straddling(field: &Field<'_>, goal: Option<Goal>) -> Result<Straddling, DocumentError> {
    let known = [("point", Straddling::PointEstimate), ("interval", Straddling::Interval)];
    let straddling = field.one_of(&known)?;
    if straddling == Straddling::Interval && goal == Some(Goal::Pooled) {
        return Err(field.refuse(NO_INTERVAL));
    }
    Ok(straddling)
}

fn require_bounds(field: &Field<'_>, goal: Option<Goal>) -> Result<bool, DocumentError> {
    let required = field.flag()?;
    if required && goal == Some(Goal::Pooled) {
        return Err(field.refuse(NO_INTERVAL));
    }
    Ok(required)
}
