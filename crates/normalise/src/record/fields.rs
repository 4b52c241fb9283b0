//! A JSON object that is read field by field; what is left at the end is what no line has.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::FieldError;
use super::body::object;
use super::wire::{Count, Field, MAX_MILLIS, Millis, Wire, number};
use model::Nanos;

/// The year 2100: a larger reading is in another unit.
const MAX_CLOCK_MILLIS: f64 = 4_102_444_800_000.0;

/// The fields of one object that have not been read yet.
pub struct Fields {
    prefix: &'static str,
    map: Map<String, Value>,
}

impl Fields {
    /// The fields of an object; `expected` says what it should be.
    pub fn parse(raw: &RawValue, expected: &str) -> Result<Self, FieldError> {
        Ok(Self { prefix: "", map: object(raw, expected)? })
    }

    /// Those of the object that a record has under `name`.
    pub fn nested(name: &'static str, map: Map<String, Value>) -> Self {
        Self { prefix: name, map }
    }

    fn path(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }

    /// An error of one field.
    pub fn error(&self, name: &str, reason: impl Into<String>) -> FieldError {
        FieldError::new(self.path(name), reason)
    }

    /// How many fields are left.
    pub fn left(&self) -> u64 {
        self.map.len() as u64
    }

    /// The value of a field; `null` is the same as absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// A field whose type is checked where it is used.
    pub fn field<T: Wire>(&mut self, name: &str) -> Field<T> {
        Field::take(&mut self.map, name)
    }

    /// A nested object.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Self>, FieldError> {
        let map = self.field::<Map<String, Value>>(name).value(&self.path(name))?;
        Ok(map.map(|map| Self::nested(name, map)))
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
        let Some(Millis(millis)) = self.field(name).value(&self.path(name))? else { return Ok(None) };
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
        self.field::<Count>(name).count(&self.path(name))
    }

    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, FieldError> {
        self.field(name).value(&self.path(name))
    }

    /// A text as it was sent; a number or boolean as it is written. An empty one is absent.
    pub fn raw_text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        self.field::<String>(name).raw_text(&self.path(name))
    }
}

/// A number of milliseconds as a time; a negative, infinite or huge one means that it is missing.
pub fn time(millis: f64) -> Option<Nanos> {
    (0.0..=MAX_MILLIS).contains(&millis).then(|| Nanos::from_millis(millis)).flatten()
}
