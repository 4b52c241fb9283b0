//! The labels by which requests are filtered and grouped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

macro_rules! dimensions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// One label of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Dimension {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Dimension {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the API, the database and the docs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

dimensions! {
    /// The test run.
    Run = "run";
    /// The load scenario.
    Scenario = "scenario";
    /// The model that answered.
    Model = "model";
    /// The provider or route.
    Provider = "provider";
    Region = "region";
    /// The pool of accelerators.
    Pool = "pool";
    /// The priority class.
    Priority = "priority";
    /// How many requests the client kept under way.
    Concurrency = "concurrency";
    /// Whether the answer was streamed.
    Streaming = "streaming";
    /// The prompt's length as a range.
    InputRange = "input_range";
    /// The answer's length as a range.
    OutputRange = "output_range";
    /// Whether the request loaded the model first.
    ColdStart = "cold_start";
}

impl Dimension {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dimension| dimension.name() == name)
    }

    /// What its values look like, where no request can have this one: a filter on it would silently select nothing.
    pub fn refuses(self, value: &str) -> Option<&'static str> {
        let form = match self {
            Self::Streaming | Self::ColdStart if !matches!(value, "true" | "false") => "true or false",
            Self::InputRange if !is_range("input_", value) => "a range such as input_0_512",
            Self::OutputRange if !is_range("output_", value) => "a range such as output_0_128",
            _ => return None,
        };
        Some(form)
    }
}

fn is_range(prefix: &str, value: &str) -> bool {
    let bounds = value.strip_prefix(prefix).and_then(|bounds| bounds.split_once('_'));
    bounds.is_some_and(|(lower, upper)| lower.parse::<u64>().is_ok() && upper.parse::<u64>().is_ok())
}

/// Labels and their values; what is not there is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dimensions(pub BTreeMap<Dimension, String>);

impl Dimensions {
    /// One label's value.
    pub fn get(&self, dimension: Dimension) -> Option<&str> {
        self.0.get(&dimension).map(String::as_str)
    }

    /// Sets one label where the value is known and not empty.
    pub fn set(&mut self, dimension: Dimension, value: Option<impl Into<String>>) {
        if let Some(value) = value.map(Into::into).filter(|value| !value.is_empty()) {
            self.0.insert(dimension, value);
        }
    }
}

/// The range that a prompt's token count falls into: bounds are powers of two from 512 on.
pub fn input_range(tokens: i64) -> String {
    range("input", tokens, 512)
}

/// The range that an answer's token count falls into: bounds are powers of two from 128 on.
pub fn output_range(tokens: i64) -> String {
    range("output", tokens, 128)
}

fn range(prefix: &str, tokens: i64, first: i64) -> String {
    let mut lower = 0;
    let mut upper = first;
    while tokens > upper && upper < 1 << 40 {
        lower = upper + 1;
        upper *= 2;
    }
    format!("{prefix}_{lower}_{upper}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_request_can_have_is_taken() {
        assert_eq!(Dimension::InputRange.refuses(&input_range(700)), None);
        assert_eq!(Dimension::OutputRange.refuses(&output_range(700)), None);
        assert_eq!(Dimension::OutputRange.refuses("input_0_512"), Some("a range such as output_0_128"));
        assert_eq!(Dimension::Streaming.refuses("yes"), Some("true or false"));
        assert_eq!(Dimension::Model.refuses("anything"), None);
    }

    #[test]
    fn ranges_are_powers_of_two() {
        assert_eq!(input_range(0), "input_0_512");
        assert_eq!(input_range(512), "input_0_512");
        assert_eq!(input_range(513), "input_513_1024");
        assert_eq!(input_range(1025), "input_1025_2048");
        assert_eq!(output_range(128), "output_0_128");
        assert_eq!(output_range(129), "output_129_256");
    }
}
