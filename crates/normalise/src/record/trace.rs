//! Which request a record is about: `trace_id`, or a W3C `traceparent`.

use std::str::FromStr;

use thiserror::Error;

use super::FieldError;
use super::body::ClientRecordBody;
use super::wire::Field;
use model::id::IdError;
use model::{SpanId, TraceId};

/// The ids of a record, as far as it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub trace_id: Option<TraceId>,
    /// The client's span, which the server's entry span has as its parent.
    pub span_id: Option<SpanId>,
    /// The sampled flag, where a traceparent was given.
    pub sampled: Option<bool>,
}

/// What a `traceparent` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    /// The client's span, which the server's entry span has as its parent.
    pub span_id: Option<SpanId>,
    /// The sampled flag, where a traceparent was given.
    pub sampled: Option<bool>,
}

/// Why a text is not a `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceparentError {
    /// Other parts than the four of the standard.
    #[error("is not of the form 00-<32 hex>-<16 hex>-<2 hex>")]
    Form,
    /// Letters that servers do not take.
    #[error("has upper-case letters, which W3C Trace Context forbids: servers start a trace of their own then")]
    Case,
    /// The version that is none.
    #[error("has version ff, which W3C Trace Context forbids")]
    Version,
    /// Not the id of a trace.
    #[error("has a trace id that {0}")]
    TraceId(IdError),
    /// Not the id of a span.
    #[error("has a parent id that {0}")]
    SpanId(IdError),
}

impl Ids {
    /// Reads the ids.
    ///
    /// # Errors
    /// A malformed id, or a `traceparent` at odds with `trace_id` or `span_id`.
    pub fn take(body: &mut ClientRecordBody) -> Result<Self, FieldError> {
        let trace_id = trace_id(&mut body.trace_id)?;
        let span_id = id::<SpanId>(&mut body.span_id, "span_id", 16)?;
        let parent = body.traceparent.raw_text("traceparent")?.map(|raw| raw.trim().parse()).transpose();
        let parent: Option<TraceContext> = parent.map_err(|error: TraceparentError| {
            FieldError::new("traceparent", format!("{error}; send the header that went with the request"))
        })?;
        let Some(parent) = parent else {
            return Ok(Self { trace_id, span_id, sampled: None });
        };
        if trace_id.is_some_and(|trace_id| trace_id != parent.trace_id) {
            let reason = format!("is not the trace id of traceparent ({}); send one of the two", parent.trace_id);
            return Err(FieldError::new("trace_id", reason));
        }
        if span_id.is_some() && span_id != parent.span_id {
            return Err(FieldError::new("span_id", "is not the parent id of traceparent; send one of the two"));
        }
        let TraceContext { trace_id, span_id, sampled } = parent;
        Ok(Self { trace_id: Some(trace_id), span_id, sampled })
    }
}

/// Reads `trace_id`.
///
/// # Errors
/// What is no id of a trace.
pub(crate) fn trace_id(field: &mut Field<String>) -> Result<Option<TraceId>, FieldError> {
    id(field, "trace_id", 32)
}

fn id<T: FromStr<Err = IdError>>(
    field: &mut Field<String>,
    name: &str,
    digits: usize,
) -> Result<Option<T>, FieldError> {
    let Some(raw) = field.raw_text(name)? else { return Ok(None) };
    raw.trim()
        .parse()
        .map(Some)
        .map_err(|error| FieldError::new(name, format!("{error}; send {digits} hexadecimal digits, not all zero")))
}

impl FromStr for TraceContext {
    type Err = TraceparentError;

    /// A `traceparent` of version 00, or of a later one by the part that all versions share. Of the flags only the first
    /// bit is read: SDKs set others too.
    fn from_str(text: &str) -> Result<Self, TraceparentError> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace_id, span_id, flags, rest @ ..] = parts.as_slice() else {
            return Err(TraceparentError::Form);
        };
        let shape = version.len() == 2 && trace_id.len() == 32 && span_id.len() == 16 && flags.len() == 2;
        if !shape || (*version == "00" && !rest.is_empty()) {
            return Err(TraceparentError::Form);
        }
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(TraceparentError::Case);
        }
        let byte = |text: &str| {
            let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(text, 16).ok()).flatten().ok_or(TraceparentError::Form)
        };
        if byte(version)? == 0xff {
            return Err(TraceparentError::Version);
        }
        let sampled = byte(flags)? & 1 == 1;
        Ok(Self {
            trace_id: trace_id.parse().map_err(TraceparentError::TraceId)?,
            span_id: Some(span_id.parse().map_err(TraceparentError::SpanId)?),
            sampled: Some(sampled),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn reads_flags_by_their_first_bit() {
        for (flags, sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let context = format!("00-{TRACE}-{SPAN}-{flags}").parse::<TraceContext>().expect("valid");
            assert_eq!(context.sampled, Some(sampled), "{flags}");
            assert_eq!(context.span_id.map(|id| id.to_string()).as_deref(), Some(SPAN));
        }
        let later = format!("01-{TRACE}-{SPAN}-01-more").parse::<TraceContext>().expect("a later version");
        assert_eq!(later.trace_id.to_string(), TRACE);
    }

    #[test]
    fn refuses_what_the_standard_refuses() {
        for (text, error) in [
            (String::new(), TraceparentError::Form),
            (format!("00-{TRACE}-{SPAN}"), TraceparentError::Form),
            (format!("00-{TRACE}-{SPAN}-01-more"), TraceparentError::Form),
            (format!("0-{TRACE}-{SPAN}-01"), TraceparentError::Form),
            (format!("00-{TRACE}-{SPAN}-+1"), TraceparentError::Form),
            (format!("ff-{TRACE}-{SPAN}-01"), TraceparentError::Version),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), TraceparentError::Case),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), TraceparentError::TraceId(IdError::Zero)),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), TraceparentError::SpanId(IdError::Zero)),
            (format!("00-{}-{SPAN}-01", "z".repeat(32)), TraceparentError::TraceId(IdError::NotHex)),
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(error), "{text}");
        }
    }
}
