//! Lenient reading of attribute values: systems write numbers as texts, booleans as texts, lists as JSON in a text and
//! durations in the form that Rust prints them.

use std::borrow::Cow;

use model::{Nanos, Value};

/// A finite number, also where it is written as a text.
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(int) => *int as f64,
        Value::Double(double) => *double,
        Value::Str(text) => text.trim().parse().ok()?,
        Value::Bool(_) | Value::List(_) => return None,
    };
    number.is_finite().then_some(number)
}

/// A whole number that is not negative, such as a count or a status; a fraction is cut off.
pub fn count(value: &Value) -> Option<i64> {
    if let Value::Int(int) = value {
        return (*int >= 0).then_some(*int);
    }
    let number = number(value)?;
    // Up to 2^53 every whole number is exact in a double.
    (0.0..=9_007_199_254_740_992.0).contains(&number).then_some(number as i64)
}

/// A boolean, also as a text of any case or as 0 and 1.
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(bool) => Some(*bool),
        Value::Int(0) => Some(false),
        Value::Int(1) => Some(true),
        Value::Str(text) => boolean_text(text),
        _ => None,
    }
}

/// A boolean written as a text.
pub fn boolean_text(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// A text that is not empty; of a list, also one in JSON, the first member; a number or boolean as it is written.
pub fn text(value: &Value) -> Option<Cow<'_, str>> {
    let text = match value {
        Value::Str(text) => match json_list(text) {
            Some(list) => Cow::Owned(list.into_iter().next()?),
            None => Cow::Borrowed(text.trim()),
        },
        Value::Bool(bool) => Cow::Borrowed(if *bool { "true" } else { "false" }),
        Value::Int(int) => Cow::Owned(int.to_string()),
        Value::Double(double) => Cow::Owned(double.to_string()),
        Value::List(list) => Cow::Borrowed(list.first()?.trim()),
    };
    (!text.is_empty()).then_some(text)
}

fn json_list(text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// A duration in seconds, or a text with its own unit. Negative and infinite ones mean missing.
pub fn seconds(value: &Value) -> Option<Nanos> {
    duration(value, 1e9)
}

/// A duration in milliseconds, or a text with its own unit. Negative and infinite ones mean missing.
pub fn millis(value: &Value) -> Option<Nanos> {
    duration(value, 1e6)
}

/// A duration in units of so many nanoseconds, or a text with its own unit. Negative and infinite ones mean missing.
pub fn duration(value: &Value, nanos_per_unit: f64) -> Option<Nanos> {
    if let Some(number) = number(value) {
        return nanos(number, nanos_per_unit);
    }
    let Value::Str(text) = value else { return None };
    duration_text(text)
}

/// A duration as Rust prints it: `1.5s`, `12.3ms`, `7µs`, `42ns`; both micro signs and `us` are known.
pub fn duration_text(text: &str) -> Option<Nanos> {
    // The longer units come first, since every unit ends in `s`. U+00B5 is the micro sign, U+03BC the Greek letter.
    const UNITS: [(&str, f64); 6] =
        [("ms", 1e6), ("\u{b5}s", 1e3), ("\u{3bc}s", 1e3), ("us", 1e3), ("ns", 1.0), ("s", 1e9)];
    let text = text.trim();
    for (unit, nanos_per_unit) in UNITS {
        if let Some(number) = text.strip_suffix(unit) {
            return nanos(number.trim_end().parse().ok()?, nanos_per_unit);
        }
    }
    None
}

fn nanos(number: f64, nanos_per_unit: f64) -> Option<Nanos> {
    if number < 0.0 {
        return None;
    }
    Nanos::from_secs(number * nanos_per_unit / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn str(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    #[test]
    fn durations_with_a_unit() {
        for (text, nanos) in [
            ("1.5s", 1_500_000_000),
            ("1.595s", 1_595_000_000),
            ("212.5ms", 212_500_000),
            ("7\u{b5}s", 7_000),
            ("7\u{3bc}s", 7_000),
            ("800us", 800_000),
            ("42ns", 42),
        ] {
            assert_eq!(duration_text(text), Some(Nanos(nanos)), "{text}");
        }
        for text in ["", "s", "1.5", "-3ms", "NaNs", "infs", "1h"] {
            assert_eq!(duration_text(text), None, "{text}");
        }
    }

    #[test]
    fn missing_is_not_zero() {
        for value in [Value::Double(-1.0), Value::Double(f64::NAN), Value::Double(f64::INFINITY), Value::Int(-1)] {
            assert_eq!(seconds(&value), None);
        }
        assert_eq!(seconds(&str("0.25")), Some(Nanos(250_000_000)));
        assert_eq!(seconds(&Value::Int(0)), Some(Nanos::ZERO));
        assert_eq!(millis(&Value::Double(1.5)), Some(Nanos(1_500_000)));
    }

    #[test]
    fn counts_booleans_and_lists() {
        assert_eq!(count(&str("200")), Some(200));
        assert_eq!(count(&Value::Double(12.0)), Some(12));
        assert_eq!(count(&Value::Int(-1)), None);
        assert_eq!(boolean(&str("True")), Some(true));
        assert_eq!(boolean(&str("maybe")), None);
        assert_eq!(text(&str("[\"stop\"]")).as_deref(), Some("stop"));
        assert_eq!(text(&Value::List(vec!["a".to_owned()])).as_deref(), Some("a"));
        assert_eq!(text(&str("[TP 0]")).as_deref(), Some("[TP 0]"));
        assert_eq!(text(&str(" ")), None);
    }
}
