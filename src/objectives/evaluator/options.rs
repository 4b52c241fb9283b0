//! What the evaluator is given beside the store and the objectives.

use std::sync::Arc;

use url::Url;

use crate::objectives::latest::LatestVerdicts;

/// Whom to notify, and how links begin.
#[derive(Debug, Clone, Default)]
pub struct EvaluatorOptions {
    /// The names of the receivers of every transition.
    pub receivers: Vec<String>,
    /// Where people reach this server.
    pub public_url: Option<Url>,
    /// Where the newest verdicts are shown from.
    pub verdicts: Arc<LatestVerdicts>,
}
