//! How the answer is split, and which quantiles it shows.

use serde::Deserialize;
use utoipa::IntoParams;

use super::parameters::not_among;
use super::values::list;
use crate::serve::error::ApiError;
use model::{GroupKey, Selection};
use stats::Quantile;
use stats::quantile::BadQuantile;

const MOST_QUANTILES: usize = 10;

/// The parameters that say how an answer is split and which quantiles it shows.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct DistributionParams {
    /// Labels to group by, separated by commas: any filter's name, or `result`; an answer has 200 groups at most.
    #[serde(deserialize_with = "list")]
    #[param(value_type = Option<String>)]
    group_by: Vec<String>,
    /// Quantiles, separated by commas, each above 0 and below 1; ten at most.
    #[serde(deserialize_with = "list")]
    #[param(value_type = Option<String>, default = "0.5,0.95,0.99")]
    quantiles: Vec<String>,
}

/// How an answer is split, and which quantiles it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Keys to group by, each once, in the order given.
    pub group_by: Vec<GroupKey>,
    /// Quantiles, ascending, each once.
    pub quantiles: Vec<Quantile>,
}

impl DistributionParams {
    /// How the distributions of `selection` are split and shown. A selection of several classes of result is grouped by
    /// class, since classes are never mixed in one distribution.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a value that cannot be understood.
    pub fn distribution(&self, selection: &Selection) -> Result<Distribution, ApiError> {
        let mut group_by = Vec::new();
        for name in &self.group_by {
            let accepted = || GroupKey::all().map(GroupKey::name);
            let key = GroupKey::from_name(name).ok_or_else(|| not_among("group_by", name, accepted()))?;
            if !group_by.contains(&key) {
                group_by.push(key);
            }
        }
        if selection.results.len() > 1 && !group_by.contains(&GroupKey::Result) {
            group_by.push(GroupKey::Result);
        }
        Ok(Distribution { group_by, quantiles: self.quantiles()? })
    }

    fn quantiles(&self) -> Result<Vec<Quantile>, ApiError> {
        let mut quantiles = Vec::new();
        for text in &self.quantiles {
            let quantile = text.parse();
            quantiles.push(quantile.map_err(|error: BadQuantile| ApiError::parameter("quantiles", error.to_string()))?);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::query::{FilterParams, Parameters, WindowParams, read_selection};
    use model::{Dimension, UnixNanos};

    fn read(raw: &str) -> Result<Distribution, ApiError> {
        let Parameters((window, filters, distribution)) =
            Parameters::<(WindowParams, FilterParams, DistributionParams)>::parse(raw)?;
        distribution.distribution(&read_selection(&window, &filters, UnixNanos(1))?)
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
