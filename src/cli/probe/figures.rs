//! What was measured, for people and as JSON.

use std::fmt::Write;

use serde_json::Value;

use crate::cli::record_line::RecordLine;
use crate::probe::Observation;
use model::Nanos;
use model::rhythm;

/// Named figures in the order in which they are shown. Null is unknown.
pub struct Figures(Vec<(String, Value)>);

impl Figures {
    /// Of a request and the record that was made of it.
    pub fn new(observation: &Observation, record: &RecordLine) -> Self {
        let mut figures = Self(Vec::new());
        figures.ended(observation);
        figures.setup(observation);
        figures.stream(observation, record);
        figures
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|figure| figure.0 == name).map(|figure| &figure.1)
    }

    fn time(&mut self, name: &str, time: Option<Nanos>) {
        self.set(name, time.map(Nanos::as_millis));
    }

    fn ended(&mut self, observation: &Observation) {
        self.set("trace_id", observation.trace_id.to_string());
        self.set("request_id", observation.seen.answer_id.clone());
        self.set("result", observation.result().name());
        if let Some(failure) = &observation.failure {
            self.set("error", failure.class());
            self.set("reason", failure.to_string());
        }
        self.set("status", observation.status);
        self.set("protocol", observation.protocol);
        if observation.redirects > 0 {
            self.set("redirects", observation.redirects);
            self.time("redirected_ms", Some(observation.redirected));
        }
    }

    fn setup(&mut self, observation: &Observation) {
        self.time("blocked_ms", observation.setup.blocked);
        self.time("dns_ms", observation.setup.dns);
        self.time("connect_ms", observation.setup.connect);
        self.time("tls_ms", observation.setup.tls);
        self.time("sending_ms", observation.sending);
        self.time("headers_ms", observation.headers);
    }

    fn stream(&mut self, observation: &Observation, record: &RecordLine) {
        let seen = &observation.seen;
        if observation.streaming == Some(true) {
            self.time("first_event_ms", seen.first_event);
            self.time("ttft_ms", observation.ttft());
            self.time("ttft_visible_ms", seen.first_visible);
            self.time("last_token_ms", seen.tokens.last().copied());
            self.time("done_ms", seen.done);
        }
        self.time("closed_ms", observation.closed);
        self.time("duration_ms", observation.duration);
        self.time("wall_ms", Some(observation.wall));
        self.set("streaming", observation.streaming);
        if observation.streaming == Some(true) {
            self.counts(observation, record);
        }
        self.set("input_tokens", seen.usage.input);
        self.set("output_tokens", seen.usage.output);
        self.set("reasoning_tokens", seen.usage.reasoning);
    }

    fn counts(&mut self, observation: &Observation, record: &RecordLine) {
        let seen = &observation.seen;
        self.set("done_received", observation.done_received());
        self.set("business_events", seen.tokens.len());
        self.set("reasoning_events", seen.reasoning);
        self.set("tool_call_events", seen.tool_calls);
        self.set("connect_events", seen.connects);
        self.set("heartbeat_events", seen.heartbeats);
        self.set("oversized_events", seen.oversized);
        self.set("batched_events", seen.batched());
        self.set("missing_events", seen.sequence.map(|sequence| sequence.missing));
        if let Some(gaps) = record.stream {
            let gaps = [
                ("p50", gaps.p50_gap_ms),
                ("p95", gaps.p95_gap_ms),
                ("p99", gaps.p99_gap_ms),
                ("max", gaps.max_gap_ms),
            ];
            for (name, gap) in gaps {
                self.time(&format!("{name}_gap_ms"), gap.map(|gap| gap.0));
            }
        }
        let buffering = rhythm::buffering(&seen.tokens);
        self.set("suspected_buffering", buffering.is_some());
        if let Some(buffering) = buffering {
            self.set("buffered_share", buffering.share);
            self.time("buffer_silence_ms", Some(buffering.silence));
            self.set("buffer_burst", buffering.burst);
        }
    }

    /// One `key=value` a line, as `tracejoin trace` prints.
    pub fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}={}", shown(value));
            text
        })
    }

    /// The most important in one line.
    pub fn line(&self) -> String {
        const NAMES: [&str; 8] =
            ["trace_id", "status", "wall_ms", "ttft_ms", "ttft_visible_ms", "duration_ms", "business_events", "error"];
        let told = NAMES.iter().filter_map(|name| Some((name, self.get(name)?)));
        let told: Vec<String> = told.map(|(name, value)| format!("{name}={}", shown(value))).collect();
        format!("{:<9} {}", self.get("result").and_then(Value::as_str).unwrap_or_default(), told.join(" "))
    }

    /// All of them.
    pub fn json(self) -> Value {
        Value::Object(self.0.into_iter().collect())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        // Without the zero that JSON puts behind a whole one.
        Value::Number(number) => {
            number.as_f64().filter(|_| number.is_f64()).map_or_else(|| number.to_string(), |number| number.to_string())
        }
        other => other.to_string(),
    }
}
