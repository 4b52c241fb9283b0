//! Patterns of names.

use regex::Regex;
use serde::Deserialize;

/// What stands before a regular expression.
const REGEX: &str = "regex:";

/// A text with `*` for any run of characters and `?` for one, which must fit a whole name; or `regex:` and a regular
/// expression, which must fit somewhere in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub enum Pattern {
    /// The name itself.
    Exact(String),
    /// Names that an expression fits.
    Fits(Regex),
}

/// Why a text is no pattern.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PatternError {
    #[error("is empty; give a name, a pattern such as \"infer *\", or leave the field out")]
    Empty,
    /// Not a regular expression, or a huge one.
    #[error("{text:?} is no regular expression that can be used: {reason}")]
    Regex {
        /// The text after `regex:`.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Pattern {
    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Fits(regex) => regex.is_match(name),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if let Some(expression) = text.strip_prefix(REGEX) {
            return compiled(expression.trim()).map(Self::Fits);
        }
        if !text.contains(['*', '?']) {
            return Ok(Self::Exact(text));
        }
        let parts = text.chars().map(|letter| match letter {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            other => regex::escape(&other.to_string()),
        });
        compiled(&format!("(?s)^{}$", parts.collect::<String>())).map(Self::Fits)
    }
}

fn compiled(expression: &str) -> Result<Regex, PatternError> {
    Regex::new(expression).map_err(|error| PatternError::Regex {
        text: expression.to_owned(),
        reason: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::try_from(pattern.to_owned()).expect("a pattern").fits(name)
    }

    #[test]
    fn a_star_is_any_run_and_a_question_mark_one_character() {
        assert!(fits("infer", "infer") && !fits("infer", "infer x"));
        assert!(fits("infer *", "infer a\nb") && !fits("infer *", "infer"));
        assert!(fits("step ?", "step 1") && !fits("step ?", "step 12"));
        assert!(fits("a.b*", "a.b(c)") && !fits("a.b*", "axb"), "a dot is a dot");
    }

    #[test]
    fn a_regular_expression_fits_somewhere() {
        assert!(fits("regex: ^step [0-9]+$", "step 12") && !fits("regex:^step [0-9]+$", "step x"));
        assert!(fits("regex:tep", "a step"));
        let error = Pattern::try_from("regex:(".to_owned()).expect_err("refused").to_string();
        assert!(error.contains("\"(\"") && error.contains("unclosed group"), "{error}");
        assert!(Pattern::try_from(String::new()).is_err());
    }
}
