//! The extractor of a query: one or several groups of parameters, each parsed and documented by one struct.

use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::serve::error::ApiError;

/// The parameters of one query. `P` is a tuple of groups, so that resources share the groups that they have in common;
/// `()` is a resource without parameters.
///
/// Fields are `snake_case` strings, numbers or lists, read by the functions of `super::values`: an error of theirs
/// continues the sentence that the parameter's name begins.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<P>(pub P);

impl<P: Groups> Parameters<P> {
    /// Reads the text after the question mark.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a name that no group documents, with the nearest that is; and for a value of the wrong
    /// form, or given too often.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        check_names(text, &P::names())?;
        Ok(Self(P::parse(text)?))
    }
}

impl<S: Sync, P: Groups> FromRequestParts<S> for Parameters<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

/// Groups of parameters that one query takes.
pub trait Groups: Sized {
    /// The documented names, in the order of the document.
    fn names() -> Vec<String>;

    /// Reads each group, and leaves the parameters of the others aside.
    ///
    /// # Errors
    /// [`ApiError::Parameter`] for a value of the wrong form, or given too often.
    fn parse(text: &str) -> Result<Self, ApiError>;
}

// No `flatten`: it would lose the name of the parameter that an error is about.
macro_rules! groups {
    ($($group:ident),*) => {
        impl<$($group: DeserializeOwned + IntoParams),*> Groups for ($($group,)*) {
            fn names() -> Vec<String> {
                let groups: Vec<Vec<String>> = vec![$(documented::<$group>()),*];
                groups.concat()
            }

            fn parse(_text: &str) -> Result<Self, ApiError> {
                Ok(($(parse_group::<$group>(_text)?,)*))
            }
        }
    };
}

groups!();
groups!(A);
groups!(A, B);
groups!(A, B, C);
groups!(A, B, C, D);

fn documented<P: IntoParams>() -> Vec<String> {
    P::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
}

fn parse_group<P: DeserializeOwned>(text: &str) -> Result<P, ApiError> {
    let form = serde_html_form::Deserializer::from_bytes(text.as_bytes());
    serde_path_to_error::deserialize(form).map_err(|error| {
        let name = error.path().to_string();
        let detail = format!("{name} {}", error.inner());
        ApiError::parameter(name, detail)
    })
}

fn check_names(text: &str, known: &[String]) -> Result<(), ApiError> {
    let pairs: Vec<(String, String)> =
        serde_html_form::from_str(text).map_err(|error| ApiError::parameter("query", error.to_string()))?;
    match pairs.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(unknown(name, known)),
        None => Ok(()),
    }
}

/// The refusal of a value that is none of those accepted.
pub(super) fn not_among(name: &str, got: &str, accepted: impl IntoIterator<Item = impl Display>) -> ApiError {
    let accepted: Vec<String> = accepted.into_iter().map(|value| value.to_string()).collect();
    let detail = format!("{name} is {got:?}; give one of {}", accepted.join(", "));
    ApiError::Parameter { name: name.to_owned(), detail, accepted }
}

fn unknown(name: &str, known: &[String]) -> ApiError {
    let accepted = known.to_vec();
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
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best.as_str())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::serve::query::{list, number, single};

    #[derive(Debug, Default, Deserialize, IntoParams)]
    #[serde(default)]
    struct Window {
        #[serde(deserialize_with = "single")]
        from: Option<String>,
        #[serde(deserialize_with = "single")]
        to: Option<String>,
    }

    #[derive(Debug, Default, Deserialize, IntoParams)]
    #[serde(default)]
    struct Table {
        #[serde(deserialize_with = "list")]
        group_by: Vec<String>,
        #[serde(deserialize_with = "number::<_, 1, 100>")]
        limit: Option<u32>,
    }

    fn parse(text: &str) -> Result<(Window, Table), ApiError> {
        Parameters::parse(text).map(|Parameters(groups)| groups)
    }

    /// The parameter that a problem names, and its text.
    fn refused(text: &str) -> (String, String) {
        match parse(text).expect_err("refused") {
            ApiError::Parameter { name, detail, .. } => (name, detail),
            error => panic!("{error}"),
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let (name, detail) = refused("groupby=model");
        assert_eq!(name, "groupby");
        assert_eq!(detail, "there is no parameter \"groupby\" here; did you mean \"group_by\"?");
        let (_, detail) = refused("zzz=1");
        assert_eq!(detail, "there is no parameter \"zzz\" here; give any of from, to, group_by, limit");
        let error = Parameters::<()>::parse("a").expect_err("no names at all");
        assert!(error.to_string().ends_with("this resource takes none"));
        Parameters::<()>::parse("").expect("no parameters");
    }

    #[test]
    fn lists_may_be_repeated_or_separated_by_commas() {
        let (_, table) = parse("group_by=model,pool&limit=1&group_by=run").expect("a list");
        assert_eq!(table.group_by, ["model", "pool", "run"]);
        let (name, detail) = refused("group_by=model,,pool");
        assert_eq!(name, "group_by");
        assert_eq!(detail, "group_by has an empty member; separate its members by single commas");
        assert_eq!(refused("group_by=").1, "group_by is empty; give it a value or leave it out");
    }

    #[test]
    fn a_single_value_given_twice_or_empty_is_refused() {
        let twice = ("from".to_owned(), "from is given 2 times; give it once".to_owned());
        assert_eq!(refused("from=-1h&from=-2h"), twice);
        let empty = ("from".to_owned(), "from is empty; give it a value or leave it out".to_owned());
        assert_eq!(refused("from="), empty);
        assert_eq!(refused("from"), empty);
        assert_eq!(refused("from=-1h&from="), empty);
        let (window, _) = parse("to=now").expect("one value");
        assert_eq!((window.from, window.to.as_deref()), (None, Some("now")));
    }

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(parse("limit=10").expect("within").1.limit, Some(10));
        for text in ["101", "0", "-1", "1.5", "ten"] {
            let detail = format!("limit is {text:?}; give a whole number from 1 to 100");
            assert_eq!(refused(&format!("limit={text}")), ("limit".to_owned(), detail));
        }
        assert_eq!(refused("limit=1&limit=2").1, "limit is given 2 times; give it once");
    }
}
