//! How spans are read: by the rules of a configuration file first, then by the dialects that are built in.

mod key;
mod matches;
mod pattern;
mod reading;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(super) use key::is_content;
pub use key::{EventName, Key, KeyError, Keys};
pub use matches::{Expected, Kinds, Matches};
pub use pattern::{Pattern, PatternError};
pub use reading::Unit;

use super::allow::AllowList;
use super::dialect;
use model::reading::{Reading, SubPhase};
use model::{Dimension, ServerPhase, Span};

/// How spans are read, and which of their attributes that needs. Receiving, joining and answering share one.
#[derive(Debug, Clone, Default)]
pub struct Dialects {
    own: Vec<OwnDialect>,
    allowed: AllowList,
}

/// The rules of a system that a configuration file tells of. The first that matches a span decides.
#[derive(Debug, Clone)]
pub struct OwnDialect {
    pub name: String,
    /// Its rules, in the order in which they are asked.
    pub rules: Vec<Rule>,
}

/// Which spans a rule is about, and what they mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What is shown of it; without a name its place in the file.
    #[serde(default)]
    pub name: String,
    /// Which spans it is about.
    #[serde(rename = "match")]
    pub matches: Matches,
    /// Whether it only adds to what a built-in dialect reads.
    #[serde(default)]
    pub extend: bool,
    /// Whose time the span's interval is.
    pub phase: Option<Phase>,
    /// Which part of a generation the interval is.
    pub sub: Option<Sub>,
    /// Whether the span may be a server's entry though its kind is not SERVER.
    #[serde(default)]
    pub root: bool,
    /// Whether it is an inference engine's own request span.
    #[serde(default)]
    pub engine: bool,
    /// Whether it calls a model though its kind is not CLIENT.
    #[serde(default)]
    pub call: bool,
    /// Whether it writes the answer.
    #[serde(default)]
    pub writes_response: bool,
    /// Whether it is noise, neither painted nor shown.
    #[serde(default)]
    pub ignore: bool,
    /// Durations told as attributes, in the order in which they passed.
    #[serde(default)]
    pub durations: Vec<Duration>,
    /// Phases that the system leaves out where they took no time.
    #[serde(default)]
    pub absent_is_zero: Vec<Phase>,
    /// Where the first token is told.
    pub first_token: Option<FirstTokenRule>,
    /// Attributes of the span or its resource that tell labels.
    #[serde(default)]
    pub labels: BTreeMap<Label, Keys>,
    /// Attributes that tell the tokens of the prompt.
    #[serde(default)]
    pub input_tokens: Keys,
    /// Attributes that tell the tokens of the answer.
    #[serde(default)]
    pub output_tokens: Keys,
    /// Attributes that tell whether the answer was streamed.
    #[serde(default)]
    pub streaming: Keys,
    /// Attributes that tell whether the request loaded the model first.
    #[serde(default)]
    pub cold_start: Keys,
    /// Attributes that hold a request id which the client may know too.
    #[serde(default)]
    pub request_ids: Keys,
}

/// A duration that a span tells of its inside: as an attribute, or as two events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// The attribute.
    pub key: Option<Key>,
    pub unit: Option<Unit>,
    /// The events at its start and its end.
    pub between: Option<[EventName; 2]>,
    /// Whose time it is.
    pub phase: Phase,
    /// Which part of a generation.
    pub sub: Option<Sub>,
    /// Which end of the span an attribute's time is laid against.
    #[serde(default)]
    pub from: End,
}

impl Duration {
    fn check(&self) -> Result<(), RuleError> {
        let wrong = |field, reason| Err(RuleError { field, reason });
        if self.sub.is_some() && self.phase != Phase::Generation {
            let reason = "is a part of a generation; set phase = \"generation\" beside it, or leave it out";
            return wrong("durations.sub", reason);
        }
        if self.key.is_some() == self.between.is_some() {
            return wrong("durations", "has one source; give either key and unit, or between with two events");
        }
        if self.key.is_some() != self.unit.is_some() {
            return wrong("durations.unit", "goes with a key; give s, ms, us, ns or text, and none with between");
        }
        Ok(())
    }
}

/// An end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Laid forward from the start.
    Start,
    /// Laid backwards from the end.
    #[default]
    End,
}

/// Where a span tells its first token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstTokenRule {
    /// An event that marks it.
    pub event: Option<EventName>,
    /// An attribute that tells the time from the span's start to it.
    pub attribute: Option<Key>,
    /// The attribute's unit.
    pub unit: Option<Unit>,
}

/// A phase that a rule can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waiting for a slot.
    #[serde(alias = "queue")]
    GpuQueue,
    /// Inference.
    Generation,
    /// Work of the gateway.
    Gateway,
    /// A call that does not disclose its inside.
    Provider,
}

/// A part of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sub {
    /// Up to the first token.
    Prefill,
    /// After it.
    Decode,
}

/// A label that a rule can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The model that answered.
    Model,
    /// The provider or route.
    Provider,
    Region,
    /// The pool of accelerators.
    Pool,
    /// The priority class.
    Priority,
}

impl Phase {
    /// The phase itself.
    pub const fn server_phase(self) -> ServerPhase {
        match self {
            Self::GpuQueue => ServerPhase::GpuQueue,
            Self::Generation => ServerPhase::Generation,
            Self::Gateway => ServerPhase::Gateway,
            Self::Provider => ServerPhase::Provider,
        }
    }
}

impl Sub {
    const fn sub_phase(self) -> SubPhase {
        match self {
            Self::Prefill => SubPhase::Prefill,
            Self::Decode => SubPhase::Decode,
        }
    }
}

impl Label {
    const fn dimension(self) -> Dimension {
        match self {
            Self::Model => Dimension::Model,
            Self::Provider => Dimension::Provider,
            Self::Region => Dimension::Region,
            Self::Pool => Dimension::Pool,
            Self::Priority => Dimension::Priority,
        }
    }
}

/// A field of a rule that is at odds with another, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct RuleError {
    /// The field, as it is written.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub reason: &'static str,
}

impl Rule {
    /// Whether its fields agree with one another.
    ///
    /// # Errors
    /// The first field at odds with another.
    pub fn check(&self) -> Result<(), RuleError> {
        let wrong = |field, reason| Err(RuleError { field, reason });
        if self.matches.is_empty() {
            return wrong(
                "match",
                "is empty, so it would match every span; give scope, name, service, kind, has or attributes",
            );
        }
        if self.sub.is_some() && self.phase != Some(Phase::Generation) {
            return wrong("sub", "is a part of a generation; set phase = \"generation\" beside it, or leave it out");
        }
        self.durations.iter().try_for_each(Duration::check)?;
        if self.ignore && (self.phase.is_some() || !self.durations.is_empty() || self.root || self.engine) {
            return wrong(
                "ignore",
                "hides the span, so it can tell nothing; leave out phase, durations, root and engine",
            );
        }
        match &self.first_token {
            Some(first) if first.event.is_some() == first.attribute.is_some() => {
                wrong("first_token", "has one source; give either event, or attribute and unit")
            }
            Some(first) if first.attribute.is_some() != first.unit.is_some() => {
                wrong("first_token.unit", "goes with an attribute; give s, ms, us, ns or text, and none with an event")
            }
            _ => Ok(()),
        }
    }

    /// Adds what it reads to the list of what is kept.
    fn allow(&self, allowed: &mut AllowList) {
        let lists = [&self.input_tokens, &self.output_tokens, &self.streaming, &self.cold_start, &self.request_ids];
        let durations = self.durations.iter().filter_map(|told| told.key.as_ref());
        let first = self.first_token.as_ref();
        let attribute = first.and_then(|first| first.attribute.as_ref());
        let listed = lists.into_iter().flat_map(Keys::iter);
        for key in self.matches.keys().chain(durations).chain(attribute).chain(listed) {
            allowed.allow_attribute(key.as_str());
        }
        for key in self.labels.values().flat_map(Keys::iter) {
            allowed.allow_label(key.as_str());
        }
        let pairs = self.durations.iter().filter_map(|told| told.between.as_ref()).flatten();
        for event in first.and_then(|first| first.event.as_ref()).into_iter().chain(pairs) {
            allowed.allow_event(event.as_str());
        }
    }
}

impl Dialects {
    /// The built-in dialects after those given, which are asked in their order.
    pub fn new(own: Vec<OwnDialect>) -> Self {
        let mut allowed = AllowList::default();
        for rule in own.iter().flat_map(|dialect| &dialect.rules) {
            rule.allow(&mut allowed);
        }
        Self { own, allowed }
    }

    /// Those that a configuration file gave.
    pub fn own(&self) -> &[OwnDialect] {
        &self.own
    }

    /// What may be kept of spans.
    pub(super) fn allowed(&self) -> &AllowList {
        &self.allowed
    }

    /// What a span tells. A rule of the configuration file decides before the built-in dialects; a declared phase stands
    /// above all of them.
    pub fn read(&self, span: &Span) -> Reading {
        let rules = self.own.iter().flat_map(|dialect| dialect.rules.iter().map(move |rule| (&dialect.name, rule)));
        let first = rules.into_iter().find(|(_, rule)| rule.matches.covers(span));
        let reading = match first {
            Some((dialect, rule)) => rule.read(dialect, span),
            None => dialect::recognise(span),
        };
        dialect::complete(span, reading)
    }
}

#[cfg(test)]
mod tests;
