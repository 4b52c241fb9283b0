//! Objectives in the body of a request.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};

use super::error::ApiError;
use slo::{Objective, document};

/// The largest body with objectives, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The forms in which objectives are written. JSON is YAML, so all are read alike.
const FORMS: [&str; 5] = ["application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/x-yaml"];

/// Reads the objectives of a body; a budget is its whole and its parts.
///
/// # Errors
/// 400 with a line and a field for each reason, 413 and 415.
pub fn read(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Vec<Objective>, ApiError> {
    check_form(headers)?;
    let body = body.map_err(refused)?;
    let text = std::str::from_utf8(&body).map_err(|error| ApiError::Body {
        status: StatusCode::BAD_REQUEST,
        detail: format!("the body is not UTF-8: {error}; save the file as UTF-8"),
    })?;
    document::read(text).map_err(ApiError::Document)
}

fn check_form(headers: &HeaderMap) -> Result<(), ApiError> {
    let told = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let form = told.map(|told| told.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match form {
        Some(form) if FORMS.contains(&form.as_str()) => Ok(()),
        told => {
            let told = told.map_or_else(|| "not told".to_owned(), |form| format!("{form:?}"));
            let detail = format!("the content type is {told}; send Content-Type: application/yaml or application/json");
            Err(ApiError::Body { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, detail })
        }
    }
}

fn refused(rejection: BytesRejection) -> ApiError {
    let status = rejection.status();
    let detail = if status == StatusCode::PAYLOAD_TOO_LARGE {
        format!("the body is larger than {MAX_BYTES} bytes; send fewer documents at once")
    } else {
        format!("the body broke off: {}; send it again", rejection.body_text())
    };
    ApiError::Body { status, detail }
}
