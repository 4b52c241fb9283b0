//! How much of a window is explained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::nullable::nullable;
use model::Unit;
use stats::bias::{Bias, Durations};
use stats::coverage::Coverage;

const NO_RECORDS: &str = "no client record of this window and these labels has settled";

/// Coverage of a window, whole and by step.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = CoverageSeries)]
pub struct CoverageSeriesAnswer {
    /// Start of what was read; before the start asked for where rollups serve whole minutes.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// Of the whole.
    pub coverage: CoverageAnswer,
    /// Client records of any window and label that came, but whose traces have not settled yet: in no count so far.
    pub unsettled_records: u64,
    /// Of each step.
    pub steps: Vec<CoverageStep>,
}

/// Coverage of one step.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CoverageStep {
    /// Start of the step.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// Its coverage.
    pub coverage: CoverageAnswer,
}

/// How many requests of a window are explained, and why the others are not.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Coverage)]
pub struct CoverageAnswer {
    /// Settled client records of the result classes asked for: the denominator.
    pub client_records: u64,
    /// Settled requests with an entry span.
    pub server_requests: u64,
    /// Requests with both sides that count in distributions.
    pub matched: u64,
    /// The matched by what tied their sides together.
    #[serde(default)]
    pub joined_by: JoinedBy,
    /// Client records whose spans never came.
    pub client_only: u64,
    /// Entry spans whose client record never came.
    pub server_only: u64,
    /// Requests in no distribution, by the flag that says why.
    #[schema(example = json!({"negative_envelope": 3}))]
    pub excluded: BTreeMap<String, u64>,
    /// Requests that are not settled yet; in no other count.
    pub pending: u64,
    /// Client records whose traceparent asked for no sampling.
    pub sampled_out: u64,
    /// How many of the client records are CLIENT spans of the caller, since no record came.
    pub client_from_spans: u64,
    /// Matched by client records; null without client records.
    #[serde(deserialize_with = "nullable")]
    pub join_coverage: Option<f64>,
    /// Why `join_coverage` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_coverage_reason: Option<String>,
    /// The same without the records that asked for no sampling.
    #[serde(deserialize_with = "nullable")]
    pub join_coverage_sampled: Option<f64>,
    /// `filtered` where these counts follow all filters; `all` where a filter names a label that no client in the window
    /// tells, by which they cannot be filtered.
    #[schema(example = "filtered")]
    pub coverage_scope: String,
    /// The labels by which these counts are not filtered.
    pub not_filtered_by: Vec<String>,
    /// Whether matched requests differ from those whose spans never came.
    pub bias: BiasAnswer,
}

/// Matched requests by what tied their sides together.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
pub struct JoinedBy {
    /// The W3C trace id.
    pub trace_id: u64,
    /// A request id that both sides carry and nobody else does, where a proxy replaced the trace id.
    pub request_id: u64,
}

/// The comparison of matched and unmatched requests by their client durations.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Bias)]
pub struct BiasAnswer {
    /// Whether the matched requests are slower or faster than the others; null where too few are there to tell.
    #[serde(deserialize_with = "nullable")]
    pub suspected: Option<bool>,
    /// What says so.
    pub evidence: String,
    /// Client durations of matched requests.
    pub matched: DurationsAnswer,
    /// Client durations of requests whose spans never came.
    pub unmatched: DurationsAnswer,
}

/// Client durations of one side.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Durations)]
pub struct DurationsAnswer {
    /// How many.
    pub n: u64,
    /// Their median.
    #[serde(deserialize_with = "nullable")]
    pub p50_ms: Option<f64>,
    /// Its 95 % interval.
    pub p50_ci_ms: [Option<f64>; 2],
}

impl From<&Coverage> for CoverageAnswer {
    fn from(coverage: &Coverage) -> Self {
        let tally = &coverage.tally;
        let scope = if coverage.not_filtered_by.is_empty() { "filtered" } else { "all" };
        Self {
            client_records: tally.client_records(),
            server_requests: tally.server_requests(),
            matched: tally.matched(),
            joined_by: JoinedBy {
                trace_id: tally.matched() - tally.matched_by_request_id(),
                request_id: tally.matched_by_request_id(),
            },
            client_only: tally.client_only(),
            server_only: tally.server_only(),
            excluded: tally.excluded().iter().map(|(flag, n)| (flag.name().to_owned(), *n)).collect(),
            pending: tally.pending(),
            sampled_out: tally.sampled_out(),
            client_from_spans: tally.from_spans(),
            join_coverage: tally.join_coverage(),
            join_coverage_reason: tally.join_coverage().is_none().then(|| NO_RECORDS.to_owned()),
            join_coverage_sampled: tally.join_coverage_sampled(),
            coverage_scope: scope.to_owned(),
            not_filtered_by: coverage.not_filtered_by.iter().map(|label| label.name().to_owned()).collect(),
            bias: BiasAnswer::from(&coverage.bias),
        }
    }
}

impl From<&Bias> for BiasAnswer {
    fn from(bias: &Bias) -> Self {
        Self {
            suspected: bias.verdict.suspected(),
            evidence: bias.verdict.evidence().to_owned(),
            matched: DurationsAnswer::from(&bias.matched),
            unmatched: DurationsAnswer::from(&bias.unmatched),
        }
    }
}

impl From<&Durations> for DurationsAnswer {
    fn from(durations: &Durations) -> Self {
        let shown = |value: Option<f64>| value.map(|value| Unit::Nanos.shown(value));
        Self {
            n: durations.n,
            p50_ms: shown(durations.median),
            p50_ci_ms: [shown(durations.interval.lower), shown(durations.interval.upper)],
        }
    }
}
