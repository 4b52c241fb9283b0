//! A JSON object that is read field by field; what is left at the end is what no record has.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::FieldError;
use crate::{scalar, text};
use model::Nanos;

/// No request lasts longer; a larger number is in another unit.
const MAX_MILLIS: f64 = 7.0 * 24.0 * 3600.0 * 1000.0;

/// The year 2100: a larger reading is in another unit.
const MAX_CLOCK_MILLIS: f64 = 4_102_444_800_000.0;

/// Of a value that is at fault, so much is said.
const SHOWN: usize = 40;

/// The fields of one object that have not been read yet.
pub struct Fields {
    prefix: &'static str,
    map: Map<String, Value>,
    ignored: u64,
}

impl Fields {
    /// The fields of an object; `expected` says what it should be.
    pub fn parse(raw: &RawValue, expected: &str) -> Result<Self, FieldError> {
        match serde_json::from_str(raw.get()) {
            Ok(Value::Object(map)) => Ok(Self { prefix: "", map, ignored: 0 }),
            Ok(_) => Err(FieldError::new("", expected)),
            Err(error) => Err(FieldError::new("", format!("is not valid JSON: {error}"))),
        }
    }

    /// The name under which a field is known to the sender.
    pub fn path(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }

    /// An error of one field.
    pub fn error(&self, name: &str, reason: impl Into<String>) -> FieldError {
        FieldError::new(self.path(name), reason)
    }

    /// How many fields were left over, those handed in by [`Fields::absorb`] included.
    pub fn ignored(self) -> u64 {
        self.ignored + self.map.len() as u64
    }

    /// Counts what a nested object left over.
    pub fn absorb(&mut self, nested: Self) {
        self.ignored += nested.ignored();
    }

    /// The value of a field; `null` is the same as absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// A nested object.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Self>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { prefix: name, map, ignored: 0 })),
            Some(other) => Err(self.error(name, format!("is {}, must be an object", shown(&other)))),
        }
    }

    /// A duration in milliseconds.
    pub fn millis(&mut self, name: &str) -> Result<Option<Nanos>, FieldError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let Some(millis) = number(&value) else {
            return Err(self.error(name, format!("is {}, must be a number of milliseconds", shown(&value))));
        };
        let reason = if !millis.is_finite() {
            "is not a finite number; leave it out where the time is unknown".to_owned()
        } else if millis < 0.0 {
            format!("is {millis} ms, a duration cannot be negative; measure with a monotonic clock, or leave it out")
        } else if millis > MAX_MILLIS {
            format!("is {millis} ms, over the limit of {MAX_MILLIS} ms (7 days); check that the unit is milliseconds")
        } else {
            return Ok(Nanos::from_millis(millis));
        };
        Err(self.error(name, reason))
    }

    /// The value of a field whose name is written in any case, as headers are.
    pub fn take_any_case(&mut self, name: &str) -> Option<Value> {
        let written = self.map.keys().find(|key| key.eq_ignore_ascii_case(name))?.clone();
        self.take(&written)
    }

    /// A number under a name of any case; what is none is missing.
    pub fn lenient_number(&mut self, name: &str) -> Option<f64> {
        number(&self.take_any_case(name)?)
    }

    /// The reading of a clock in milliseconds, from whatever zero.
    pub fn clock(&mut self, name: &str) -> Result<Option<Nanos>, FieldError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let Some(millis) = number(&value) else {
            return Err(self.error(name, format!("is {}, must be a number of milliseconds", shown(&value))));
        };
        if millis.is_finite() && (0.0..=MAX_CLOCK_MILLIS).contains(&millis) {
            // As one product, times since 1970 would lose some hundred nanoseconds.
            let whole = Nanos(millis.trunc() as i64 * 1_000_000);
            return Ok(Nanos::from_millis(millis.fract()).map(|rest| whole + rest));
        }
        let reason = format!(
            "is {millis} ms, must lie between 0 and {MAX_CLOCK_MILLIS}; send milliseconds of one clock for all lines, \
             since 1970 or since any other start"
        );
        Err(self.error(name, reason))
    }

    /// A whole number that is not negative.
    pub fn count(&mut self, name: &str) -> Result<Option<i64>, FieldError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = number(&value).filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
        match whole {
            Some(number) => Ok(Some(number as i64)),
            None => Err(self.error(name, format!("is {}, must be a whole number from 0 on", shown(&value)))),
        }
    }

    /// A boolean.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, FieldError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let bool = match &value {
            Value::Bool(bool) => Some(*bool),
            Value::String(text) => scalar::boolean_text(text),
            Value::Number(number) if number.as_i64() == Some(0) => Some(false),
            Value::Number(number) if number.as_i64() == Some(1) => Some(true),
            _ => None,
        };
        match bool {
            Some(bool) => Ok(Some(bool)),
            None => Err(self.error(name, format!("is {}, must be true or false", shown(&value)))),
        }
    }

    /// A text as it was sent; a number or boolean as it is written. An empty one is absent.
    pub fn raw_text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        let text = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(bool)) => bool.to_string(),
            Some(other) => return Err(self.error(name, format!("is {}, must be a text", shown(&other)))),
        };
        Ok((!text.trim().is_empty()).then_some(text))
    }

    /// A text that may be stored.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        Ok(self.raw_text(name)?.map(|raw| text::value(raw.trim()).text))
    }
}

/// A number of milliseconds as a time; a negative, infinite or huge one means that it is missing.
pub fn time(millis: f64) -> Option<Nanos> {
    (0.0..=MAX_MILLIS).contains(&millis).then(|| Nanos::from_millis(millis)).flatten()
}

/// A number, also where it is written as a text.
fn number(value: &Value) -> Option<f64> {
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
