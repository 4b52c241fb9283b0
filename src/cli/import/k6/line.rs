//! What a line of k6's output is, recognised by what it holds.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::point::{Metric, Point};

#[derive(Debug, PartialEq)]
pub enum Line {
    /// A measurement of a request.
    Point(Box<Point>),
    /// A client record that the script wrote to the console.
    Record(String),
    /// A metric's definition, which comes before its first point.
    Definition,
    /// A line of k6 that tells nothing of a request.
    Other,
    /// Nothing that k6 writes.
    Unknown,
}

/// Every field by which lines are told apart. What they hold is read when it is known what the line is: in a record they
/// may hold anything.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metric: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    msg: Option<&'a RawValue>,
    #[serde(borrow, default)]
    level: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trace_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow, default)]
    duration_ms: Option<&'a RawValue>,
}

impl Line {
    /// Recognises a line: of `--out json`, of the console as JSON or as text, or a record as it is.
    pub fn read(bytes: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(bytes) else { return Self::Unknown };
        if text.starts_with("time=\"") {
            return text_message(text).map_or(Self::Unknown, |message| Self::message(&message));
        }
        let Ok(fields) = serde_json::from_str::<Fields>(text) else { return Self::Unknown };
        match (string(fields.r#type).as_deref(), string(fields.metric), fields.data) {
            (Some("Metric"), _, Some(_)) => return Self::Definition,
            (Some("Point"), Some(metric), Some(data)) => return Self::point(&metric, data),
            _ => {}
        }
        if fields.is_record() {
            return Self::Record(text.to_owned());
        }
        match (fields.level, string(fields.msg)) {
            (Some(_), Some(message)) => Self::message(&message),
            _ => Self::Unknown,
        }
    }

    fn point(metric: &str, data: &RawValue) -> Self {
        let Some(metric) = Metric::from_name(metric) else { return Self::Other };
        Point::read(metric, data).map_or(Self::Unknown, |point| Self::Point(Box::new(point)))
    }

    /// What a script wrote to the console: a record, or anything.
    fn message(message: &str) -> Self {
        let record = serde_json::from_str::<Fields>(message).is_ok_and(|fields| fields.is_record());
        if record { Self::Record(message.to_owned()) } else { Self::Other }
    }
}

impl Fields<'_> {
    fn is_record(&self) -> bool {
        self.trace_id.is_some() || self.traceparent.is_some() || self.duration_ms.is_some()
    }
}

fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw?.get()).ok()
}

/// The message of a line of k6's log as text: `time="…" level=… msg="…" source=console`. It is quoted as Go quotes, which
/// for what JSON may hold is as JSON does.
fn text_message(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" msg=")?;
    if !rest.starts_with('"') {
        return rest.split(' ').next().map(str::to_owned);
    }
    serde_json::Deserializer::from_str(rest).into_iter::<String>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_is_read_in_each_of_its_forms() {
        let record = r#"{"trace_id":"x","duration_ms":1,"type":7,"data":"any"}"#;
        let as_json =
            serde_json::json!({"level": "error", "msg": record, "source": "console", "time": "t"}).to_string();
        let as_text =
            format!("time=\"t\" level=info msg={} source=console", serde_json::to_string(record).expect("JSON"));
        for line in [record, &as_json, &as_text] {
            assert_eq!(Line::read(line.as_bytes()), Line::Record(record.to_owned()), "{line}");
        }
    }

    #[test]
    fn what_is_no_request_is_told_apart_from_what_is_not_k6s() {
        for line in [
            r#"{"level":"info","msg":"hello","source":"console","time":"t"}"#,
            r#"time="t" level=info msg="hello you" source=console"#,
            "time=\"t\" level=info msg=hello source=console",
            r#"{"type":"Point","metric":"vus","data":{"time":"1970-01-01T00:00:01Z","value":1}}"#,
        ] {
            assert_eq!(Line::read(line.as_bytes()), Line::Other, "{line}");
        }
        let definition = r#"{"type":"Metric","data":{"name":"vus"},"metric":"vus"}"#;
        assert_eq!(Line::read(definition.as_bytes()), Line::Definition);
        let without_time = r#"{"type":"Point","metric":"http_reqs","data":{"value":1}}"#;
        let cut = r#"time="t" level=info msg="{\"trace_id\":"#;
        for line in [r#"{"a":1}"#, "oops", "[1]", without_time, cut, "time=\"t\" level=info"] {
            assert_eq!(Line::read(line.as_bytes()), Line::Unknown, "{line}");
        }
        assert_eq!(Line::read(b"\xff"), Line::Unknown);
    }
}
