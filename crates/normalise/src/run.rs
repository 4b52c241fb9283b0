//! What may be kept of a run: its name, and the settings of its load generator.

use serde_json::{Map, Value};

use super::rules::is_content;
use super::text::{self, MAX_TEXT};

/// Why a run's name or configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A name that no record's label `run` can have.
    #[error("is no name of a run; give 1 to {MAX_TEXT} bytes without control characters, mail addresses and keys")]
    Name,
    /// A configuration that is no object.
    #[error("the configuration is not a JSON object; give one, such as {{\"rate\": 20}}")]
    NotAnObject,
    /// A field whose name promises what must never be kept.
    #[error(
        "{0} holds prompts, answers, addresses or credentials, which are never stored; leave it out, or give a number, \
         an id or a class instead"
    )]
    Content(String),
    /// A text that is no setting.
    #[error("{field} has {bytes} bytes; a setting has at most {MAX_TEXT}")]
    LongText {
        field: String,
        /// How long.
        bytes: usize,
    },
}

/// Checks a run's name: as records carry it, so that it is found under it.
///
/// # Errors
/// [`RunError::Name`].
pub fn run_name(raw: &str) -> Result<&str, RunError> {
    let kept = text::value(raw).text == raw && !raw.is_empty() && !raw.chars().any(char::is_control);
    if kept { Ok(raw) } else { Err(RunError::Name) }
}

/// A run's configuration as it is kept: without anything that looks like a key or a mail address.
///
/// # Errors
/// The first field that must not be kept.
pub fn run_configuration(raw: Value) -> Result<Value, RunError> {
    match raw {
        Value::Object(fields) => clean_fields(fields, ""),
        _ => Err(RunError::NotAnObject),
    }
}

fn clean_fields(fields: Map<String, Value>, path: &str) -> Result<Value, RunError> {
    let mut kept = Map::new();
    for (name, value) in fields {
        let shown = text::value(&name).text;
        let field = if path.is_empty() { shown.clone() } else { format!("{path}.{shown}") };
        if is_content(&name) || shown != name {
            return Err(RunError::Content(field));
        }
        kept.insert(name, clean(value, &field)?);
    }
    Ok(Value::Object(kept))
}

fn clean(value: Value, path: &str) -> Result<Value, RunError> {
    match value {
        Value::Object(fields) => clean_fields(fields, path),
        Value::Array(items) => {
            let items = items.into_iter().enumerate().map(|(i, item)| clean(item, &format!("{path}[{i}]")));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Value::String(text) if text.len() > MAX_TEXT => {
            Err(RunError::LongText { field: path.to_owned(), bytes: text.len() })
        }
        Value::String(text) => Ok(Value::String(text::value(&text).text)),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_kept_as_they_are() {
        let settings = json!({
            "executor": "constant-arrival-rate", "rate": 20, "stages": [{"duration": "5m", "target": 50}],
            "max_tokens": 256, "input_tokens": [128, 512], "prompt_count": 40, "warm": true, "seed": null,
        });
        assert_eq!(run_configuration(settings.clone()), Ok(settings));
    }

    #[test]
    fn names_that_promise_content_or_credentials_are_refused_with_their_path() {
        for (raw, path) in [
            (json!({"prompt": "hi"}), "prompt"),
            (json!({"stages": [{"body": {}}]}), "stages[0].body"),
            (json!({"http": {"Authorization": "x"}}), "http.Authorization"),
            (json!({"apiKey": "x"}), "apiKey"),
            (json!({"gen_ai.input.messages": []}), "gen_ai.input.messages"),
            (json!({"owner joe@example.com": 1}), "owner [redacted]"),
        ] {
            assert_eq!(run_configuration(raw), Err(RunError::Content(path.to_owned())));
        }
    }

    #[test]
    fn texts_lose_keys_and_addresses_and_may_not_be_long() {
        let raw = json!({"args": ["--key sk-proj-abc123DEF456", "mail joe@example.org"]});
        assert_eq!(run_configuration(raw), Ok(json!({"args": ["--key [redacted]", "mail [redacted]"]})));
        let long = run_configuration(json!({"a": {"b": "x".repeat(257)}})).expect_err("too long");
        assert_eq!(long, RunError::LongText { field: "a.b".to_owned(), bytes: 257 });
        assert_eq!(run_configuration(json!([1])), Err(RunError::NotAnObject));
    }

    #[test]
    fn a_name_is_one_that_a_label_can_be() {
        assert_eq!(run_name("nightly 2026-11-30/4"), Ok("nightly 2026-11-30/4"));
        for name in ["", "a\nb", "joe@example.com", &"x".repeat(257)] {
            assert_eq!(run_name(name), Err(RunError::Name), "{name:?}");
        }
    }
}
