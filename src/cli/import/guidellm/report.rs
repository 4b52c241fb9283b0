//! Walks through a report to its requests, one by one, whatever lies around them.

use std::fmt;

use anyhow::{Context, anyhow};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::cli::import::input::Input;

/// How a request ended, as GuideLLM groups them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// A whole answer.
    Successful,
    /// Under way when the benchmark ended.
    Incomplete,
    /// Failed.
    Errored,
}

/// What takes a request.
type Member<'a> = dyn FnMut(Group, Value) -> anyhow::Result<()> + 'a;

/// Walks through JSON; `false` where it is cut off.
///
/// # Errors
/// What the member gives, or a file that is no report.
pub fn json(input: Input, member: &mut Member<'_>) -> anyhow::Result<bool> {
    let mut failure = None;
    let walk = At { place: Place::Report, member, failure: &mut failure };
    let walked = walk.deserialize(&mut serde_json::Deserializer::from_reader(input));
    match (failure, walked) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(true),
        (None, Err(error)) if error.is_eof() => Ok(false),
        (None, Err(error)) => Err(error).context("the file is no GuideLLM report"),
    }
}

/// Walks through YAML, whose end may be missing unnoticed: that is how YAML is.
///
/// # Errors
/// What the member gives, or a file that is no report.
pub fn yaml(input: Input, member: &mut Member<'_>) -> anyhow::Result<bool> {
    let mut failure = None;
    // The parser's bounds are against hostile documents; this file is the user's own, and may be large.
    let options = serde_saphyr::options! { budget: None };
    let walked = serde_saphyr::with_deserializer_from_reader_with_options(input, options, |document| {
        At { place: Place::Report, member, failure: &mut failure }.deserialize(document)
    });
    match (failure, walked) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(true),
        (None, Err(error)) => Err(anyhow!("the file is no GuideLLM report: {error}")),
    }
}

/// Where in a report a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Report,
    Benchmarks,
    Benchmark,
    Requests,
    Members(Group),
}

impl Place {
    /// Where a field leads; `None` where no request is.
    fn under(self, field: &str) -> Option<Self> {
        match (self, field) {
            (Self::Report, "benchmarks") => Some(Self::Benchmarks),
            (Self::Benchmark, "requests") => Some(Self::Requests),
            (Self::Requests, "successful") => Some(Self::Members(Group::Successful)),
            (Self::Requests, "incomplete") => Some(Self::Members(Group::Incomplete)),
            (Self::Requests, "errored") => Some(Self::Members(Group::Errored)),
            _ => None,
        }
    }
}

struct At<'a, 'm> {
    place: Place,
    member: &'a mut Member<'m>,
    failure: &'a mut Option<anyhow::Error>,
}

impl<'m> At<'_, 'm> {
    fn at(&mut self, place: Place) -> At<'_, 'm> {
        At { place, member: &mut *self.member, failure: &mut *self.failure }
    }
}

impl<'de> DeserializeSeed<'de> for At<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report of GuideLLM: an object with benchmarks, in each an object of requests")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            match self.place.under(&field) {
                Some(place) => fields.next_value_seed(self.at(place))?,
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let Place::Members(group) = self.place else {
            while members.next_element_seed(self.at(Place::Benchmark))?.is_some() {}
            return Ok(());
        };
        while let Some(value) = members.next_element::<Value>()? {
            if let Err(failure) = (self.member)(group, value) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("the upload stopped"));
            }
        }
        Ok(())
    }

    /// A group without members.
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}
