//! What the view of a request is made from.

use join::{ExplainedSpan, ExplainedTiming, Joined, PhaseSources};
use model::Request;

/// A request, and what its view shows beside it.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The joined request.
    pub request: Request,
    /// 0 until it is joined, then 1; rises when late data changed it.
    pub revision: i32,
    /// The spans that it was painted from, outermost first.
    pub spans: Vec<ExplainedSpan>,
    /// Which rules told its phases.
    pub sources: PhaseSources,
    /// The answer's own timing.
    pub timing: Option<ExplainedTiming>,
}

impl Explained {
    /// What the join made of a request.
    pub fn of(joined: Joined, revision: i32) -> Self {
        let Joined { request, spans, sources, timing } = joined;
        Self { request, revision, spans, sources, timing }
    }

    /// A request as it is stored: without what only its spans tell.
    pub fn of_row(request: Request, revision: i32) -> Self {
        Self { request, revision, spans: Vec::new(), sources: PhaseSources::new(), timing: None }
    }
}
