//! What many systems tell in many spellings, always with one meaning: model, tokens, status, ids.

use super::Reading;
use crate::scalar;
use crate::text::REDACTED;
use model::{Dimension, Span, Value};

/// Labels, each with its spellings: the first one that is there decides.
const LABELS: &[(Dimension, &[&str])] = &[
    // The model that answered goes before the one that was asked for.
    (
        Dimension::Model,
        &[
            "llm.model",
            "gen_ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
            "llm.response.model",
            "vllm.request.model",
        ],
    ),
    (Dimension::Provider, &["llm.provider", "gen_ai.provider.name", "gen_ai.system", "llm.system"]),
    (Dimension::Region, &["llm.region", "cloud.region"]),
    (Dimension::Pool, &["llm.pool"]),
    (Dimension::Priority, &["llm.priority"]),
];

/// Providers under names that OpenTelemetry has replaced.
const RENAMED_PROVIDERS: &[(&str, &str)] = &[
    ("az.ai.openai", "azure.ai.openai"),
    ("azure.openai", "azure.ai.openai"),
    ("az.ai.inference", "azure.ai.inference"),
    ("vertex_ai", "gcp.vertex_ai"),
    ("gemini", "gcp.gemini"),
];

const HTTP_STATUS: &[&str] = &["http.response.status_code", "http.status_code"];

const INPUT_TOKENS: &[&str] = &[
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
    "llm.input_tokens",
];

const OUTPUT_TOKENS: &[&str] = &[
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
    "llm.output_tokens",
];

const STREAMING: &[&str] = &[
    "llm.streaming",
    "gen_ai.request.stream",
    "gen_ai.request.streaming",
    "gen_ai.is_streaming",
    "llm.is_streaming",
    "litellm.request.streaming",
    "is_streaming",
];

const COLD_START: &[&str] = &["cold_start", "llm.cold_start", "faas.coldstart"];

const REQUEST_IDS: &[&str] = &[
    "llm.request_id",
    "gen_ai.request.id",
    "gen_ai.response.id",
    "litellm.call_id",
    "guid:x-request-id",
    "http.request.header.x-request-id",
    "http.request.header.x_request_id",
    "http.response.header.x-request-id",
    "http.response.header.x_request_id",
    "x_request_id",
    "x_dynamo_request_id",
    "request_id",
    "rid",
    "triton.request_id",
];

/// The attributes read here.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let labels = LABELS.iter().flat_map(|(_, keys)| *keys);
    let others = [HTTP_STATUS, INPUT_TOKENS, OUTPUT_TOKENS, STREAMING, COLD_START, REQUEST_IDS];
    labels.chain(others.into_iter().flatten()).copied()
}

/// Fills in what the dialect has left open.
pub fn fill(span: &Span, reading: &mut Reading) {
    reading.http_status = reading.http_status.or_else(|| first(span, HTTP_STATUS, scalar::count));
    reading.input_tokens = reading.input_tokens.or_else(|| first(span, INPUT_TOKENS, scalar::count));
    reading.output_tokens = reading.output_tokens.or_else(|| first(span, OUTPUT_TOKENS, scalar::count));
    reading.streaming = reading.streaming.or_else(|| first(span, STREAMING, scalar::boolean));
    reading.cold_start = reading.cold_start.or_else(|| first(span, COLD_START, scalar::boolean));
    fill_labels(span, reading);
    for key in REQUEST_IDS {
        let Some(id) = span.attributes.get(key).and_then(scalar::text) else { continue };
        // What is left of a scrubbed id is no id: many requests would share it.
        let usable = !id.contains(REDACTED) && !reading.request_ids.iter().any(|known| *known == id);
        if usable {
            reading.request_ids.push(id.into_owned());
        }
    }
}

/// The span's own word goes before its resource's.
fn fill_labels(span: &Span, reading: &mut Reading) {
    for (dimension, keys) in LABELS {
        if reading.dimensions.get(*dimension).is_some() {
            continue;
        }
        let on_span = keys.iter().find_map(|key| span.attributes.get(key).and_then(scalar::text));
        let told = on_span.or_else(|| keys.iter().find_map(|key| span.resource.text(key)));
        let Some(told) = told else { continue };
        let value = match dimension {
            Dimension::Provider => renamed(&told).to_owned(),
            _ => told.into_owned(),
        };
        reading.dimensions.set(*dimension, Some(value));
    }
}

fn renamed(provider: &str) -> &str {
    RENAMED_PROVIDERS.iter().find(|(old, _)| *old == provider).map_or(provider, |(_, new)| new)
}

fn first<T>(span: &Span, keys: &[&str], read: fn(&Value) -> Option<T>) -> Option<T> {
    keys.iter().find_map(|key| span.attributes.get(key).and_then(read))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use super::*;
    use crate::dialect::{self, sample};
    use model::{Attributes, Resource, SpanKind};

    fn read(attributes: &[(&'static str, Value)]) -> Reading {
        dialect::read(&sample::span("x", SpanKind::Internal, 5, attributes))
    }

    #[test]
    fn every_spelling_is_read() {
        for key in INPUT_TOKENS {
            assert_eq!(read(&[(key, sample::text("412"))]).input_tokens, Some(412), "{key}");
        }
        for key in OUTPUT_TOKENS {
            assert_eq!(read(&[(key, Value::Double(180.0))]).output_tokens, Some(180), "{key}");
        }
        for key in STREAMING {
            assert_eq!(read(&[(key, sample::text("True"))]).streaming, Some(true), "{key}");
        }
        for key in COLD_START {
            assert_eq!(read(&[(key, Value::Bool(true))]).cold_start, Some(true), "{key}");
        }
        for key in REQUEST_IDS {
            assert_eq!(read(&[(key, sample::text("r-1"))]).request_ids, vec!["r-1".to_owned()], "{key}");
        }
        for (dimension, keys) in LABELS {
            for key in *keys {
                assert_eq!(read(&[(key, sample::text("v"))]).dimensions.get(*dimension), Some("v"), "{key}");
            }
        }
    }

    #[test]
    fn old_provider_names_become_the_new_ones() {
        let reading = read(&[("gen_ai.system", sample::text("az.ai.openai"))]);
        assert_eq!(reading.dimensions.get(Dimension::Provider), Some("azure.ai.openai"));
    }

    #[test]
    fn the_resource_tells_what_the_span_does_not() {
        let mut span = sample::span("x", SpanKind::Server, 5, &[("llm.pool", sample::text("h100"))]);
        let attributes = [("cloud.region", "eu-1"), ("llm.pool", "a100")]
            .map(|(key, value)| (Cow::Borrowed(key), sample::text(value)));
        span.resource = Arc::new(Resource { attributes: Attributes::new(attributes.to_vec()), digest: 0 });
        let reading = dialect::read(&span);
        assert_eq!(reading.dimensions.get(Dimension::Region), Some("eu-1"));
        assert_eq!(reading.dimensions.get(Dimension::Pool), Some("h100"));
    }
}
