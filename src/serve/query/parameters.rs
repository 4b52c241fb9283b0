//! The raw parameters of a query, checked for unknown and repeated names.

use std::fmt::Display;
use std::ops::RangeInclusive;

use utoipa::IntoParams;

use crate::serve::error::ApiError;

/// The parameters of one query, all of known names.
#[derive(Debug, Default)]
pub struct Parameters {
    pairs: Vec<(String, String)>,
}

/// The names of the parameters that a struct documents.
pub fn names<P: IntoParams>() -> Vec<String> {
    P::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
}

impl Parameters {
    /// Reads the text after the question mark. `known` is the names that the resource takes.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a name that is not known, with the nearest that is.
    pub fn read(raw: Option<&str>, known: &[Vec<String>]) -> Result<Self, ApiError> {
        let known: Vec<&String> = known.iter().flatten().collect();
        let mut pairs = Vec::new();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            if !known.iter().any(|known| **known == name) {
                return Err(unknown(&name, &known));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { pairs })
    }

    /// All values of a parameter, in their order; none may be empty.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for an empty one.
    pub fn all(&self, name: &str) -> Result<Vec<&str>, ApiError> {
        let values: Vec<&str> =
            self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
        if values.iter().any(|value| value.is_empty()) {
            return Err(ApiError::parameter(name, format!("{name} is empty; give it a value or leave it out")));
        }
        Ok(values)
    }

    /// The one value of a parameter.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] where it is empty or given more than once.
    pub fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.all(name)?.as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            values => {
                let detail = format!("{name} is given {} times; give it once", values.len());
                Err(ApiError::parameter(name, detail))
            }
        }
    }

    /// All members of a parameter whose values are comma-separated lists.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for an empty value or member.
    pub fn list(&self, name: &str) -> Result<Vec<&str>, ApiError> {
        let members: Vec<&str> =
            self.all(name)?.into_iter().flat_map(|value| value.split(',')).map(str::trim).collect();
        if members.iter().any(|member| member.is_empty()) {
            let detail = format!("{name} has an empty member; separate its members by single commas");
            return Err(ApiError::parameter(name, detail));
        }
        Ok(members)
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] where it is not a number, or out of bounds.
    pub fn number(&self, name: &str, bounds: RangeInclusive<u32>) -> Result<Option<u32>, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        match text.parse() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => {
                let (least, most) = (bounds.start(), bounds.end());
                let detail = format!("{name} is {text:?}; give a whole number from {least} to {most}");
                Err(ApiError::parameter(name, detail))
            }
        }
    }
}

/// The refusal of a value that is none of those accepted.
pub(super) fn not_among(name: &str, got: &str, accepted: impl IntoIterator<Item = impl Display>) -> ApiError {
    let accepted: Vec<String> = accepted.into_iter().map(|value| value.to_string()).collect();
    let detail = format!("{name} is {got:?}; give one of {}", accepted.join(", "));
    ApiError::Parameter { name: name.to_owned(), detail, accepted }
}

fn unknown(name: &str, known: &[&String]) -> ApiError {
    let accepted: Vec<String> = known.iter().map(|name| (*name).clone()).collect();
    if accepted.is_empty() {
        let detail = format!("there is no parameter {name:?} here; this resource takes none");
        return ApiError::Parameter { name: name.to_owned(), detail, accepted };
    }
    let detail = match nearest(name, known) {
        Some(near) => format!("there is no parameter {name:?} here; did you mean {near:?}?"),
        None => format!("there is no parameter {name:?} here; give any of {}", accepted.join(", ")),
    };
    ApiError::Parameter { name: name.to_owned(), detail, accepted }
}

/// The known name most like one that is not known, if any is near.
fn nearest<'a>(name: &str, known: &[&'a String]) -> Option<&'a str> {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Vec<String>> {
        vec![vec!["from".into(), "to".into()], vec!["group_by".into(), "limit".into()]]
    }

    fn read(raw: &str) -> Parameters {
        Parameters::read(Some(raw), &known()).expect("known names")
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = Parameters::read(Some("groupby=model"), &known()).expect_err("no such name");
        assert_eq!(error.to_string(), "there is no parameter \"groupby\" here; did you mean \"group_by\"?");
        let error = Parameters::read(Some("zzz=1"), &known()).expect_err("no such name");
        assert_eq!(error.to_string(), "there is no parameter \"zzz\" here; give any of from, to, group_by, limit");
        let error = Parameters::read(Some("a"), &[]).expect_err("no names at all");
        assert!(error.to_string().ends_with("this resource takes none"));
    }

    #[test]
    fn lists_may_be_repeated_or_separated_by_commas() {
        let parameters = read("group_by=model,pool&group_by=run");
        assert_eq!(parameters.list("group_by").expect("a list"), ["model", "pool", "run"]);
        assert!(read("group_by=model,,pool").list("group_by").is_err());
    }

    #[test]
    fn a_single_value_given_twice_or_empty_is_refused() {
        assert!(read("from=-1h&from=-2h").one("from").is_err());
        assert!(read("from=").one("from").is_err());
        assert_eq!(read("to=now").one("from").expect("absent"), None);
    }

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(read("limit=10").number("limit", 1..=100).expect("within"), Some(10));
        let error = read("limit=101").number("limit", 1..=100).expect_err("over");
        assert_eq!(error.to_string(), "limit is \"101\"; give a whole number from 1 to 100");
    }
}
