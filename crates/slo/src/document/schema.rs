//! The form of a document, in which it is read from YAML and JSON and in which an objective is kept.
//!
//! The structs say which fields there are and of which type. What depends on several fields is checked by [`super::spec`]
//! and the modules that it calls.

use serde::{Deserialize, Serialize};

use super::mapping::{Mapping, Named};
use super::node::{Any, Checked, Given, List, Node, Scalar};
use super::values::{ApiVersion, Count, Kind, Line, Minutes, Number, Period, Share, Wait};
use crate::objective::{Confirm, ObjectiveId, Straddling};
use stats::Quantile;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Document {
    #[serde(rename = "apiVersion")]
    pub(super) api_version: Given<Checked<ApiVersion>>,
    pub(super) kind: Given<Checked<Kind>>,
    pub(super) metadata: Given<Mapping<Metadata>>,
    pub(super) spec: Given<Mapping<Spec>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Given<Checked<ObjectiveId>>,
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) description: Given<Checked<Line<1000>>>,
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) owner: Given<Checked<Line<100>>>,
    /// The budget of which the objective is the whole or a part.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) budget: Given<Checked<ObjectiveId>>,
}

/// The `spec` of both kinds.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Spec {
    /// The name of an indicator. Which one it names depends on the kind and on whether requests are counted.
    pub(super) phase: Given<Scalar>,
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) quantile: Given<Checked<Quantile>>,
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) ratio: Given<Checked<Quantile>>,
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) threshold_ms: Given<Checked<Number>>,
    /// Tokens a second; not in a budget.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) threshold_tps: Given<Checked<Number>>,
    /// A share; not in a budget.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) threshold: Given<Checked<Number>>,
    /// The milliseconds of each part; only in a budget.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub(super) split: Given<Named<Checked<Number>>>,
    #[serde(rename = "where")]
    pub(super) conditions: Given<Named<Label>>,
    pub(super) window: Given<Checked<Period>>,
    pub(super) min_n: Given<Checked<Count>>,
    pub(super) min_coverage: Given<Checked<Share>>,
    pub(super) require_bounds: Given<Checked<bool>>,
    pub(super) at_risk: Given<Checked<Straddling>>,
    /// `false` for no burn rates.
    pub(super) burn: Given<Mapping<Burn>>,
    pub(super) alert: Given<Mapping<Alert>>,
}

/// The values of a label: one, or a list of them.
pub(super) type Label = Node<Any, Scalar>;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Burn {
    pub(super) windows: Given<List<Mapping<Window>>>,
    pub(super) min_traffic: Given<Checked<Count>>,
    pub(super) min_bad: Given<Checked<Count>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Window {
    /// How many times faster than even over the budget period.
    pub(super) factor: Given<Checked<Number>>,
    pub(super) long: Given<Checked<Minutes>>,
    pub(super) short: Given<Checked<Minutes>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Alert {
    pub(super) confirm: Given<Checked<Confirm>>,
    pub(super) no_verdict_after: Given<Checked<Wait>>,
    pub(super) silent_after: Given<Checked<Wait>>,
}
