//! What a gate asks and says, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::serve::verdict::VerdictAnswer;

/// What a gate is asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GateRequest)]
pub struct GateBody {
    /// Objectives: a list of documents as JSON, one document, or text with YAML documents.
    pub objectives: Value,
    /// The run to judge. It is a condition of every objective; without `from` and `to` the window is that of the run's
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Start of the window: RFC 3339, or relative to now such as `-15m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its end, not included: RFC 3339, relative, or `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether to say where the time went.
    #[serde(default)]
    pub explain: bool,
    /// What to compare it with: a run, or a window. Without it a window is compared with the one of the same length
    /// before it, and a run with nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineBody>,
    /// Whether to give no verdicts as long as something of it has not settled.
    #[serde(default)]
    pub when_settled: bool,
    /// What came after this time is not waited for: RFC 3339, by the server's clock. Give the `received_before` of the
    /// first answer each time you ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_before: Option<String>,
}

/// What a gate's window is compared with.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GateBaseline)]
pub struct BaselineBody {
    /// A run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Start of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its end, not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Gate)]
pub struct GateAnswer {
    /// `pass`, `broken`, `inconclusive`, or `unsettled` where verdicts were wanted only of what has settled.
    pub outcome: String,
    /// Why it is inconclusive or unsettled.
    pub reasons: Vec<String>,
    /// The run.
    pub run: Option<String>,
    /// Start of the window; null while no request of the run has settled.
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: Option<String>,
    /// What came later is not waited for.
    #[schema(format = DateTime)]
    pub received_before: String,
    /// What has not settled.
    pub unsettled: UnsettledAnswer,
    /// The phases whose budget is broken, each once, in the order of the objectives.
    #[schema(example = json!(["gpu_queue"]))]
    pub broken_phases: Vec<String>,
    /// A verdict for each objective, in their order.
    pub verdicts: Vec<VerdictAnswer>,
    /// Where the time went, for each set of conditions.
    pub explanations: Vec<ExplanationAnswer>,
}

/// What keeps a window from being read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Unsettled)]
pub struct UnsettledAnswer {
    /// Traces of any window that came in time and are not joined yet.
    pub traces: u64,
    /// Requests of the window that wait for their other side.
    pub pending: u64,
}

/// Where the time of a window went, by means per request, which add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationAnswer {
    /// The objectives with these conditions and this pair.
    pub slos: Vec<String>,
    /// What is decomposed: `duration` or `ttft`.
    #[schema(example = "duration")]
    pub whole: String,
    /// What there is to say, in sentences.
    pub said: Vec<String>,
    /// The window; null without a request that tells its decomposition.
    pub now: Option<MeansAnswer>,
    /// What it is compared with.
    pub baseline: Option<BaselineAnswer>,
    /// How far each phase moved against it, the farthest first.
    pub moved: Vec<MovedAnswer>,
    /// The slow requests beside the others.
    pub slow: Option<SlowAnswer>,
    /// Each broken objective with the requests past its threshold.
    pub broken: Vec<PastAnswer>,
}

/// Means per request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PhaseMeans)]
pub struct MeansAnswer {
    /// How many requests tell their whole decomposition.
    pub n: u64,
    /// How many of the client records of whole answers that is; null for a part of the window's requests.
    pub coverage: Option<f64>,
    /// The mean of the whole.
    pub whole_ms: f64,
    /// Its parts, which add up to it.
    pub phases: Vec<PartAnswer>,
}

/// The mean of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PhaseMean)]
pub struct PartAnswer {
    /// The phase.
    #[schema(example = "gpu_queue")]
    pub phase: String,
    /// Its mean over all of the requests, the unknown counted as none: their time is unattributed.
    pub mean_ms: f64,
    /// How many tell it.
    pub known: u64,
}

/// What a window is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Baseline)]
pub struct BaselineAnswer {
    /// The run, where it is one.
    pub run: Option<String>,
    /// Start of its window.
    #[schema(format = DateTime)]
    pub from: String,
    /// Its end, not included.
    #[schema(format = DateTime)]
    pub to: String,
    /// Its means; null without a request that tells its decomposition.
    pub means: Option<MeansAnswer>,
}

/// How far the mean of a phase moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PhaseMoved)]
pub struct MovedAnswer {
    /// The phase.
    #[schema(example = "gpu_queue")]
    pub phase: String,
    /// Its mean before.
    pub before_ms: f64,
    /// Its mean now.
    pub now_ms: f64,
    /// The difference.
    pub by_ms: f64,
    /// The 95 % interval of the difference, for independent requests and nearly normal means.
    pub by_ci_ms: [f64; 2],
}

/// The slow requests beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SlowRequests)]
pub struct SlowAnswer {
    /// The 0.95-quantile of the whole; the slow ones lie past it.
    pub past_ms: f64,
    /// Their means.
    pub slow: MeansAnswer,
    /// Those of the others.
    pub rest: MeansAnswer,
}

/// A broken objective and where the time of the requests past its threshold went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PastThreshold)]
pub struct PastAnswer {
    /// The objective.
    pub slo: String,
    /// The phase that broke.
    pub phase: String,
    /// The means of the requests past its threshold that are whole answers; null where none tells its decomposition.
    pub past: Option<MeansAnswer>,
}
