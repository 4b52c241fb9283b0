//! Answers that carry their own timing: the raw object that a client found in the body or in the headers, by `kind`.

mod server_timing;

use super::FieldError;
use super::body::ClientRecordBody;
use super::fields::Fields;
use model::{MetricsKind, Nanos, ResponseMetrics};

const FIELD: &str = "response_metrics";

/// Loading a model takes seconds; finding one that is loaded takes a few milliseconds.
const COLD_LOAD: Nanos = Nanos(1_000_000_000);

/// What such an object holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnTiming {
    /// Its times.
    pub metrics: ResponseMetrics,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Whether the request loaded the model first.
    pub cold_start: Option<bool>,
}

/// What one field means. Fields with one meaning add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Total,
    Gateway,
    Queue,
    /// Until a runner holds the model: a wait for a slot, and a cold start where it is long.
    Load,
    Prefill,
    Decode,
    Inference,
    InputTokens,
    OutputTokens,
    /// Known, and needed by nobody.
    Other,
}

/// The fields of one kind.
struct Form {
    kind: MetricsKind,
    /// The object that holds them, where the whole answer was given.
    inside: Option<&'static str>,
    /// The unit of its times, in milliseconds.
    unit_ms: f64,
    /// Whether one half of a generation is left out where it took no time.
    omits_zero: bool,
    fields: &'static [(&'static str, Part)],
}

const FORMS: &[Form] = &[
    // Measured from scheduling on: the time to the first token does not contain the queue.
    Form {
        kind: MetricsKind::Vllm,
        inside: Some("metrics"),
        unit_ms: 1.0,
        omits_zero: false,
        fields: &[
            ("queue_time_ms", Part::Queue),
            ("time_to_first_token_ms", Part::Prefill),
            ("generation_time_ms", Part::Decode),
            ("mean_itl_ms", Part::Other),
            ("tokens_per_second", Part::Other),
        ],
    },
    // As vLLM's pull request 42198 has them.
    Form {
        kind: MetricsKind::VllmHeaders,
        inside: None,
        unit_ms: 1.0,
        omits_zero: false,
        fields: &[
            ("x-vllm-total-time", Part::Total),
            ("x-vllm-queue-time", Part::Queue),
            ("x-vllm-prefill-time", Part::Prefill),
            ("x-vllm-decode-time", Part::Decode),
            ("x-vllm-inference-time", Part::Inference),
            ("x-vllm-prompt-tokens", Part::InputTokens),
            ("x-vllm-completion-tokens", Part::OutputTokens),
            ("x-vllm-cached-tokens", Part::Other),
            ("x-vllm-time-per-output-token", Part::Other),
            ("x-vllm-tokens-per-second", Part::Other),
        ],
    },
    Form {
        kind: MetricsKind::TgiHeaders,
        inside: None,
        unit_ms: 1.0,
        omits_zero: false,
        fields: &[
            ("x-total-time", Part::Total),
            ("x-queue-time", Part::Queue),
            ("x-inference-time", Part::Inference),
            ("x-prompt-tokens", Part::InputTokens),
            ("x-generated-tokens", Part::OutputTokens),
            ("x-validation-time", Part::Other),
            ("x-time-per-token", Part::Other),
            ("x-compute-time", Part::Other),
            ("x-compute-type", Part::Other),
            ("x-compute-characters", Part::Other),
        ],
    },
    Form {
        kind: MetricsKind::Ollama,
        inside: None,
        unit_ms: 1e-6,
        omits_zero: true,
        fields: &[
            ("total_duration", Part::Total),
            ("load_duration", Part::Load),
            ("prompt_eval_duration", Part::Prefill),
            ("eval_duration", Part::Decode),
            ("prompt_eval_count", Part::InputTokens),
            ("eval_count", Part::OutputTokens),
        ],
    },
    // `prompt_n` leaves out what the cache held.
    Form {
        kind: MetricsKind::LlamaCpp,
        inside: Some("timings"),
        unit_ms: 1.0,
        omits_zero: false,
        fields: &[
            ("prompt_ms", Part::Prefill),
            ("predicted_ms", Part::Decode),
            ("prompt_n", Part::InputTokens),
            ("cache_n", Part::InputTokens),
            ("predicted_n", Part::OutputTokens),
            ("prompt_per_token_ms", Part::Other),
            ("prompt_per_second", Part::Other),
            ("predicted_per_token_ms", Part::Other),
            ("predicted_per_second", Part::Other),
        ],
    },
    // The response's duration is LiteLLM's own and contains the overhead.
    Form {
        kind: MetricsKind::LitellmHeaders,
        inside: None,
        unit_ms: 1.0,
        omits_zero: false,
        fields: &[
            ("x-litellm-overhead-duration-ms", Part::Gateway),
            ("x-litellm-response-duration-ms", Part::Other),
            ("x-litellm-callback-duration-ms", Part::Other),
        ],
    },
];

impl OwnTiming {
    /// Reads `response_metrics`; without a `kind` it is vLLM's.
    ///
    /// # Errors
    /// Something that is no object, or a `kind` that is not known.
    pub fn take(body: &mut ClientRecordBody) -> Result<Self, FieldError> {
        let Some(given) = body.response_metrics.value(FIELD)? else { return Ok(Self::default()) };
        let mut given = Fields::nested(FIELD, given);
        let kind = kind(&mut given)?;
        let mut timing = Self { metrics: ResponseMetrics { kind, ..Default::default() }, ..Self::default() };
        match FORMS.iter().find(|form| form.kind == kind) {
            Some(form) => body.ignored_fields += form.read(given, &mut timing)?,
            None => body.ignored_fields += server_timing::read(given, &mut timing),
        }
        Ok(timing)
    }

    /// The times, where there are any.
    pub fn metrics(&self) -> Option<ResponseMetrics> {
        (!self.metrics.is_empty()).then_some(self.metrics)
    }

    fn add(&mut self, part: Part, time: Nanos) {
        let metrics = &mut self.metrics;
        let place = match part {
            Part::Total => &mut metrics.total,
            Part::Gateway => &mut metrics.gateway,
            Part::Queue | Part::Load => &mut metrics.queue,
            Part::Prefill => &mut metrics.prefill,
            Part::Decode => &mut metrics.decode,
            Part::Inference => &mut metrics.inference,
            Part::InputTokens | Part::OutputTokens | Part::Other => return,
        };
        *place = Some(place.unwrap_or_default() + time);
        if part == Part::Load {
            self.cold_start = Some(time >= COLD_LOAD);
        }
    }
}

fn kind(given: &mut Fields) -> Result<MetricsKind, FieldError> {
    let Some(name) = given.raw_text("kind")? else { return Ok(MetricsKind::default()) };
    MetricsKind::from_name(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = MetricsKind::ALL.iter().map(|kind| kind.name()).collect();
        given.error("kind", format!("is none of {}; without it the timing is read as vLLM's", names.join(", ")))
    })
}

impl Form {
    /// Reads the object, and returns how many of its members are not known.
    fn read(&self, mut given: Fields, timing: &mut OwnTiming) -> Result<u64, FieldError> {
        let mut ignored = 0;
        if let Some(mut inner) = self.inside.map(|name| given.object(name)).transpose()?.flatten() {
            self.read_fields(&mut inner, timing);
            ignored += inner.left();
        }
        self.read_fields(&mut given, timing);
        ignored += given.left();
        let ResponseMetrics { prefill, decode, .. } = &mut timing.metrics;
        if self.omits_zero && (prefill.is_some() || decode.is_some()) {
            prefill.get_or_insert_default();
            decode.get_or_insert_default();
        }
        Ok(ignored)
    }

    /// A time or count that is negative, infinite or no number is its server's way to say that it does not know.
    fn read_fields(&self, given: &mut Fields, timing: &mut OwnTiming) {
        for (name, part) in self.fields {
            let Some(number) = given.lenient_number(name) else { continue };
            let tokens = match part {
                Part::InputTokens => &mut timing.input_tokens,
                Part::OutputTokens => &mut timing.output_tokens,
                _ => {
                    if let Some(time) = super::fields::time(number * self.unit_ms) {
                        timing.add(*part, time);
                    }
                    continue;
                }
            };
            if (0.0..1e15).contains(&number) {
                *tokens = Some(tokens.unwrap_or_default() + number as i64);
            }
        }
    }
}

#[cfg(test)]
mod tests;
