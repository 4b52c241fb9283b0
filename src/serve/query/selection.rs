//! Which requests a query is about.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::IntoParams;

use super::parameters::{Parameters, not_among};
use super::time::parse_time;
use crate::serve::error::ApiError;
use model::{Dimension, Interval, ResultClass, Selection, UnixNanos};

/// The parameters that say which requests a query is about. A filter that is repeated takes any of its values.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; read_selection reads them by name")]
pub struct SelectionParams {
    /// Start of the window: RFC 3339, or relative to now such as `-15m`.
    #[param(default = "-1h")]
    from: Option<String>,
    /// End of the window, not included: RFC 3339, relative, or `now`.
    #[param(default = "now")]
    to: Option<String>,
    /// Class of result: `ok`, `error`, `timeout`, `cancelled`, `truncated`, a comma-separated list of them, or `all`.
    /// Classes are never mixed in one distribution: with several the answer is grouped by `result` too.
    #[param(default = "ok")]
    result: Option<String>,
    /// The test run.
    run: Option<String>,
    /// The load scenario.
    scenario: Option<String>,
    /// The model that answered.
    model: Option<String>,
    /// The provider or route.
    provider: Option<String>,
    /// The region.
    region: Option<String>,
    /// The pool of accelerators.
    pool: Option<String>,
    /// The priority class.
    priority: Option<String>,
    /// How many requests the client kept under way.
    concurrency: Option<String>,
    /// Whether the answer was streamed: `true` or `false`.
    streaming: Option<String>,
    /// The prompt's length as a range, such as `input_0_512`.
    input_range: Option<String>,
    /// The answer's length as a range, such as `output_129_256`.
    output_range: Option<String>,
    /// Whether the request loaded the model first: `true` or `false`.
    cold_start: Option<String>,
}

/// Reads what [`SelectionParams`] documents.
///
/// # Errors
/// [`ApiError::Parameter`] for a value that cannot be understood, and for a window that ends before it starts.
pub fn read_selection(parameters: &Parameters, now: UnixNanos) -> Result<Selection, ApiError> {
    Ok(Selection {
        window: read_window(parameters, now)?,
        filters: filters(parameters)?,
        results: results(parameters)?,
    })
}

/// The parameters that say which stretch of time a query is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; read_window reads them by name")]
pub struct WindowParams {
    /// Start of the window: RFC 3339, or relative to now such as `-15m`.
    #[param(default = "-1h")]
    from: Option<String>,
    /// End of the window, not included: RFC 3339, relative, or `now`.
    #[param(default = "now")]
    to: Option<String>,
}

/// Reads what [`WindowParams`] documents.
///
/// # Errors
/// [`ApiError::Parameter`] for a time that cannot be understood, and for a window that ends before it starts.
pub fn read_window(parameters: &Parameters, now: UnixNanos) -> Result<Interval, ApiError> {
    let from = parse_time("from", parameters.one("from")?.unwrap_or("-1h"), now)?;
    let to = parse_time("to", parameters.one("to")?.unwrap_or("now"), now)?;
    if from >= to {
        return Err(ApiError::parameter("from", "from is not before to; give a from that is earlier than to"));
    }
    Ok(Interval { start: from, end: to })
}

fn filters(parameters: &Parameters) -> Result<BTreeMap<Dimension, BTreeSet<String>>, ApiError> {
    let mut filters = BTreeMap::new();
    for dimension in Dimension::ALL.iter().copied() {
        let mut values = BTreeSet::new();
        for value in parameters.all(dimension.name())? {
            check_label(dimension, value)?;
            values.insert(value.to_owned());
        }
        if !values.is_empty() {
            filters.insert(dimension, values);
        }
    }
    Ok(filters)
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

fn results(parameters: &Parameters) -> Result<BTreeSet<ResultClass>, ApiError> {
    let mut classes = BTreeSet::new();
    for name in parameters.list("result")? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::query::names;
    use model::Nanos;

    const NOW: UnixNanos = UnixNanos(1_800_000_000_000_000_000);

    fn select(raw: &str) -> Result<Selection, ApiError> {
        read_selection(&Parameters::read(Some(raw), &[names::<SelectionParams>()])?, NOW)
    }

    #[test]
    fn every_label_is_a_documented_parameter() {
        let documented = names::<SelectionParams>();
        for dimension in Dimension::ALL {
            assert!(documented.iter().any(|name| name == dimension.name()), "{}", dimension.name());
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
