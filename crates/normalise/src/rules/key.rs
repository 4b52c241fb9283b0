//! Attribute keys that rules may name: what holds words of people or keys to a house is refused.

use serde::Deserialize;

/// The longest key or event name, in bytes.
const LONGEST: usize = 256;

/// Keys that are known to hold what people and models wrote, or where they went; what follows after a dot or an index
/// is refused with them.
const CONTENT: &[&str] = &[
    "ai.prompt",
    "ai.response.text",
    "db.statement",
    "db.query.text",
    "enduser",
    "exception.message",
    "gen_ai.completion",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "http.target",
    "http.url",
    "input.value",
    "llm.input_messages",
    "llm.output_messages",
    "llm.prompts",
    "llm.completions",
    "output.value",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "url.full",
    "url.query",
    "user.email",
];

/// Words that tell that a value is content or a secret, unless the key ends in a measure.
const TELLTALES: &[&str] = &[
    "answer",
    "answers",
    "apikey",
    "arguments",
    "authorization",
    "bearer",
    "body",
    "completion",
    "completions",
    "content",
    "cookie",
    "credential",
    "credentials",
    "delta",
    "email",
    "input",
    "instructions",
    "mail",
    "message",
    "messages",
    "output",
    "passwd",
    "password",
    "prompt",
    "prompts",
    "query",
    "question",
    "reply",
    "secret",
    "text",
    "token",
    "transcript",
    "uri",
    "url",
];

/// Last words of keys whose values are numbers or names of a few values.
const MEASURES: &[&str] = &[
    "count", "duration", "id", "kind", "latency", "length", "millis", "ms", "n", "ns", "s", "seconds", "size", "time",
    "tokens", "type", "us",
];

/// Why a text is no key for a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is empty or too long.
    #[error("has {0} bytes; give the name of an attribute, of 1 to {LONGEST} bytes")]
    Length(usize),
    /// It holds content or a secret.
    #[error(
        "{0:?} holds prompts, answers, addresses or credentials, which are never stored; name an attribute with a \
         number, an id or a class instead"
    )]
    Content(String),
}

/// The key of an attribute that may be stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Key(String);

impl Key {
    /// The key as it is written on spans.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        if text.is_empty() || text.len() > LONGEST {
            return Err(KeyError::Length(text.len()));
        }
        if is_content(&text) { Err(KeyError::Content(text)) } else { Ok(Self(text)) }
    }
}

/// Whether an attribute or a setting by this name would hold what must never be stored.
pub(crate) fn is_content(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let known = |content: &&str| match lower.strip_prefix(*content) {
        Some(rest) => rest.is_empty() || rest.starts_with(['.', '[']),
        None => false,
    };
    if CONTENT.iter().any(known) {
        return true;
    }
    let words = words(key);
    let measured = words.last().is_some_and(|last| MEASURES.contains(&last.as_str()));
    let pairs = words.windows(2).any(|pair| matches!([&*pair[0], &*pair[1]], ["api" | "access" | "private", "key"]));
    pairs || (!measured && words.iter().any(|word| TELLTALES.contains(&word.as_str())))
}

/// The words of a key in lower case, apart at signs and where a capital follows a small letter.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in key.chars() {
        let apart = !letter.is_alphanumeric();
        if apart || (letter.is_uppercase() && after_small) {
            words.push(String::new());
        }
        if let (false, Some(word)) = (apart, words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name of an event. Of an event its name and time are kept, never its attributes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct EventName(String);

impl EventName {
    /// The name as it is written on spans.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EventName {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        if text.is_empty() || text.len() > LONGEST {
            return Err(KeyError::Length(text.len()));
        }
        Ok(Self(text))
    }
}

/// One key, or several of which the first that is there decides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The keys, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }
}

impl TryFrom<serde_json::Value> for Keys {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let key = |value| match value {
            serde_json::Value::String(text) => Key::try_from(text).map_err(|error| error.to_string()),
            _ => Err("is not the name of an attribute; give a text, or a list of texts".to_owned()),
        };
        match value {
            serde_json::Value::Array(list) => list.into_iter().map(key).collect::<Result<_, _>>().map(Self),
            one => key(one).map(|key| Self(vec![key])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_credentials_are_refused() {
        for key in [
            "gen_ai.input.messages",
            "gen_ai.prompt",
            "gen_ai.prompt.0.content",
            "gen_ai.completion.0.content",
            "input.value",
            "llm.input_messages.0.message.content",
            "llm.prompts",
            "http.request.header.authorization",
            "http.request.header.x-api-key",
            "acme.userPrompt",
            "acme.request.body",
            "acme.question",
            "acme.input",
            "auth.token",
            "upstream.url",
            "user.email",
            "url.full",
            "Cookie",
        ] {
            assert_eq!(Key::try_from(key.to_owned()), Err(KeyError::Content(key.to_owned())), "{key}");
        }
        assert_eq!(Key::try_from(String::new()), Err(KeyError::Length(0)));
        assert_eq!(Key::try_from("x".repeat(300)), Err(KeyError::Length(300)));
    }

    #[test]
    fn numbers_about_content_are_taken() {
        for key in [
            "acme.prompt_tokens",
            "acme.promptEvalMs",
            "acme.completion.time",
            "acme.message_id",
            "acme.kind",
            "acme.first_token_ms",
            "acme.input_tokens",
        ] {
            assert_eq!(Key::try_from(key.to_owned()).map(|key| key.0), Ok(key.to_owned()), "{key}");
        }
    }
}
