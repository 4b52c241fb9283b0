//! Compares an answer with what a case wants of it: exactly, and by the keys that the case states.
//!
//! `flags_include` and `flags_exclude` speak of some of `flags`, `span_count` of the number of `spans`, and
//! `state_after_deadline` of `state` once it is settled. Every other key is one of the answer's own: it must be there, and
//! `null` is nothing but `null`. Lists are compared whole and in order. Keys that a case does not state may hold anything.

use serde_json::{Map, Number, Value};

/// Milliseconds by which a stated number may differ, for what decimal fractions lose in binary. From 1,000 on that is the
/// whole of it; below it shrinks with the number, down to a thousandth for numbers under 1.
const TOLERANCE: f64 = 1e-6;

/// Everything in `got` that differs from `wanted`, each with its path. An expectation that is not an object, or states
/// nothing, is a difference too.
pub fn differences(wanted: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match wanted {
        Value::Object(wanted) if !wanted.is_empty() => compare_object(wanted, got, "", &mut found),
        _ => found.push(format!("the expectation must be an object that states something, not {wanted}")),
    }
    found
}

/// Whether two numbers are as good as equal.
pub fn is_close(wanted: f64, got: f64) -> bool {
    (wanted - got).abs() <= (TOLERANCE * wanted.abs() / 1e3).clamp(TOLERANCE / 1e3, TOLERANCE)
}

/// A rate may be stated as rounded to four decimals, since few are decimal fractions.
fn is_equal(wanted: &Number, got: &Number, path: &str) -> bool {
    let (Some(stated), Some(got)) = (wanted.as_f64(), got.as_f64()) else { return wanted == got };
    let key = path.rsplit('.').next().unwrap_or_default();
    let decimals = wanted.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let rounded = key.starts_with("rate_") && decimals == 4;
    is_close(stated, if rounded { (got * 1e4).round() / 1e4 } else { got })
}

fn compare(wanted: &Value, got: &Value, path: &str, found: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), _) => compare_object(wanted, got, path, found),
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            for (at, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                compare(wanted, got, &format!("{path}[{at}]"), found);
            }
        }
        (Value::Number(wanted), Value::Number(got)) if is_equal(wanted, got, path) => {}
        _ if wanted == got => {}
        _ => found.push(format!("{path}: want {wanted}, got {got}")),
    }
}

fn compare_object(wanted: &Map<String, Value>, got: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(got) = got else {
        found.push(format!("{path}: want an object, got {got}"));
        return;
    };
    for (key, wanted) in wanted {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match key.as_str() {
            "flags_include" => compare_flags(wanted, got, true, &here, found),
            "flags_exclude" => compare_flags(wanted, got, false, &here, found),
            "span_count" => {
                let count = got.get("spans").and_then(Value::as_array).map(|spans| Value::from(spans.len()));
                compare(wanted, &count.unwrap_or_default(), &here, found);
                if !wanted.is_u64() {
                    found.push(format!("{here}: the expectation must be a count, not {wanted}"));
                }
            }
            "state_after_deadline" => {
                compare(wanted, got.get("state").unwrap_or(&Value::Null), &here, found);
                if !wanted.is_string() {
                    found.push(format!("{here}: the expectation must be a state, not {wanted}"));
                }
            }
            _ => match got.get(key) {
                Some(got) => compare(wanted, got, &here, found),
                None => found.push(format!("{here}: want {wanted}, but the key is missing")),
            },
        }
    }
}

fn compare_flags(wanted: &Value, got: &Map<String, Value>, present: bool, path: &str, found: &mut Vec<String>) {
    let Some(named) = wanted.as_array().filter(|named| named.iter().all(Value::is_string)) else {
        found.push(format!("{path}: the expectation must be a list of flags, not {wanted}"));
        return;
    };
    let Some(flags) = got.get("flags").and_then(Value::as_array) else {
        found.push(format!("{path}: want {wanted}, but there is no list of flags"));
        return;
    };
    for flag in named.iter().filter(|flag| flags.contains(flag) != present) {
        found.push(format!("{path}: {flag}, got {flags:?}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::differences;

    fn assert_right(wanted: Value, got: Value) {
        let found = differences(&wanted, &got);
        assert!(found.is_empty(), "{wanted} and {got}: {found:?}");
    }

    fn assert_wrong(wanted: Value, got: Value, path: &str) {
        let found = differences(&wanted, &got);
        assert!(found.len() == 1 && found[0].starts_with(path), "{wanted} and {got}: {found:?}");
    }

    #[test]
    fn numbers_are_equal_to_a_nanosecond() {
        assert_right(json!({"a_ms": 1842}), json!({"a_ms": 1842.0}));
        assert_right(json!({"a_ms": 0.3}), json!({"a_ms": 0.1 + 0.2}));
        assert_wrong(json!({"a_ms": 1842}), json!({"a_ms": 1842.18}), "a_ms:");
        assert_wrong(json!({"a_ms": 1842}), json!({"a_ms": 1842.000002}), "a_ms:");
        assert_wrong(json!({"a_ms": 0}), json!({"a_ms": 0.000001}), "a_ms:");
        assert_wrong(json!({"a_ms": 1}), json!({"a_ms": -1}), "a_ms:");
    }

    #[test]
    fn only_a_rate_may_be_stated_with_four_decimals() {
        let got = json!({"rate_e2e": 28e3 / 1290.7, "mean_ms": 28e3 / 1290.7});
        assert_right(json!({"rate_e2e": 28e3 / 1290.7}), got.clone());
        assert_right(json!({"rate_e2e": 21.6937}), got.clone());
        assert_wrong(json!({"rate_e2e": 21.6936}), got.clone(), "rate_e2e:");
        assert_wrong(json!({"rate_e2e": 21.69}), got.clone(), "rate_e2e:");
        assert_wrong(json!({"mean_ms": 21.6937}), got, "mean_ms:");
        assert_wrong(json!({"rate_e2e": 50}), json!({"rate_e2e": 50.00001}), "rate_e2e:");
    }

    #[test]
    fn null_is_null_and_a_missing_key_is_missing() {
        assert_right(json!({"a": null}), json!({"a": null}));
        assert_wrong(json!({"a": null}), json!({}), "a:");
        assert_wrong(json!({"a": null}), json!({"a": 0}), "a:");
        assert_wrong(json!({"a": 0}), json!({"a": null}), "a:");
        assert_wrong(json!({"a": {"b": null}}), json!({"a": {}}), "a.b:");
    }

    #[test]
    fn another_type_is_a_difference() {
        assert_wrong(json!({"a": 1}), json!({"a": "1"}), "a:");
        assert_wrong(json!({"a": 1}), json!({"a": true}), "a:");
        assert_wrong(json!({"a": {"b": 1}}), json!({"a": null}), "a:");
        assert_wrong(json!({"a": {}}), json!({"a": []}), "a:");
        assert_wrong(json!({"a": [1]}), json!({"a": {"0": 1}}), "a:");
        assert_wrong(json!({"a": 1}), json!([]), ":");
    }

    #[test]
    fn lists_are_compared_whole_and_in_order() {
        assert_right(json!({"a": [{"b": 1}, 2]}), json!({"a": [{"b": 1, "c": 3}, 2]}));
        assert_wrong(json!({"a": [1, 2]}), json!({"a": [1]}), "a:");
        assert_wrong(json!({"a": []}), json!({"a": [1]}), "a:");
        assert_wrong(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 2}]}), "a[0].b:");
        assert_wrong(json!({"flags": ["late"]}), json!({"flags": ["late", "headers_only"]}), "flags:");
    }

    #[test]
    fn keys_that_are_not_stated_may_hold_anything() {
        assert_right(json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3}));
    }

    #[test]
    fn flags_are_compared_in_part() {
        let got = json!({"flags": ["late", "headers_only"]});
        assert_right(json!({"flags_include": ["late"], "flags_exclude": ["clock_invalid"]}), got.clone());
        assert_wrong(json!({"flags_include": ["late", "clock_invalid"]}), got.clone(), "flags_include:");
        assert_wrong(json!({"flags_exclude": ["late"]}), got.clone(), "flags_exclude:");
        assert_wrong(json!({"flags_exclude": ["late"]}), json!({}), "flags_exclude:");
        assert_wrong(json!({"flags_include": []}), json!({"flags": null}), "flags_include:");
        assert_wrong(json!({"flags_include": "late"}), got.clone(), "flags_include:");
        assert_wrong(json!({"flags_exclude": [1]}), got, "flags_exclude:");
    }

    #[test]
    fn spans_are_counted_and_the_settled_state_is_the_state() {
        let got = json!({"spans": [{}, {}], "state": "matched"});
        assert_right(json!({"span_count": 2, "state_after_deadline": "matched"}), got.clone());
        assert_wrong(json!({"span_count": 3}), got.clone(), "span_count:");
        assert_wrong(json!({"span_count": 0}), json!({}), "span_count:");
        assert_wrong(json!({"span_count": null}), json!({}), "span_count:");
        assert_wrong(json!({"state_after_deadline": "pending"}), got, "state_after_deadline:");
        assert_wrong(json!({"state_after_deadline": null}), json!({}), "state_after_deadline:");
    }

    #[test]
    fn an_expectation_that_states_nothing_fails() {
        for wanted in [json!(null), json!([]), json!("matched"), json!(1), json!({})] {
            assert_wrong(wanted, json!({"state": "matched"}), "the expectation");
        }
    }
}
