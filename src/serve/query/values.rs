//! The forms that a parameter's value takes, for `#[serde(deserialize_with)]`.
//!
//! An error leaves out the parameter's name, since the extractor puts it in front.

use serde::de::{Deserialize, Deserializer, Error};

/// A value given once at most, and not empty.
pub fn single<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let mut values = several(deserializer)?;
    match values.len() {
        0 | 1 => Ok(values.pop()),
        times => Err(D::Error::custom(format_args!("is given {times} times; give it once"))),
    }
}

/// Any number of values, in their order, none of them empty.
pub fn several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<String>::deserialize(deserializer)?;
    if values.iter().any(String::is_empty) {
        return Err(D::Error::custom("is empty; give it a value or leave it out"));
    }
    Ok(values)
}

/// The members of comma-separated lists, none of them empty; several lists are one.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = several(deserializer)?;
    let members: Vec<String> =
        values.iter().flat_map(|value| value.split(',')).map(|member| member.trim().to_owned()).collect();
    if members.iter().any(String::is_empty) {
        return Err(D::Error::custom("has an empty member; separate its members by single commas"));
    }
    Ok(members)
}

/// A whole number from `LEAST` to `MOST`, given once at most.
pub fn number<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let Some(text) = single(deserializer)? else { return Ok(None) };
    match text.parse() {
        Ok(number) if (LEAST..=MOST).contains(&number) => Ok(Some(number)),
        _ => Err(D::Error::custom(format_args!("is {text:?}; give a whole number from {LEAST} to {MOST}"))),
    }
}
