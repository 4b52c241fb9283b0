//! `kind: Budget`: a goal of the whole, split over the phases.

use super::error::{DocumentError, Faults};
use super::fields::{At, field};
use super::goal::{self, Limit};
use super::mapping::{Known, Named};
use super::node::Checked;
use super::schema::Spec;
use super::spec::{self, Header};
use super::values::Number;
use crate::indicator::Indicator;
use crate::objective::{Objective, ObjectiveId};
use model::{Metric, Nanos, Section};

/// Stands in the description of every objective of a budget.
pub(super) const ARITHMETIC: &str = "The split is arithmetic: the parts add up to the whole, but quantiles of phases do \
                                     not, so every part can hold while the whole is broken, and the reverse.";

/// A part of the split.
struct Part {
    metric: Metric,
    threshold: Nanos,
}

/// Reads a budget into the objectives of its whole and its parts, the whole first.
pub(super) fn read(header: Option<Header>, spec: &At<'_, Known<Spec>>, faults: &mut Faults) -> Option<Vec<Objective>> {
    spec.only_declared(&["threshold_tps", "threshold"], faults);
    let phase = faults.keep(field!(spec.phase).need("name what is split: ttft or duration"))?;
    let whole = phase.value.one_of(&[("ttft", Metric::Ttft), ("duration", Metric::Duration)]);
    let whole = faults.keep(whole.map_err(|reason| phase.refuse(reason)))?;
    let limit = goal::read(spec, Indicator::Metric(whole), faults);
    let split = field!(spec.split).need("give the milliseconds of each phase, such as split: {gateway: 60}");
    let parts = faults.keep(split).and_then(|split| read_split(&split, whole, limit, faults));
    let objective = spec::terms(header, spec, Indicator::Metric(whole), limit, faults)?;
    let follows_default = spec.value.fields.min_coverage.is_absent();
    let mut set = vec![describe_whole(objective)];
    for part in parts? {
        set.push(faults.keep(objective_of(&part, &set[0], follows_default, spec))?);
    }
    Some(set)
}

fn describe_whole(mut whole: Objective) -> Objective {
    whole.budget = Some(whole.id.clone());
    whole.description = Some(match whole.description {
        Some(said) => format!("{said} {ARITHMETIC}"),
        None => ARITHMETIC.to_owned(),
    });
    whole
}

fn objective_of(
    part: &Part,
    whole: &Objective,
    follows_default: bool,
    spec: &At<'_, Known<Spec>>,
) -> Result<Objective, DocumentError> {
    let indicator = Indicator::Metric(part.metric);
    let name = format!("{}.{indicator}", whole.id);
    let id = ObjectiveId::new(&name)
        .map_err(|_| spec.refuse(format!("makes an objective `{name}`, which is too long; shorten metadata.name")))?;
    let (share, all) = (part.threshold.as_millis(), whole.threshold / 1e6);
    let description = format!("The {share} ms of {indicator} in the {all} ms of the budget {}. {ARITHMETIC}", whole.id);
    let min_coverage = if follows_default { spec::default_coverage(indicator) } else { whole.min_coverage };
    Ok(Objective {
        id,
        description: Some(description),
        indicator,
        threshold: part.threshold.0 as f64,
        min_coverage,
        ..whole.clone()
    })
}

/// Reads the parts, and checks that they add up to the whole: in nanoseconds, so exactly.
fn read_split(
    split: &At<'_, Named<Checked<Number>>>,
    whole: Metric,
    limit: Option<Limit>,
    faults: &mut Faults,
) -> Option<Vec<Part>> {
    let shares = faults.keep(split.mapping())?;
    let names = part_names(whole);
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    shares.only(&known, faults);
    let mut parts = Vec::new();
    let mut whole_read = true;
    for (name, field) in shares.entries() {
        let Some((_, metric)) = names.iter().find(|(known, _)| *known == name) else { continue };
        match faults.keep(goal::nanos(&field)) {
            Some(threshold) => parts.push(Part { metric: *metric, threshold }),
            None => whole_read = false,
        }
    }
    if whole_read {
        faults.keep(check_sum(split, &parts, limit?))?;
    }
    Some(parts)
}

/// The phases that a whole is made of, by the names that a split gives.
fn part_names(whole: Metric) -> Vec<(&'static str, Metric)> {
    if whole == Metric::Ttft {
        let parts = Metric::ALL.iter().filter(|metric| metric.section() == Section::Ttft);
        return parts.map(|metric| (metric.key(), *metric)).collect();
    }
    vec![
        ("envelope", Metric::NetworkEnvelope),
        ("gateway", Metric::Gateway),
        ("gpu_queue", Metric::GpuQueue),
        ("generation", Metric::Generation),
        ("provider", Metric::Provider),
        ("upstream_envelope", Metric::UpstreamEnvelope),
        ("unattributed", Metric::Unattributed),
    ]
}

fn check_sum(split: &At<'_, Named<Checked<Number>>>, parts: &[Part], limit: Limit) -> Result<(), DocumentError> {
    let sum = Nanos(parts.iter().map(|part| part.threshold.0).sum());
    let whole = Nanos(limit.threshold as i64);
    if sum == whole {
        return Ok(());
    }
    let apart = Nanos((whole.0 - sum.0).abs()).as_millis();
    let way = if sum < whole { "add" } else { "take away" };
    Err(split.refuse(format!(
        "adds up to {} ms, not to the {} ms of threshold_ms; {way} {apart} ms",
        sum.as_millis(),
        whole.as_millis()
    )))
}
