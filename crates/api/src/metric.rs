//! One distribution, as an object whose fields are named after the quantiles asked for.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use model::{Metric, Unit};
use stats::sample::Method;
use stats::summary::{Ends, QuantileSummary, Summary};

/// One distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricAnswer {
    /// What the names of fields in its unit end in: `_ms`, or nothing for speeds and shares.
    pub suffix: &'static str,
    /// How many requests tell it.
    pub n: u64,
    /// In ascending order where they were read; as asked for where they are written.
    pub quantiles: Vec<QuantileAnswer>,
    /// The share of client records whose value is known; `None` without client records.
    pub phase_coverage: Option<f64>,
    /// `exact` or `digest`.
    pub method: String,
    pub mean: Option<f64>,
    pub max: Option<f64>,
    pub sum: Option<f64>,
}

/// One quantile, in the unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileAnswer {
    /// `p95`, `p99_9`.
    pub name: String,
    pub value: Option<f64>,
    /// The 95 % interval.
    pub interval: EndsAnswer,
    /// The worst cases from missing requests.
    pub bounds: EndsAnswer,
    /// How many ranks the value may be off; only from a digest.
    pub rank_error: Option<u64>,
    /// A lower bound that counts requests which were cut off at their duration. The outer `None` is a metric that has no
    /// such bound.
    pub censored: Option<Option<f64>>,
}

/// Two ends; one that does not exist is `None`, and the reason says why.
#[derive(Debug, Clone, PartialEq)]
pub struct EndsAnswer {
    pub ends: [Option<f64>; 2],
    pub reason: Option<String>,
}

impl MetricAnswer {
    /// The value of a quantile by its name (`p95`); `None` where it was not asked for, or is unknown.
    pub fn quantile(&self, name: &str) -> Option<f64> {
        self.quantiles.iter().find(|quantile| quantile.name == name)?.value
    }

    pub(crate) fn of(metric: Metric, summary: &Summary) -> Self {
        let unit = metric.unit();
        let shown = |value: Option<f64>| value.map(|value| unit.shown(value));
        let censors = matches!(metric, Metric::Duration | Metric::Ttft);
        let quantile = |quantile: &QuantileSummary| QuantileAnswer {
            name: quantile.quantile.field(),
            value: shown(quantile.value),
            interval: EndsAnswer::of(unit, &quantile.interval),
            bounds: EndsAnswer::of(unit, &quantile.bounds),
            rank_error: (summary.method == Method::Digest).then_some(quantile.rank_error),
            censored: censors.then(|| shown(quantile.censored)),
        };
        Self {
            suffix: unit.suffix(),
            n: summary.n,
            quantiles: summary.quantiles.iter().map(quantile).collect(),
            phase_coverage: summary.coverage,
            method: summary.method.name().to_owned(),
            mean: shown(summary.mean),
            max: shown(summary.max),
            sum: shown(summary.sum),
        }
    }
}

impl EndsAnswer {
    fn of(unit: Unit, ends: &Ends) -> Self {
        let shown = |value: Option<f64>| value.map(|value| unit.shown(value));
        Self { ends: [shown(ends.lower), shown(ends.upper)], reason: ends.absence.map(|absence| absence.to_string()) }
    }

    fn write<M: SerializeMap>(&self, map: &mut M, name: &str, suffix: &str) -> Result<(), M::Error> {
        map.serialize_entry(&format!("{name}{suffix}"), &self.ends)?;
        match &self.reason {
            Some(reason) => map.serialize_entry(&format!("{name}_reason"), reason),
            None => Ok(()),
        }
    }
}

impl Serialize for MetricAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let suffix = self.suffix;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("n", &self.n)?;
        for quantile in &self.quantiles {
            let name = &quantile.name;
            map.serialize_entry(&format!("{name}{suffix}"), &quantile.value)?;
            quantile.interval.write(&mut map, &format!("{name}_ci"), suffix)?;
            quantile.bounds.write(&mut map, &format!("{name}_bounds"), suffix)?;
            if let Some(rank_error) = quantile.rank_error {
                map.serialize_entry(&format!("{name}_rank_error"), &rank_error)?;
            }
        }
        for quantile in &self.quantiles {
            if let Some(censored) = quantile.censored {
                map.serialize_entry(&format!("{}_censored{suffix}", quantile.name), &censored)?;
            }
        }
        map.serialize_entry("phase_coverage", &self.phase_coverage)?;
        map.serialize_entry("method", &self.method)?;
        for (name, value) in [("mean", self.mean), ("max", self.max), ("sum", self.sum)] {
            map.serialize_entry(&format!("{name}{suffix}"), &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for MetricAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields(BTreeMap::deserialize(deserializer)?);
        let suffix = if fields.0.contains_key("mean") { "" } else { Unit::Nanos.suffix() };
        let number = |name: &str| fields.needed(&format!("{name}{suffix}"));
        let mut quantiles = Vec::new();
        for (rank, name) in fields.quantiles(suffix) {
            let quantile = QuantileAnswer {
                value: number(name)?,
                interval: fields.ends(&format!("{name}_ci"), suffix)?,
                bounds: fields.ends(&format!("{name}_bounds"), suffix)?,
                rank_error: fields.optional(&format!("{name}_rank_error"))?,
                censored: fields.optional(&format!("{name}_censored{suffix}"))?,
                name: name.to_owned(),
            };
            quantiles.push((rank, quantile));
        }
        quantiles.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Ok(Self {
            suffix,
            n: fields.needed("n")?,
            quantiles: quantiles.into_iter().map(|(_, quantile)| quantile).collect(),
            phase_coverage: fields.needed("phase_coverage")?,
            method: fields.needed("method")?,
            mean: number("mean")?,
            max: number("max")?,
            sum: number("sum")?,
        })
    }
}

struct Fields(BTreeMap<String, Value>);

impl Fields {
    /// The names of quantiles such as `p95`, each with its number; `p95_ci_ms` is none.
    fn quantiles(&self, suffix: &str) -> impl Iterator<Item = (f64, &str)> {
        self.0.keys().filter_map(move |key| {
            let name = key.strip_suffix(suffix)?;
            let rank = name.strip_prefix('p')?.replace('_', ".").parse().ok()?;
            Some((rank, name))
        })
    }

    fn ends<E: Error>(&self, name: &str, suffix: &str) -> Result<EndsAnswer, E> {
        Ok(EndsAnswer {
            ends: self.needed(&format!("{name}{suffix}"))?,
            reason: self.optional(&format!("{name}_reason"))?,
        })
    }

    fn needed<T: DeserializeOwned, E: Error>(&self, name: &str) -> Result<T, E> {
        self.optional(name)?.ok_or_else(|| E::custom(format_args!("missing field `{name}`")))
    }

    fn optional<T: DeserializeOwned, E: Error>(&self, name: &str) -> Result<Option<T>, E> {
        let read = |value: &Value| T::deserialize(value).map_err(|error| E::custom(format_args!("`{name}`: {error}")));
        self.0.get(name).map(read).transpose()
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
    number.schema_type(SchemaType::from_iter([Type::Number, Type::Null]))
}
