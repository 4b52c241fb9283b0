//! Fields as senders write them: a number or boolean may be written as a text, and what is neither stays as it came, so
//! that it is refused under its name.

use std::fmt::Debug;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use super::FieldError;
use crate::{scalar, text};
use model::Nanos;

/// No request lasts longer; a larger number is in another unit.
pub(super) const MAX_MILLIS: f64 = 7.0 * 24.0 * 3600.0 * 1000.0;
/// Counts stay below it, so that each is exact as a JSON number.
const COUNTS_BELOW: f64 = 1e15;
/// The longest part of a faulty value that an error shows, in bytes.
const SHOWN: usize = 40;

/// A type of fields.
pub trait Wire: Sized {
    /// What a value must be, for the error about one that is not.
    const EXPECTED: &'static str;

    /// Reads a value that is not null.
    ///
    /// # Errors
    /// The value itself, where it is of another type.
    fn read(value: Value) -> Result<Self, Value>;

    /// Its schema; objects refer to their component.
    fn field_schema() -> RefOr<Schema>;

    /// Adds the components that the schema refers to.
    fn components(_: &mut Vec<(String, RefOr<Schema>)>) {}
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Field<T> {
    /// Left out, or null.
    #[default]
    Absent,
    /// A value of the field's type.
    Known(T),
    /// A value of another type.
    Wrong(Value),
}

impl<T: Wire> Field<T> {
    /// Takes a field out of an object.
    pub(crate) fn take(map: &mut Map<String, Value>, name: &str) -> Self {
        match map.remove(name) {
            None | Some(Value::Null) => Self::Absent,
            Some(value) => T::read(value).map_or_else(Self::Wrong, Self::Known),
        }
    }

    /// Takes the value out; `path` is the name under which the sender knows the field.
    ///
    /// # Errors
    /// A value of another type.
    pub(crate) fn value(&mut self, path: &str) -> Result<Option<T>, FieldError> {
        match std::mem::take(self) {
            Self::Absent => Ok(None),
            Self::Known(value) => Ok(Some(value)),
            Self::Wrong(value) => Err(FieldError::new(path, format!("is {}, must be {}", shown(&value), T::EXPECTED))),
        }
    }
}

impl<T> Field<T> {
    /// Whether it is left out.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T> From<Option<T>> for Field<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_unit(),
            Self::Known(value) => value.serialize(serializer),
            Self::Wrong(value) => value.serialize(serializer),
        }
    }
}

/// A duration in milliseconds; its range is checked where it is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Millis(pub f64);

impl Wire for Millis {
    const EXPECTED: &'static str = "a number of milliseconds";

    fn read(value: Value) -> Result<Self, Value> {
        number(&value).map(Self).ok_or(value)
    }

    fn field_schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Number);
        let format = Some(SchemaFormat::KnownFormat(KnownFormat::Double));
        number.format(format).minimum(Some(0.0)).maximum(Some(MAX_MILLIS)).into()
    }
}

impl Serialize for Millis {
    /// JSON has no number that is not finite: such a one is a text, which stays refused.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

impl Field<Millis> {
    /// The duration.
    ///
    /// # Errors
    /// A value that is no number, is not finite, is negative or is longer than any request.
    pub(crate) fn millis(&mut self, path: &str) -> Result<Option<Nanos>, FieldError> {
        let Some(Millis(millis)) = self.value(path)? else { return Ok(None) };
        let reason = if !millis.is_finite() {
            "is not a finite number; leave it out where the time is unknown".to_owned()
        } else if millis < 0.0 {
            format!("is {millis} ms, a duration cannot be negative; measure with a monotonic clock, or leave it out")
        } else if millis > MAX_MILLIS {
            format!("is {millis} ms, over the limit of {MAX_MILLIS} ms (7 days); check that the unit is milliseconds")
        } else {
            return Ok(Nanos::from_millis(millis));
        };
        Err(FieldError::new(path, reason))
    }
}

/// A whole number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Count(i64);

impl Wire for Count {
    const EXPECTED: &'static str = "a whole number from 0 on";

    fn read(value: Value) -> Result<Self, Value> {
        let whole = number(&value).filter(|number| number.fract() == 0.0 && (0.0..COUNTS_BELOW).contains(number));
        whole.map(|number| Self(number as i64)).ok_or(value)
    }

    fn field_schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))).minimum(Some(0)).into()
    }
}

impl Field<Count> {
    /// From a number that need not be a count.
    pub fn of_number(number: Option<i64>) -> Self {
        number.map_or(Self::Absent, |number| Count::read(number.into()).map_or_else(Self::Wrong, Self::Known))
    }

    pub(crate) fn count(&mut self, path: &str) -> Result<Option<i64>, FieldError> {
        Ok(self.value(path)?.map(|Count(count)| count))
    }
}

impl Wire for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: Value) -> Result<Self, Value> {
        let read = match &value {
            Value::Bool(bool) => Some(*bool),
            Value::String(text) => scalar::boolean_text(text),
            Value::Number(number) if number.as_i64() == Some(0) => Some(false),
            Value::Number(number) if number.as_i64() == Some(1) => Some(true),
            _ => None,
        };
        read.ok_or(value)
    }

    fn field_schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}

impl Wire for String {
    const EXPECTED: &'static str = "a text";

    /// A number or boolean as it is written.
    fn read(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(text) => Ok(text),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(bool) => Ok(bool.to_string()),
            other => Err(other),
        }
    }

    fn field_schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).into()
    }
}

impl Field<String> {
    /// The text as it was sent; an empty one is absent.
    pub(crate) fn raw_text(&mut self, path: &str) -> Result<Option<String>, FieldError> {
        Ok(self.value(path)?.filter(|text| !text.trim().is_empty()))
    }

    /// A text that may be stored.
    pub(crate) fn text(&mut self, path: &str) -> Result<Option<String>, FieldError> {
        Ok(self.raw_text(path)?.map(|raw| text::value(raw.trim()).text))
    }
}

impl Wire for Map<String, Value> {
    const EXPECTED: &'static str = "an object";

    fn read(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(map) => Ok(map),
            other => Err(other),
        }
    }

    fn field_schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Object).into()
    }
}

/// A number, also where it is written as a text.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A value for an error: bounded, and free of what must not reach a log.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(raw) => format!("\"{}\"", text::cut(&text::name(raw).text, SHOWN)),
        other => other.to_string(),
    }
}
