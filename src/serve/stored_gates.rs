//! Gates and replays over what is stored.

use futures::future::BoxFuture;

use super::error::ApiError;
use super::source::{GateSource, ReplaySource, SourceError};
use crate::objectives::dry_runs::{DryRunError, DryRuns};
use crate::objectives::gates::{GateError, GateQuestion, Gates, Judged};
use slo::dry_run::{DryRunQuestion, Replayed};

impl From<GateError> for ApiError {
    fn from(error: GateError) -> Self {
        match error {
            GateError::UnknownRun(_) => Self::UnknownRun(error.to_string()),
            GateError::Read(error) => SourceError::from(error).into(),
        }
    }
}

impl GateSource for Gates {
    fn judge<'a>(&'a self, asked: &'a GateQuestion) -> BoxFuture<'a, Result<Judged, GateError>> {
        Box::pin(Self::judge(self, asked))
    }
}

impl ReplaySource for DryRuns {
    fn replay<'a>(&'a self, asked: &'a DryRunQuestion) -> BoxFuture<'a, Result<Replayed, DryRunError>> {
        Box::pin(Self::replay(self, asked))
    }
}
