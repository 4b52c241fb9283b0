//! The `Server-Timing` header: `queue;dur=12.5, generation;dur=830;desc="…"`, or the list that a browser makes of it.

use serde_json::Value;

use super::{OwnTiming, Part};
use crate::record::fields::{self, Fields};

/// Under which names the header may be given.
const HEADERS: &[&str] = &["server-timing", "server_timing"];

/// What a metric's name means. A total is left out: of which server it is, the header does not say.
const NAMES: &[(&str, Part)] = &[
    ("queue", Part::Queue),
    ("gpu_queue", Part::Queue),
    ("wait", Part::Queue),
    ("prefill", Part::Prefill),
    ("prompt", Part::Prefill),
    ("prompt_eval", Part::Prefill),
    ("decode", Part::Decode),
    ("generation", Part::Inference),
    ("generate", Part::Inference),
    ("inference", Part::Inference),
    ("infer", Part::Inference),
    ("llm", Part::Inference),
    ("model", Part::Inference),
    ("gateway", Part::Gateway),
    ("auth", Part::Gateway),
    ("guardrail", Part::Gateway),
    ("guardrails", Part::Gateway),
    ("overhead", Part::Gateway),
    ("prepare", Part::Gateway),
    ("preprocess", Part::Gateway),
    ("ratelimit", Part::Gateway),
    ("rate_limit", Part::Gateway),
    ("route", Part::Gateway),
    ("routing", Part::Gateway),
];

/// Reads the header from its object, and returns how many of its members are not known.
pub fn read(mut given: Fields, timing: &mut OwnTiming) -> u64 {
    for name in HEADERS {
        let Some(value) = given.take_any_case(name) else { continue };
        for metric in metrics(value) {
            let part = NAMES.iter().find(|(name, _)| metric.name.eq_ignore_ascii_case(name)).map(|(_, part)| *part);
            if let Some((part, time)) = part.zip(fields::time(metric.millis)) {
                timing.add(part, time);
            }
        }
    }
    given.left()
}

/// A metric with a duration; those without one tell no time.
#[derive(Debug, PartialEq)]
struct Metric {
    name: String,
    millis: f64,
}

/// A text is a header's value; a list holds texts, or the entries of a browser's `PerformanceServerTiming`.
fn metrics(value: Value) -> Vec<Metric> {
    match value {
        Value::String(header) => split(&header, ',').filter_map(metric).collect(),
        Value::Array(list) => list.into_iter().flat_map(metrics).collect(),
        Value::Object(entry) => {
            let name = entry.get("name").and_then(Value::as_str).map(str::to_owned);
            let millis = entry.get("duration").or_else(|| entry.get("dur")).and_then(Value::as_f64);
            name.zip(millis).map(|(name, millis)| Metric { name, millis }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn metric(text: &str) -> Option<Metric> {
    let mut parts = split(text, ';').map(str::trim);
    let name = parts.next()?.to_owned();
    let millis = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        key.trim().eq_ignore_ascii_case("dur").then(|| value.parse().ok()).flatten()
    })?;
    Some(Metric { name, millis })
}

/// The parts between signs that do not stand in quotation marks.
fn split(text: &str, sign: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |letter| {
        let after_backslash = std::mem::take(&mut escaped);
        match letter {
            '"' if !after_backslash => quoted = !quoted,
            '\\' if quoted && !after_backslash => escaped = true,
            _ => {}
        }
        letter == sign && !quoted
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Vec<(String, f64)> {
        metrics(value).into_iter().map(|metric| (metric.name, metric.millis)).collect()
    }

    #[test]
    fn a_header_is_split_outside_quotation_marks() {
        let header = r#"queue;desc="a, b;dur=9 \" x";dur=12.5, miss, generation ; DUR="830" ,x;dur=soon"#;
        assert_eq!(read(json!(header)), [("queue".to_owned(), 12.5), ("generation".to_owned(), 830.0)]);
    }

    #[test]
    fn lists_hold_texts_or_entries() {
        let list = json!(["auth;dur=1", {"name": "queue", "duration": 2.5, "description": ""}, {"name": "x"}, 7]);
        assert_eq!(read(list), [("auth".to_owned(), 1.0), ("queue".to_owned(), 2.5)]);
    }
}
