//! The project's own schema: the attribute `llm.phase`, and span names that mean a phase.

use std::borrow::Cow;

use super::{NameRule, Reading, Role};
use crate::scalar;
use model::{ServerPhase, Span};

const DIALECT: &str = "native";

const PHASE: &str = "llm.phase";

/// The attributes it reads.
pub const KEYS: &[&str] = &[PHASE];

const RESPONSE_WRITE: &str = "response.write";

const NAMES: &[NameRule] = &[
    NameRule::new("auth.check", Role::Plain, Some(ServerPhase::Gateway), None),
    NameRule::new("request.prepare", Role::Plain, Some(ServerPhase::Gateway), None),
    NameRule::new("route.select", Role::Plain, Some(ServerPhase::Gateway), None),
    NameRule::new("inference.acquire_slot", Role::Plain, Some(ServerPhase::GpuQueue), None),
    NameRule::new("inference.generate", Role::Plain, Some(ServerPhase::Generation), None),
    NameRule::new("provider.request", Role::Plain, Some(ServerPhase::Provider), None),
    NameRule::new(RESPONSE_WRITE, Role::Plain, Some(ServerPhase::Gateway), None),
];

/// The values of `llm.phase`.
const DECLARED: &[(&str, ServerPhase, &str)] = &[
    ("queue", ServerPhase::GpuQueue, "llm.phase=queue"),
    ("gpu_queue", ServerPhase::GpuQueue, "llm.phase=gpu_queue"),
    ("generation", ServerPhase::Generation, "llm.phase=generation"),
    ("gateway", ServerPhase::Gateway, "llm.phase=gateway"),
    ("provider", ServerPhase::Provider, "llm.phase=provider"),
];

pub fn read(span: &Span) -> Option<Reading> {
    let rule = NameRule::find(NAMES, &span.name)?;
    Some(Reading { writes_response: rule.name == RESPONSE_WRITE, ..rule.reading(DIALECT) })
}

/// A declared phase stands above every dialect: it is the whole span's, so durations told beside it are not laid. What
/// else the dialect read stays.
pub fn declare(span: &Span, reading: &mut Reading) {
    let Some(declared) = span.attributes.get(PHASE).and_then(scalar::text) else { return };
    let Some((_, phase, rule)) = DECLARED.iter().find(|(value, ..)| declared.eq_ignore_ascii_case(value)) else {
        return;
    };
    if reading.phase != Some(*phase) {
        reading.sub = None;
    }
    reading.phase = Some(*phase);
    reading.laid.clear();
    reading.dialect = Cow::Borrowed(DIALECT);
    reading.rule = Cow::Borrowed(rule);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, FirstTokenSource, sample};
    use model::{SpanKind, Value};

    #[test]
    fn names_mean_phases() {
        for (name, phase) in [
            ("auth.check", ServerPhase::Gateway),
            ("request.prepare", ServerPhase::Gateway),
            ("route.select", ServerPhase::Gateway),
            ("response.write", ServerPhase::Gateway),
            ("inference.acquire_slot", ServerPhase::GpuQueue),
            ("inference.generate", ServerPhase::Generation),
            ("provider.request", ServerPhase::Provider),
        ] {
            let reading = dialect::read(&sample::span(name, SpanKind::Internal, 5, &[]));
            assert_eq!((reading.phase, reading.rule.as_ref()), (Some(phase), name));
            assert_eq!(reading.writes_response, name == "response.write");
        }
    }

    #[test]
    fn a_declared_phase_wins_over_name_and_dialect() {
        let phase = |value: &str| (PHASE, sample::text(value));
        let named = dialect::read(&sample::span("auth.check", SpanKind::Internal, 5, &[phase("queue")]));
        assert_eq!(named.phase, Some(ServerPhase::GpuQueue));
        let genai = [phase("generation"), ("gen_ai.operation.name", sample::text("chat"))];
        let call = dialect::read(&sample::span("chat m", SpanKind::Client, 5, &genai));
        assert_eq!((call.phase, call.genai_client), (Some(ServerPhase::Generation), true));
        let engine = [phase("provider"), ("gen_ai.latency.time_in_queue", Value::Double(0.1))];
        let declared = dialect::read(&sample::span("llm_request", SpanKind::Server, 900, &engine));
        assert_eq!((declared.phase, declared.laid.len()), (Some(ServerPhase::Provider), 0));
    }

    #[test]
    fn an_unknown_declaration_declares_nothing() {
        let span = sample::span("auth.check", SpanKind::Internal, 5, &[(PHASE, sample::text("coffee"))]);
        assert_eq!(dialect::read(&span).phase, Some(ServerPhase::Gateway));
    }

    #[test]
    fn the_first_token_is_an_event() {
        let span = sample::with_event(sample::span("response.write", SpanKind::Internal, 900, &[]), "first_token", 20);
        let token = dialect::read(&span).first_token.expect("told");
        assert_eq!((token.offset.0, token.source), (20_000_000, FirstTokenSource::Event));
    }
}
