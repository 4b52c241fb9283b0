//! What a rule reads of a span that it matches.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Duration, End, EventName, FirstTokenRule, Keys, Rule};
use crate::dialect::{self, far_beyond};
use crate::scalar;
use crate::text::REDACTED;
use model::reading::{Anchor, FirstToken, FirstTokenSource, Laid, Reading, Role};
use model::{Flag, Nanos, Span, Value};

/// The unit of an attribute that tells a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// A text with a unit of its own, such as `1.5s` or `12ms`.
    Text,
}

impl Unit {
    /// A time; negative and infinite ones mean that it is missing.
    fn read(self, value: &Value) -> Option<Nanos> {
        match self {
            Self::S => scalar::seconds(value),
            Self::Ms => scalar::millis(value),
            Self::Us => scalar::duration(value, 1e3),
            Self::Ns => scalar::duration(value, 1.0),
            Self::Text => match value {
                Value::Str(text) => scalar::duration_text(text),
                _ => None,
            },
        }
    }
}

impl Rule {
    /// Reads a span that it matches; labels and the like that it does not name are left open.
    pub(super) fn read(&self, dialect: &str, span: &Span) -> Reading {
        let mut reading = if self.extend { dialect::recognise(span) } else { Reading::default() };
        reading.rule = match reading.dialect.as_ref() {
            "" => Cow::Owned(self.name.clone()),
            below => Cow::Owned(format!("{}, over {below}: {}", self.name, reading.rule)),
        };
        reading.dialect = Cow::Owned(dialect.to_owned());
        self.classify(&mut reading);
        self.lay(span, &mut reading);
        self.label(span, &mut reading);
        if let Some(first) = &self.first_token {
            reading.first_token = first.read(span, &mut reading).or(reading.first_token);
        }
        reading
    }

    fn classify(&self, reading: &mut Reading) {
        if let Some(phase) = self.phase {
            reading.phase = Some(phase.server_phase());
            reading.sub = self.sub.map(super::Sub::sub_phase);
        }
        match (self.ignore, self.engine) {
            (true, _) => reading.role = Role::Noise,
            (_, true) => reading.role = Role::Engine,
            _ => {}
        }
        reading.root |= self.root;
        reading.genai_client |= self.call;
        reading.writes_response |= self.writes_response;
        reading.absent_is_zero.extend(self.absent_is_zero.iter().map(|phase| phase.server_phase()));
    }

    /// Lays the durations told: those from the start as they passed, those from the end the last first. Where one of
    /// them is far longer than the span its unit is wrong, and then none is to be trusted.
    fn lay(&self, span: &Span, reading: &mut Reading) {
        for duration in self.durations.iter().filter(|duration| duration.is_there(span)) {
            // What is there and cannot be used is not absent.
            reading.absent_is_zero.retain(|phase| *phase != duration.phase.server_phase());
        }
        let laid: Vec<Laid> = self.durations.iter().filter_map(|duration| duration.read(span)).collect();
        if laid.is_empty() {
            return;
        }
        reading.laid.clear();
        if laid.iter().any(|laid| far_beyond(laid.length, span)) {
            reading.flags.set(Flag::UnitSuspect);
            return;
        }
        reading.laid.extend(laid.iter().filter(|laid| laid.anchor != Anchor::End));
        reading.laid.extend(laid.iter().rev().filter(|laid| laid.anchor == Anchor::End));
    }

    fn label(&self, span: &Span, reading: &mut Reading) {
        for (label, keys) in &self.labels {
            let on_span = keys.iter().find_map(|key| span.attributes.get(key.as_str()).and_then(scalar::text));
            let told = on_span.or_else(|| keys.iter().find_map(|key| span.resource.text(key.as_str())));
            reading.dimensions.set(label.dimension(), told.map(Cow::into_owned));
        }
        reading.input_tokens = first(span, &self.input_tokens, scalar::count).or(reading.input_tokens);
        reading.output_tokens = first(span, &self.output_tokens, scalar::count).or(reading.output_tokens);
        reading.streaming = first(span, &self.streaming, scalar::boolean).or(reading.streaming);
        reading.cold_start = first(span, &self.cold_start, scalar::boolean).or(reading.cold_start);
        for key in self.request_ids.iter() {
            let id = span.attributes.get(key.as_str()).and_then(scalar::text);
            // What is left of a scrubbed id is no id: many requests would share it.
            reading.request_ids.extend(id.filter(|id| !id.contains(REDACTED)).map(Cow::into_owned));
        }
    }
}

impl Duration {
    fn is_there(&self, span: &Span) -> bool {
        self.key.as_ref().is_some_and(|key| span.attributes.has(key.as_str()))
    }

    fn read(&self, span: &Span) -> Option<Laid> {
        let (length, anchor) = match &self.between {
            Some([from, to]) => {
                let from = event(span, from)?;
                let length = event(span, to)? - from;
                (Some(length).filter(|length| *length >= Nanos::ZERO)?, Anchor::At(from))
            }
            None => {
                let value = span.attributes.get(self.key.as_ref()?.as_str())?;
                let anchor = match self.from {
                    End::Start => Anchor::Start,
                    End::End => Anchor::End,
                };
                (self.unit?.read(value)?, anchor)
            }
        };
        Some(Laid { phase: self.phase.server_phase(), sub: self.sub.map(super::Sub::sub_phase), length, anchor })
    }
}

/// From the span's start to an event.
fn event(span: &Span, name: &EventName) -> Option<Nanos> {
    let event = span.events.iter().find(|event| event.name == name.as_str())?;
    Some(event.at - span.start).filter(|offset| *offset >= Nanos::ZERO)
}

fn first<T>(span: &Span, keys: &Keys, read: fn(&Value) -> Option<T>) -> Option<T> {
    keys.iter().find_map(|key| span.attributes.get(key.as_str()).and_then(read))
}

impl FirstTokenRule {
    fn read(&self, span: &Span, reading: &mut Reading) -> Option<FirstToken> {
        if let Some(name) = &self.event {
            return Some(FirstToken { offset: event(span, name)?, source: FirstTokenSource::Event });
        }
        let value = span.attributes.get(self.attribute.as_ref()?.as_str())?;
        let offset = self.unit?.read(value)?;
        if far_beyond(offset, span) {
            reading.flags.set(Flag::UnitSuspect);
            return None;
        }
        Some(FirstToken { offset, source: FirstTokenSource::Attribute })
    }
}
