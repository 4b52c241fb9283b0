//! How the answer is split, and which quantiles it shows.

use utoipa::IntoParams;

use super::parameters::{Parameters, not_among};
use crate::serve::error::ApiError;
use model::{GroupKey, Selection};
use stats::Quantile;
use stats::quantile::BadQuantile;

const MOST_QUANTILES: usize = 10;

/// The parameters that say how an answer is split and which quantiles it shows.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; Distribution::read reads them by name")]
pub struct DistributionParams {
    /// Labels to group by, separated by commas: any filter's name, or `result`; an answer has 200 groups at most.
    group_by: Option<String>,
    /// Quantiles, separated by commas, each above 0 and below 1; ten at most.
    #[param(default = "0.5,0.95,0.99")]
    quantiles: Option<String>,
}

/// How an answer is split, and which quantiles it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Keys to group by, each once, in the order given.
    pub group_by: Vec<GroupKey>,
    /// Quantiles, ascending, each once.
    pub quantiles: Vec<Quantile>,
}

impl Distribution {
    /// Reads what [`DistributionParams`] documents. A selection of several classes of result is grouped by class, since
    /// classes are never mixed in one distribution.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a value that cannot be understood.
    pub fn read(parameters: &Parameters, selection: &Selection) -> Result<Self, ApiError> {
        let mut group_by = Vec::new();
        for name in parameters.list("group_by")? {
            let accepted = || GroupKey::all().map(GroupKey::name);
            let key = GroupKey::from_name(name).ok_or_else(|| not_among("group_by", name, accepted()))?;
            if !group_by.contains(&key) {
                group_by.push(key);
            }
        }
        if selection.results.len() > 1 && !group_by.contains(&GroupKey::Result) {
            group_by.push(GroupKey::Result);
        }
        Ok(Self { group_by, quantiles: quantiles(parameters)? })
    }
}

fn quantiles(parameters: &Parameters) -> Result<Vec<Quantile>, ApiError> {
    let mut quantiles = Vec::new();
    for text in parameters.list("quantiles")? {
        quantiles.push(text.parse().map_err(|error: BadQuantile| ApiError::parameter("quantiles", error.to_string()))?);
    }
    if quantiles.is_empty() {
        quantiles.extend(Quantile::DEFAULT);
    }
    quantiles.sort();
    quantiles.dedup();
    if quantiles.len() > MOST_QUANTILES {
        let detail = format!("quantiles has {} members; give at most {MOST_QUANTILES}", quantiles.len());
        return Err(ApiError::parameter("quantiles", detail));
    }
    Ok(quantiles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::query::{SelectionParams, names, read_selection};
    use model::{Dimension, UnixNanos};

    fn read(raw: &str) -> Result<Distribution, ApiError> {
        let known = [names::<SelectionParams>(), names::<DistributionParams>()];
        let parameters = Parameters::read(Some(raw), &known)?;
        Distribution::read(&parameters, &read_selection(&parameters, UnixNanos(1))?)
    }

    #[test]
    fn several_results_are_grouped_by_result() {
        let model = GroupKey::Dimension(Dimension::Model);
        assert_eq!(read("group_by=model,model").expect("a key").group_by, [model]);
        assert_eq!(read("group_by=model&result=all").expect("keys").group_by, [model, GroupKey::Result]);
        let error = read("group_by=modle").expect_err("no such key");
        assert!(error.to_string().starts_with("group_by is \"modle\"; give one of run, scenario, model"));
    }

    #[test]
    fn quantiles_are_sorted_and_bounded() {
        assert_eq!(read("").expect("defaults").quantiles, Quantile::DEFAULT);
        let two = read("quantiles=0.95,0.5,0.950").expect("two").quantiles;
        assert_eq!(two, [Quantile::P50, Quantile::P95]);
        for bad in ["0", "1", "95", "nan", "p95"] {
            assert!(read(&format!("quantiles={bad}")).is_err(), "{bad}");
        }
        let many: Vec<String> = (1..=11).map(|n| format!("0.{n:02}")).collect();
        assert!(read(&format!("quantiles={}", many.join(","))).is_err());
    }
}
