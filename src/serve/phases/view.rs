//! Distributions as JSON.

use std::collections::BTreeMap;

use chrono::SecondsFormat;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::stream::{BufferingAnswer, CompletenessAnswer, ThroughputAnswer};
use crate::serve::coverage::CoverageAnswer;
use model::{Interval, Metric, Section, Unit, UnixNanos};
use stats::sample::Method;
use stats::summary::{Ends, QuantileSummary, Summary};
use stats::{Answer, Group, Window};

const ASSUMPTION: &str = "the 95 % intervals come from order statistics and assume independent requests; the bounds are \
                          worst cases of this window, from the requests that are missing";

/// A time as the API shows it.
pub fn rfc3339(at: UnixNanos) -> String {
    at.to_datetime().to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Percentiles of a window.
#[derive(Debug, Clone, serde::Serialize, ToSchema)]
#[schema(as = Percentiles)]
pub struct PercentilesAnswer {
    /// Start of what was read; before the start asked for where rollups serve whole minutes.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// What the numbers assume.
    pub assumption: &'static str,
    /// Coverage of the window.
    pub coverage: CoverageAnswer,
    /// Client records of any window and label that came, but whose traces have not settled yet: in no count so far.
    pub unsettled_records: u64,
    /// The groups; one without labels where no grouping was asked for.
    pub groups: Vec<GroupAnswer>,
}

/// Percentiles by step.
#[derive(Debug, Clone, serde::Serialize, ToSchema)]
#[schema(as = PercentilesSeries)]
pub struct SeriesAnswer {
    /// The steps, each an answer of its own.
    pub steps: Vec<PercentilesAnswer>,
}

/// One group of requests.
#[derive(Debug, Clone, serde::Serialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupAnswer {
    /// What they share; null where they do not tell it.
    #[schema(example = json!({"model": "m-7b"}))]
    pub dimensions: BTreeMap<&'static str, Option<String>>,
    /// Matched requests.
    pub n: u64,
    /// The group's own coverage.
    pub coverage: CoverageAnswer,
    /// Owners of time.
    pub phases: BTreeMap<&'static str, MetricAnswer>,
    /// What clients measured, requests whose spans never came included.
    pub client: BTreeMap<&'static str, MetricAnswer>,
    /// What servers measured as a whole.
    pub server: BTreeMap<&'static str, MetricAnswer>,
    /// The time to the first token, split.
    pub ttft: BTreeMap<&'static str, MetricAnswer>,
    /// The rhythm of streamed answers: gaps of each request, then percentiles over requests.
    pub stream: BTreeMap<&'static str, MetricAnswer>,
    /// Speeds.
    pub rates: BTreeMap<&'static str, MetricAnswer>,
    /// What gaps and rates may hide.
    pub buffering: BufferingAnswer,
    /// Whether streamed answers were whole.
    pub completeness: CompletenessAnswer,
    /// The output of the whole window.
    pub throughput: ThroughputAnswer,
}

/// One distribution, as an object whose fields are named after the quantiles asked for.
#[derive(Debug, Clone)]
pub struct MetricAnswer {
    fields: Vec<(String, Value)>,
}

impl PercentilesAnswer {
    /// Of an answer from what was read of a window.
    pub fn of(window: &Window, answer: &Answer) -> Self {
        Self {
            from: rfc3339(window.served.start),
            to: rfc3339(window.served.end),
            unsettled_records: window.unsettled_records,
            assumption: ASSUMPTION,
            coverage: CoverageAnswer::from(&answer.coverage),
            groups: answer.groups.iter().map(|group| GroupAnswer::of(group, window.served)).collect(),
        }
    }
}

impl GroupAnswer {
    fn of(group: &Group, window: Interval) -> Self {
        let section = |section: Section| {
            let metrics = group.metrics.iter().filter(|(metric, _)| metric.section() == section);
            metrics.map(|(metric, summary)| (metric.key(), MetricAnswer::of(*metric, summary))).collect()
        };
        Self {
            dimensions: group.labels.0.iter().map(|(key, value)| (key.name(), value.clone())).collect(),
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

impl MetricAnswer {
    fn of(metric: Metric, summary: &Summary) -> Self {
        let unit = metric.unit();
        let mut answer = Self { fields: vec![("n".to_owned(), json!(summary.n))] };
        for quantile in &summary.quantiles {
            answer.quantile(unit, quantile, summary.method);
        }
        let censors = matches!(metric, Metric::Duration | Metric::Ttft);
        for quantile in summary.quantiles.iter().filter(|_| censors) {
            let name = format!("{}_censored{}", quantile.quantile.field(), unit.suffix());
            answer.number(name, unit, quantile.censored);
        }
        answer.field("phase_coverage", json!(summary.coverage));
        answer.field("method", json!(summary.method.name()));
        for (name, value) in [("mean", summary.mean), ("max", summary.max), ("sum", summary.sum)] {
            answer.number(format!("{name}{}", unit.suffix()), unit, value);
        }
        answer
    }

    fn quantile(&mut self, unit: Unit, summary: &QuantileSummary, method: Method) {
        let name = summary.quantile.field();
        self.number(format!("{name}{}", unit.suffix()), unit, summary.value);
        self.ends(&format!("{name}_ci"), unit, &summary.interval);
        self.ends(&format!("{name}_bounds"), unit, &summary.bounds);
        if method == Method::Digest {
            self.field(format!("{name}_rank_error"), json!(summary.rank_error));
        }
    }

    fn ends(&mut self, name: &str, unit: Unit, ends: &Ends) {
        let shown = |value: Option<f64>| value.map(|value| unit.shown(value));
        self.field(format!("{name}{}", unit.suffix()), json!([shown(ends.lower), shown(ends.upper)]));
        if let Some(absence) = ends.absence {
            self.field(format!("{name}_reason"), json!(absence.to_string()));
        }
    }

    fn number(&mut self, name: String, unit: Unit, value: Option<f64>) {
        self.field(name, json!(value.map(|value| unit.shown(value))));
    }

    fn field(&mut self, name: impl Into<String>, value: Value) {
        self.fields.push((name.into(), value));
    }
}

impl Serialize for MetricAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl PartialSchema for MetricAnswer {
    fn schema() -> RefOr<Schema> {
        let number = || ObjectBuilder::new().schema_type(Type::Number);
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "One distribution. For each quantile asked for, such as 0.95: `p95_ms`, its 95 % interval `p95_ci_ms`, \
                 the worst cases from missing requests `p95_bounds_ms` (an end that does not exist is null, and \
                 `p95_ci_reason` or `p95_bounds_reason` says why), and from a digest `p95_rank_error`. Beside \
                 `duration` and `ttft` stands `p95_censored_ms`, a lower bound that counts requests which were cut off \
                 at their duration. Speeds and shares have names without `_ms`.",
            ))
            .property("n", ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0.0)))
            .required("n")
            .property("method", ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["exact", "digest"])))
            .required("method")
            .property("p95_ms", nullable(number()))
            .property("phase_coverage", nullable(number()))
            .required("phase_coverage")
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

impl ToSchema for MetricAnswer {
    fn name() -> std::borrow::Cow<'static, str> {
        "Metric".into()
    }
}

fn nullable(number: ObjectBuilder) -> ObjectBuilder {
    number.schema_type(utoipa::openapi::schema::SchemaType::from_iter([Type::Number, Type::Null]))
}
