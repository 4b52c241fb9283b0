//! The labels of a record: `run`, `scenario` and `dimensions`.

use super::FieldError;
use super::fields::Fields;
use model::{Dimension, Dimensions};

/// Labels as they were given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Labels {
    /// The test run.
    pub run: Option<String>,
    /// The load scenario.
    pub scenario: Option<String>,
    /// Whether the answer was streamed, where it was given as a label.
    pub streaming: Option<bool>,
    /// Whether the request loaded the model first, where it was given as a label.
    pub cold_start: Option<bool>,
    /// All others.
    pub dimensions: Dimensions,
}

impl Labels {
    /// Reads them. What is a field of the record too goes there; labels that are not known are counted and ignored.
    pub fn take(fields: &mut Fields) -> Result<Self, FieldError> {
        let mut labels = Self { run: fields.text("run")?, scenario: fields.text("scenario")?, ..Self::default() };
        let Some(mut told) = fields.object("dimensions")? else { return Ok(labels) };
        for dimension in Dimension::ALL {
            labels.take_one(*dimension, &mut told)?;
        }
        fields.absorb(told);
        Ok(labels)
    }

    fn take_one(&mut self, dimension: Dimension, told: &mut Fields) -> Result<(), FieldError> {
        let name = dimension.name();
        match dimension {
            Dimension::Streaming => self.streaming = told.boolean(name)?,
            Dimension::ColdStart => self.cold_start = told.boolean(name)?,
            Dimension::Run => self.run = self.run.take().or(told.text(name)?),
            Dimension::Scenario => self.scenario = self.scenario.take().or(told.text(name)?),
            other => self.dimensions.set(other, told.text(name)?),
        }
        Ok(())
    }
}
