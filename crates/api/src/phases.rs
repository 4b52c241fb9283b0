//! Percentiles of a window, whole and by step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::coverage::CoverageAnswer;
use crate::metric::MetricAnswer;
use crate::stream::{BufferingAnswer, CompletenessAnswer, ThroughputAnswer};
use crate::time::rfc3339;
use model::{Interval, Metric, Section};
use stats::{Answer, Group, Window};

const ASSUMPTION: &str = "the 95 % intervals come from order statistics and assume independent requests; the bounds are \
                          worst cases of this window, from the requests that are missing";

/// Percentiles of a window.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Percentiles)]
pub struct PercentilesAnswer {
    /// Start of what was read; before the start asked for where rollups serve whole minutes.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// What the numbers assume.
    pub assumption: String,
    /// Coverage of the window.
    pub coverage: CoverageAnswer,
    /// Client records of any window and label that came, but whose traces have not settled yet: in no count so far.
    pub unsettled_records: u64,
    /// The groups; one without labels where no grouping was asked for.
    pub groups: Vec<GroupAnswer>,
}

/// Percentiles by step.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PercentilesSeries)]
pub struct SeriesAnswer {
    /// The steps, each an answer of its own.
    pub steps: Vec<PercentilesAnswer>,
}

/// One group of requests.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupAnswer {
    /// What they share; null where they do not tell it.
    #[schema(example = json!({"model": "m-7b"}))]
    pub dimensions: BTreeMap<String, Option<String>>,
    /// Matched requests.
    pub n: u64,
    /// The group's own coverage.
    pub coverage: CoverageAnswer,
    /// Owners of time.
    pub phases: BTreeMap<String, MetricAnswer>,
    /// What clients measured, requests whose spans never came included.
    pub client: BTreeMap<String, MetricAnswer>,
    /// What servers measured as a whole.
    pub server: BTreeMap<String, MetricAnswer>,
    /// The time to the first token, split.
    pub ttft: BTreeMap<String, MetricAnswer>,
    /// The rhythm of streamed answers: gaps of each request, then percentiles over requests.
    pub stream: BTreeMap<String, MetricAnswer>,
    /// Speeds.
    pub rates: BTreeMap<String, MetricAnswer>,
    /// What gaps and rates may hide.
    pub buffering: BufferingAnswer,
    /// Whether streamed answers were whole.
    pub completeness: CompletenessAnswer,
    /// The output of the whole window.
    pub throughput: ThroughputAnswer,
}

impl PercentilesAnswer {
    /// Of an answer from what was read of a window.
    pub fn of(window: &Window, answer: &Answer) -> Self {
        Self {
            from: rfc3339(window.served.start),
            to: rfc3339(window.served.end),
            unsettled_records: window.unsettled_records,
            assumption: ASSUMPTION.to_owned(),
            coverage: CoverageAnswer::from(&answer.coverage),
            groups: answer.groups.iter().map(|group| GroupAnswer::of(group, window.served)).collect(),
        }
    }
}

impl GroupAnswer {
    /// A metric of its section; `None` where the group has none of it.
    pub fn metric(&self, metric: Metric) -> Option<&MetricAnswer> {
        let section = match metric.section() {
            Section::Phases => &self.phases,
            Section::Client => &self.client,
            Section::Server => &self.server,
            Section::Ttft => &self.ttft,
            Section::Stream => &self.stream,
            Section::Rates => &self.rates,
        };
        section.get(metric.key())
    }

    fn of(group: &Group, window: Interval) -> Self {
        let section = |section: Section| {
            let metrics = group.metrics.iter().filter(|(metric, _)| metric.section() == section);
            metrics.map(|(metric, summary)| (metric.key().to_owned(), MetricAnswer::of(*metric, summary))).collect()
        };
        Self {
            dimensions: group.labels.0.iter().map(|(key, value)| (key.name().to_owned(), value.clone())).collect(),
            n: group.n,
            coverage: CoverageAnswer::from(&group.coverage),
            phases: section(Section::Phases),
            client: section(Section::Client),
            server: section(Section::Server),
            ttft: section(Section::Ttft),
            stream: section(Section::Stream),
            rates: section(Section::Rates),
            buffering: BufferingAnswer::from(&group.rhythm),
            completeness: CompletenessAnswer::from(&group.wholeness),
            throughput: ThroughputAnswer::of(&group.output, window),
        }
    }
}
