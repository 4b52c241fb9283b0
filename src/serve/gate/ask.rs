//! From the body of a request to a question.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde_json::Value;

use super::view::{BaselineBody, GateBody};
use crate::objectives::gates::{Against, GateQuestion};
use crate::serve::error::ApiError;
use crate::serve::query::parse_time;
use model::{Interval, UnixNanos};
use slo::{Objective, document};

/// How many objectives are judged at once.
const MAX_OBJECTIVES: usize = 200;

/// The body, or what is wrong with it.
pub fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, ApiError> {
    match body {
        Ok(Json(body)) => Ok(body),
        Err(rejection) => {
            let status = match rejection.status() {
                StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
                status => status,
            };
            Err(ApiError::Body { status, detail: rejection.body_text() })
        }
    }
}

/// What a gate is asked.
pub fn question(body: &GateBody, now: UnixNanos) -> Result<GateQuestion, ApiError> {
    let window = window(body.from.as_deref(), body.to.as_deref(), now)?;
    if body.run.is_none() && window.is_none() {
        return Err(ApiError::parameter("run", "neither run nor from is given; name a run, or give from and to"));
    }
    let received_before = body.received_before.as_deref();
    Ok(GateQuestion {
        objectives: objectives(&body.objectives)?,
        run: body.run.clone(),
        window,
        received_before: received_before.map_or(Ok(now), |text| parse_time("received_before", text, now))?,
        when_settled: body.when_settled,
        explain: body.explain,
        baseline: body.baseline.as_ref().map(|baseline| against(baseline, now)).transpose()?,
    })
}

fn window(from: Option<&str>, to: Option<&str>, now: UnixNanos) -> Result<Option<Interval>, ApiError> {
    let Some(from) = from else {
        let alone = || ApiError::parameter("from", "to is given without from; give both");
        return if to.is_some() { Err(alone()) } else { Ok(None) };
    };
    let start = parse_time("from", from, now)?;
    let end = to.map_or(Ok(now), |to| parse_time("to", to, now))?;
    if start >= end {
        return Err(ApiError::parameter("from", "from is not before to; give a from that is earlier than to"));
    }
    Ok(Some(Interval { start, end }))
}

fn against(baseline: &BaselineBody, now: UnixNanos) -> Result<Against, ApiError> {
    let window = window(baseline.from.as_deref(), baseline.to.as_deref(), now)?;
    match (&baseline.run, window) {
        (Some(run), None) => Ok(Against::Run(run.clone())),
        (None, Some(window)) => Ok(Against::Window(window)),
        _ => Err(ApiError::parameter("baseline", "a baseline is a run, or from and to; give one of the two")),
    }
}

/// Objectives in any of their forms, each name once.
pub fn objectives(given: &Value) -> Result<Vec<Objective>, ApiError> {
    // JSON is YAML, and a list of documents is their texts with a line between them.
    let text = match given {
        Value::String(text) => text.clone(),
        Value::Array(documents) => documents.iter().map(|document| format!("---\n{document}\n")).collect(),
        document => document.to_string(),
    };
    let objectives = document::read(&text).map_err(ApiError::Document)?;
    if objectives.is_empty() || objectives.len() > MAX_OBJECTIVES {
        let detail = format!("{} objectives are given; give 1 to {MAX_OBJECTIVES}", objectives.len());
        return Err(ApiError::parameter("objectives", detail));
    }
    let names: BTreeSet<&str> = objectives.iter().map(|objective| objective.id.as_str()).collect();
    if names.len() < objectives.len() {
        return Err(ApiError::parameter("objectives", "two objectives have the same name; give each its own"));
    }
    Ok(objectives)
}
