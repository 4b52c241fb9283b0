//! A document as a tree of values that know where they stand.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, NonFiniteFloatPolicy, Options, Spanned, options};

use super::error::DocumentError;

/// A value and its place.
pub(super) type Node = Spanned<Value>;

/// What can stand in a document.
#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, or `null`.
    Nothing,
    /// True or false.
    Flag(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Names with values, in their order.
    Mapping(Vec<(Spanned<String>, Node)>),
}

impl Value {
    /// What it is, for a person.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// The documents of a text; empty ones are passed over.
///
/// # Errors
/// Where the text stops being YAML, and where it holds no document at all.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, DocumentError> {
    let documents: Vec<Node> = serde_saphyr::from_multiple_with_options(text, reading()).map_err(|error| {
        let error = error.without_snippet();
        let place = error.location().unwrap_or(Location::UNKNOWN);
        DocumentError::at(place, "", format!("cannot be read as YAML: {}; mend it there", one_line(error)))
    })?;
    if documents.is_empty() {
        return Err(DocumentError::at(Location::UNKNOWN, "", "holds no objective; give one, as in docs/slo.md"));
    }
    Ok(documents)
}

/// Texts that some readers take for numbers or truth values stay texts: `region: no`, `pool: 007`.
fn reading() -> Options {
    options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// What the reader says, without the place that stands before it already.
fn one_line(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return format!("{key} is given twice");
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let place = first.rfind(" at line ").unwrap_or(first.len());
    first[..place].to_owned()
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Flag(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Number(value as f64), Value::Whole))
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut mapping = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            mapping.push(entry);
        }
        Ok(Value::Mapping(mapping))
    }
}
