//! One line of a streaming event log from JSON to the model.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::record::fields::Fields;
use super::record::{FieldError, request_id, trace_id};
use super::rules::Key;
use super::text;
use model::{EventKind, StreamEvent, TraceId};

/// Which members of `extra` may be archived; by default none.
#[derive(Debug, Clone, Default)]
pub struct ExtraKeys(Vec<Key>);

impl ExtraKeys {
    /// These and no others.
    pub fn new(keys: Vec<Key>) -> Self {
        Self(keys)
    }

    /// What may be kept: numbers, truth values and texts that are cleaned and cut as all that are stored.
    fn of(&self, extra: Option<Value>) -> Map<String, Value> {
        let Some(Value::Object(mut extra)) = extra else { return Map::new() };
        extra.retain(|key, _| self.0.iter().any(|allowed| allowed.as_str() == key));
        extra.retain(|_, value| match value {
            Value::String(raw) => {
                *raw = text::value(raw).text;
                true
            }
            Value::Bool(_) | Value::Number(_) => true,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        });
        extra
    }
}

/// A line, the request it is of, and how many of its fields no line has.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedEvent {
    /// The request, by its own id.
    pub request_id: Option<String>,
    /// The request, by its trace. At least one of the two is known.
    pub trace_id: Option<TraceId>,
    /// The line.
    pub event: StreamEvent,
    /// What of `extra` may be archived.
    pub extra: Map<String, Value>,
    /// Fields that were ignored.
    pub ignored_fields: u64,
}

/// Reads one line. What it carries in `extra` is dropped, but for what may be archived.
///
/// # Errors
/// The first field that is missing or malformed.
pub fn event(raw: &RawValue, extra: &ExtraKeys) -> Result<ParsedEvent, FieldError> {
    let mut fields = Fields::parse(raw, "an event is a JSON object with request_id or trace_id, and event_type")?;
    let trace_id = trace_id(&mut fields.field("trace_id"))?;
    let request_id = request_id(&mut fields.field("request_id"))?;
    if trace_id.is_none() && request_id.is_none() {
        let reason = "is missing, and so is trace_id; send the id that all lines of the request have";
        return Err(fields.error("request_id", reason));
    }
    let event = StreamEvent {
        kind: kind(&mut fields)?,
        seq: fields.count("event_seq")?,
        client_time: fields.clock("client_time_ms")?,
        service_time: fields.clock("service_time_ms")?.or(fields.clock("time_ms")?),
        tokens: fields.count("token_count")?,
        batched: fields.boolean("batch_flag")?.or(fields.boolean("batch")?),
    };
    let extra = extra.of(fields.take("extra"));
    Ok(ParsedEvent { request_id, trace_id, event, extra, ignored_fields: fields.left() })
}

fn kind(fields: &mut Fields) -> Result<EventKind, FieldError> {
    let names = || EventKind::ALL.map(EventKind::name).join(", ");
    let Some(told) = fields.raw_text("event_type")? else {
        return Err(fields.error("event_type", format!("is missing; send one of {}", names())));
    };
    EventKind::from_name(&told.trim().to_ascii_lowercase())
        .ok_or_else(|| fields.error("event_type", format!("is none of {}", names())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    fn read(json: &str) -> Result<ParsedEvent, String> {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        event(raw, &ExtraKeys::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_in_both_spellings() {
        let long = read(
            r#"{"request_id":"r1","trace_id":"dddddddddddddddddddddddddddddddd","event_seq":4,"event_type":"business",
                "service_time_ms":2250.1,"client_time_ms":1767323045678.25,"token_count":9,"batch_flag":true,
                "extra":{"text":"hello"}}"#,
        )
        .expect("a line");
        let short = read(
            r#"{"request_id":"r1","trace_id":"dddddddddddddddddddddddddddddddd","event_seq":"4","event_type":"Business",
                "time_ms":2250.1,"client_time_ms":1767323045678.25,"token_count":9,"batch":1}"#,
        );
        assert_eq!(short, Ok(long.clone()));
        assert_eq!(
            long.event,
            StreamEvent {
                kind: EventKind::Business,
                seq: Some(4),
                client_time: Some(Nanos(1_767_323_045_678_250_000)),
                service_time: Some(Nanos(2_250_100_000)),
                tokens: Some(9),
                batched: Some(true),
            }
        );
        assert_eq!((long.request_id.as_deref(), long.ignored_fields), (Some("r1"), 0));
    }

    #[test]
    fn of_extra_only_what_is_named_is_kept_and_no_content() {
        let json = r#"{"request_id":"r","event_type":"done","extra":{"node":"a1","ms":2.5,"who":"ann@example.com",
                       "text":"hello","list":["hello"],"nested":{"text":"hello"}}}"#;
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let keys = ["node", "ms", "who", "list", "nested"].map(|key| Key::try_from(key.to_owned()).expect("a key"));
        let kept = event(raw, &ExtraKeys::new(keys.to_vec())).expect("a line").extra;
        assert_eq!(Value::Object(kept), serde_json::json!({"node": "a1", "ms": 2.5, "who": "[redacted]"}));
        for content in ["text", "delta", "answer", "user_prompt", "api_key", "email"] {
            assert!(Key::try_from(content.to_owned()).is_err(), "{content}");
        }
    }

    #[test]
    fn what_no_line_has_is_counted() {
        assert_eq!(read(r#"{"request_id":"r","event_type":"done","text":"x"}"#).expect("a line").ignored_fields, 1);
    }

    #[test]
    fn a_bad_line_says_what_to_do() {
        for (json, reason) in [
            (r#"{"event_type":"done"}"#, "request_id is missing, and so is trace_id"),
            (r#"{"request_id":"r"}"#, "event_type is missing; send one of connect, business, heartbeat, done"),
            (r#"{"request_id":"r","event_type":"token"}"#, "event_type is none of connect"),
            (r#"{"trace_id":"00","event_type":"done"}"#, "trace_id has 1 bytes"),
            (r#"{"request_id":"r","event_type":"done","event_seq":-1}"#, "event_seq is -1, must be a whole number"),
            (r#"{"request_id":"r","event_type":"done","client_time_ms":-5}"#, "client_time_ms is -5 ms"),
            (r#"{"request_id":"r","event_type":"done","client_time_ms":1767323045678000}"#, "client_time_ms is 17673"),
            (r#"{"request_id":"r","event_type":"done","batch":2}"#, "batch is 2, must be true or false"),
            (r#"{"request_id":"me@example.com","event_type":"done"}"#, "request_id looks like a mail address"),
            ("7", " an event is a JSON object"),
        ] {
            let error = read(json).expect_err(json);
            assert!(error.starts_with(reason), "{json}: {error}");
        }
    }
}
