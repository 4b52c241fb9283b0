//! Which requests a query is about.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use utoipa::IntoParams;

use super::parameters::not_among;
use super::time::parse_time;
use super::values::{list, several, single};
use crate::serve::error::ApiError;
use model::{Dimension, Interval, ResultClass, Selection, UnixNanos};

/// The parameters that say which stretch of time a query is about.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct WindowParams {
    /// Start of the window: RFC 3339, or relative to now such as `-15m`.
    #[serde(deserialize_with = "single")]
    #[param(default = "-1h")]
    from: Option<String>,
    /// End of the window, not included: RFC 3339, relative, or `now`.
    #[serde(deserialize_with = "single")]
    #[param(default = "now")]
    to: Option<String>,
}

impl WindowParams {
    /// The window as seen at `now`.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a time that cannot be understood, and for a window that ends before it starts.
    pub fn window(&self, now: UnixNanos) -> Result<Interval, ApiError> {
        let from = parse_time("from", self.from.as_deref().unwrap_or("-1h"), now)?;
        let to = parse_time("to", self.to.as_deref().unwrap_or("now"), now)?;
        if from >= to {
            return Err(ApiError::parameter("from", "from is not before to; give a from that is earlier than to"));
        }
        Ok(Interval { start: from, end: to })
    }
}

/// The parameters that say which requests of a window a query is about. A filter that is repeated takes any of its
/// values.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct FilterParams {
    /// Class of result: `ok`, `error`, `timeout`, `cancelled`, `truncated`, a comma-separated list of them, or `all`.
    /// Classes are never mixed in one distribution: with several the answer is grouped by `result` too.
    #[serde(deserialize_with = "list")]
    #[param(value_type = Option<String>, default = "ok")]
    result: Vec<String>,
    /// The test run.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    run: Vec<String>,
    /// The load scenario.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    scenario: Vec<String>,
    /// The model that answered.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    model: Vec<String>,
    /// The provider or route.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    provider: Vec<String>,
    /// The region.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    region: Vec<String>,
    /// The pool of accelerators.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    pool: Vec<String>,
    /// The priority class.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    priority: Vec<String>,
    /// How many requests the client kept under way.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    concurrency: Vec<String>,
    /// Whether the answer was streamed: `true` or `false`.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    streaming: Vec<String>,
    /// The prompt's length as a range, such as `input_0_512`.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    input_range: Vec<String>,
    /// The answer's length as a range, such as `output_129_256`.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    output_range: Vec<String>,
    /// Whether the request loaded the model first: `true` or `false`.
    #[serde(deserialize_with = "several")]
    #[param(value_type = Option<String>)]
    cold_start: Vec<String>,
}

impl FilterParams {
    fn of(&self, dimension: Dimension) -> &[String] {
        match dimension {
            Dimension::Run => &self.run,
            Dimension::Scenario => &self.scenario,
            Dimension::Model => &self.model,
            Dimension::Provider => &self.provider,
            Dimension::Region => &self.region,
            Dimension::Pool => &self.pool,
            Dimension::Priority => &self.priority,
            Dimension::Concurrency => &self.concurrency,
            Dimension::Streaming => &self.streaming,
            Dimension::InputRange => &self.input_range,
            Dimension::OutputRange => &self.output_range,
            Dimension::ColdStart => &self.cold_start,
        }
    }

    fn filters(&self) -> Result<BTreeMap<Dimension, BTreeSet<String>>, ApiError> {
        let mut filters = BTreeMap::new();
        for dimension in Dimension::ALL.iter().copied() {
            let values = self.of(dimension);
            for value in values {
                check_label(dimension, value)?;
            }
            if !values.is_empty() {
                filters.insert(dimension, values.iter().cloned().collect());
            }
        }
        Ok(filters)
    }

    fn results(&self) -> Result<BTreeSet<ResultClass>, ApiError> {
        let mut classes = BTreeSet::new();
        for name in &self.result {
            if name == "all" {
                classes.extend(ResultClass::ALL);
                continue;
            }
            let accepted = || ResultClass::ALL.into_iter().map(ResultClass::name).chain(["all"]);
            classes.insert(ResultClass::from_name(name).ok_or_else(|| not_among("result", name, accepted()))?);
        }
        if classes.is_empty() {
            classes.insert(ResultClass::Ok);
        }
        Ok(classes)
    }
}

/// The requests that a window and filters select, as seen at `now`.
///
/// # Errors
/// [`ApiError::Parameter`] for a value that cannot be understood, and for a window that ends before it starts.
pub fn read_selection(window: &WindowParams, filters: &FilterParams, now: UnixNanos) -> Result<Selection, ApiError> {
    Ok(Selection { window: window.window(now)?, filters: filters.filters()?, results: filters.results()? })
}

/// Refuses values that no request can have, since they would silently select nothing.
fn check_label(dimension: Dimension, value: &str) -> Result<(), ApiError> {
    let name = dimension.name();
    match (dimension, dimension.refuses(value)) {
        (_, None) => Ok(()),
        (Dimension::Streaming | Dimension::ColdStart, Some(_)) => Err(not_among(name, value, ["true", "false"])),
        (_, Some(form)) => Err(ApiError::parameter(name, format!("{name} is {value:?}; give {form}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::query::Parameters;
    use model::Nanos;

    const NOW: UnixNanos = UnixNanos(1_800_000_000_000_000_000);

    fn select(raw: &str) -> Result<Selection, ApiError> {
        let Parameters((window, filters)) = Parameters::<(WindowParams, FilterParams)>::parse(raw)?;
        read_selection(&window, &filters, NOW)
    }

    #[test]
    fn every_label_is_a_parameter() {
        for dimension in Dimension::ALL.iter().copied() {
            let value = match dimension {
                Dimension::Streaming | Dimension::ColdStart => "true",
                Dimension::InputRange => "input_0_512",
                Dimension::OutputRange => "output_129_256",
                _ => "7",
            };
            let selection = select(&format!("{}={value}", dimension.name())).expect("a label");
            assert_eq!(selection.filters, BTreeMap::from([(dimension, BTreeSet::from([value.to_owned()]))]));
        }
    }

    #[test]
    fn nothing_said_is_the_last_hour_of_whole_answers() {
        let selection = select("").expect("defaults");
        assert_eq!(selection.window, Interval { start: NOW - Nanos(3_600_000_000_000), end: NOW });
        assert_eq!(selection.results, BTreeSet::from([ResultClass::Ok]));
        assert!(selection.filters.is_empty());
    }

    #[test]
    fn filters_take_any_of_their_values() {
        let selection = select("model=a&model=b%2Cc&streaming=true&result=ok,timeout").expect("filters");
        let models = BTreeSet::from(["a".to_owned(), "b,c".to_owned()]);
        assert_eq!(selection.filters[&Dimension::Model], models);
        assert_eq!(selection.results, BTreeSet::from([ResultClass::Ok, ResultClass::Timeout]));
        assert_eq!(select("result=all").expect("all").results.len(), ResultClass::ALL.len());
    }

    #[test]
    fn values_that_no_request_can_have_are_refused() {
        for bad in ["streaming=yes", "cold_start=1", "input_range=0-512", "output_range=input_0_512", "result=okay"] {
            assert!(select(bad).is_err(), "{bad}");
        }
        let error = select("from=now&to=-1h").expect_err("ends before it starts");
        assert_eq!(error.to_string(), "from is not before to; give a from that is earlier than to");
    }
}
