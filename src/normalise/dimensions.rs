//! Which labels a request has.

use crate::model::dimension::{input_range, output_range};
use crate::model::{ClientRecord, Dimension, Dimensions};

/// What is measured and becomes a label: token counts as ranges, never as exact lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Whether the answer was streamed.
    pub streaming: Option<bool>,
    /// Whether the request loaded the model first.
    pub cold_start: Option<bool>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
}

/// The labels that a client record tells.
pub fn of_record(record: &ClientRecord) -> Dimensions {
    let mut dimensions = record.dimensions.clone();
    dimensions.set(Dimension::Run, record.run.as_deref());
    dimensions.set(Dimension::Scenario, record.scenario.as_deref());
    let measured = Measured {
        streaming: record.streaming,
        cold_start: record.cold_start,
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
    };
    set_measured(&mut dimensions, measured);
    dimensions
}

/// Sets the labels that follow from what was measured, over those that were given.
pub fn set_measured(dimensions: &mut Dimensions, measured: Measured) {
    dimensions.set(Dimension::Streaming, measured.streaming.map(|streaming| streaming.to_string()));
    dimensions.set(Dimension::ColdStart, measured.cold_start.map(|cold_start| cold_start.to_string()));
    dimensions.set(Dimension::InputRange, measured.input_tokens.map(input_range));
    dimensions.set(Dimension::OutputRange, measured.output_tokens.map(output_range));
}

/// Takes the labels of `other` that are not there yet.
pub fn fill(dimensions: &mut Dimensions, other: &Dimensions) {
    for (dimension, value) in &other.0 {
        dimensions.0.entry(*dimension).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(Dimension, &str)]) -> Dimensions {
        let mut dimensions = Dimensions::default();
        for (dimension, value) in pairs {
            dimensions.set(*dimension, Some(*value));
        }
        dimensions
    }

    #[test]
    fn lengths_become_ranges() {
        let mut dimensions = of(&[(Dimension::Model, "m-7b"), (Dimension::InputRange, "given")]);
        let measured =
            Measured { streaming: Some(true), cold_start: None, input_tokens: Some(412), output_tokens: Some(180) };
        set_measured(&mut dimensions, measured);
        let expected = of(&[
            (Dimension::Model, "m-7b"),
            (Dimension::Streaming, "true"),
            (Dimension::InputRange, "input_0_512"),
            (Dimension::OutputRange, "output_129_256"),
        ]);
        assert_eq!(dimensions, expected);
    }

    #[test]
    fn what_is_there_stays() {
        let mut dimensions = of(&[(Dimension::Model, "mine")]);
        fill(&mut dimensions, &of(&[(Dimension::Model, "theirs"), (Dimension::Pool, "a100")]));
        assert_eq!(dimensions, of(&[(Dimension::Model, "mine"), (Dimension::Pool, "a100")]));
    }
}
