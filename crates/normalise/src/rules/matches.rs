//! Which spans a rule is about.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Key, Pattern};
use crate::scalar;
use model::{Span, SpanKind, Value};

/// What a span must be: all of what is given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matches {
    /// The instrumentation scope's name.
    pub scope: Option<Pattern>,
    /// The span's name.
    pub name: Option<Pattern>,
    /// The resource's `service.name`.
    pub service: Option<Pattern>,
    /// Its kind, or one of several.
    #[serde(default)]
    pub kind: Kinds,
    /// Attributes that are there, whatever they say.
    #[serde(default)]
    pub has: Vec<Key>,
    /// Attributes and what they say.
    #[serde(default)]
    pub attributes: BTreeMap<Key, Expected>,
}

impl Matches {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        let names = [&self.scope, &self.name, &self.service];
        names.into_iter().all(Option::is_none)
            && self.kind.0.is_empty()
            && self.has.is_empty()
            && self.attributes.is_empty()
    }

    /// Whether a span is all of what is asked. What is cheapest to tell is asked first.
    pub fn covers(&self, span: &Span) -> bool {
        let fits = |pattern: &Option<Pattern>, name: &str| pattern.as_ref().is_none_or(|pattern| pattern.fits(name));
        let says =
            |key: &Key, expected: &Expected| span.attributes.get(key.as_str()).is_some_and(|value| expected.is(value));
        (self.kind.0.is_empty() || self.kind.0.contains(&span.kind))
            && self.has.iter().all(|key| span.attributes.has(key.as_str()))
            && self.attributes.iter().all(|(key, expected)| says(key, expected))
            && fits(&self.name, &span.name)
            && fits(&self.scope, &span.scope.name)
            && (self.service.is_none() || fits(&self.service, &span.resource.service()))
    }

    /// The attributes that it looks at.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.has.iter().chain(self.attributes.keys())
    }
}

/// What an attribute must say. Numbers and booleans may be written as texts on the span.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum Expected {
    /// A text that fits.
    Text(Pattern),
    /// A boolean.
    Bool(bool),
    Number(f64),
}

impl Expected {
    fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(pattern) => scalar::text(value).is_some_and(|text| pattern.fits(&text)),
            Self::Bool(bool) => scalar::boolean(value) == Some(*bool),
            Self::Number(number) => scalar::number(value) == Some(*number),
        }
    }
}

impl TryFrom<serde_json::Value> for Expected {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let told = match value {
            serde_json::Value::String(text) => Some(Self::Text(Pattern::try_from(text).map_err(|e| e.to_string())?)),
            serde_json::Value::Bool(bool) => Some(Self::Bool(bool)),
            serde_json::Value::Number(number) => number.as_f64().map(Self::Number),
            _ => None,
        };
        told.ok_or_else(|| "is not a text, a number or a boolean; use has = [\"…\"] to ask for presence".to_owned())
    }
}

/// Span kinds, one or several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub struct Kinds(Vec<SpanKind>);

impl TryFrom<serde_json::Value> for Kinds {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let kind = |value: serde_json::Value| {
            let name = value.as_str().unwrap_or_default().to_ascii_lowercase();
            let known = (0..6).map(SpanKind::from_number).find(|kind| kind.name() == name);
            known.ok_or_else(|| {
                format!("{value} is no kind; give server, client, internal, producer, consumer or unspecified")
            })
        };
        match value {
            serde_json::Value::Array(list) => list.into_iter().map(kind).collect::<Result<_, _>>().map(Self),
            one => kind(one).map(|kind| Self(vec![kind])),
        }
    }
}
