//! The labels of a record: `run`, `scenario` and `dimensions`.

use super::FieldError;
use super::body::{ClientRecordBody, DimensionsBody};
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
    pub fn take(body: &mut ClientRecordBody) -> Result<Self, FieldError> {
        let mut labels =
            Self { run: body.run.text("run")?, scenario: body.scenario.text("scenario")?, ..Self::default() };
        let Some(mut given) = body.dimensions.value("dimensions")? else { return Ok(labels) };
        for dimension in Dimension::ALL {
            labels.take_one(*dimension, &mut given)?;
        }
        body.ignored_fields += given.left();
        Ok(labels)
    }

    fn take_one(&mut self, dimension: Dimension, given: &mut DimensionsBody) -> Result<(), FieldError> {
        let path = format!("dimensions.{}", dimension.name());
        match dimension {
            Dimension::Streaming => self.streaming = given.take(dimension).value(&path)?,
            Dimension::ColdStart => self.cold_start = given.take(dimension).value(&path)?,
            Dimension::Run => self.run = self.run.take().or(given.take(dimension).text(&path)?),
            Dimension::Scenario => self.scenario = self.scenario.take().or(given.take(dimension).text(&path)?),
            other => self.dimensions.set(other, given.take(dimension).text(&path)?),
        }
        Ok(())
    }
}
