//! Token counts that a stream tells.

use serde_json::Value;

/// Tokens of one request, as its server counts them; what it does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the prompt, cached ones included.
    pub input: Option<i64>,
    /// Of the answer, reasoning included.
    pub output: Option<i64>,
    /// Of the answer's reasoning.
    pub reasoning: Option<i64>,
}

/// Where a server puts its counts: the event itself is the last (TGI's `details`, llama.cpp).
const PLACES: &[&str] =
    &["/usage", "/response/usage", "/message/usage", "/usageMetadata", "/delta/usage/tokens", "/details", ""];
const INPUT: &[&str] = &["prompt_tokens", "input_tokens", "promptTokenCount", "tokens_evaluated"];
const OUTPUT: &[&str] =
    &["completion_tokens", "output_tokens", "candidatesTokenCount", "generated_tokens", "tokens_predicted"];
const REASONING: &[&str] = &["/completion_tokens_details/reasoning_tokens", "/output_tokens_details/reasoning_tokens"];
/// Anthropic leaves these out of `input_tokens`.
const CACHED: &[&str] = &["cache_creation_input_tokens", "cache_read_input_tokens"];

impl Usage {
    pub fn read(event: &Value) -> Self {
        let told = PLACES.iter().filter_map(|place| event.pointer(place)).map(Self::at);
        told.fold(Self::default(), |known, next| known.or(next))
    }

    /// With what a later event tells, which stands: counts in the middle of a stream are of what came so far.
    pub fn updated(self, later: Self) -> Self {
        later.or(self)
    }

    fn or(self, other: Self) -> Self {
        Self {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            reasoning: self.reasoning.or(other.reasoning),
        }
    }

    fn at(counts: &Value) -> Self {
        let count = |value: &Value| value.as_i64().filter(|count| *count >= 0);
        let named = |names: &[&str]| names.iter().find_map(|name| count(counts.get(name)?));
        let cached: i64 = CACHED.iter().filter_map(|name| count(counts.get(name)?)).sum();
        Self {
            input: named(INPUT).map(|input| input.saturating_add(cached)),
            output: named(OUTPUT),
            reasoning: REASONING.iter().find_map(|pointer| count(counts.pointer(pointer)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(event: Value) -> (Option<i64>, Option<i64>) {
        let usage = Usage::read(&event);
        (usage.input, usage.output)
    }

    #[test]
    fn every_server_has_its_own_names() {
        let both = (Some(4), Some(9));
        assert_eq!(counts(json!({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 9}})), both);
        assert_eq!(counts(json!({"response": {"usage": {"input_tokens": 4, "output_tokens": 9}}})), both);
        assert_eq!(counts(json!({"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 9}})), both);
        assert_eq!(counts(json!({"stop": true, "tokens_evaluated": 4, "tokens_predicted": 9})), both);
        assert_eq!(counts(json!({"details": {"generated_tokens": 9}})), (None, Some(9)));
        assert_eq!(counts(json!({"usage": null, "choices": []})), (None, None));
        assert_eq!(counts(json!({"usage": {"prompt_tokens": -1}})), (None, None));
    }

    #[test]
    fn a_prompt_counts_with_what_was_cached() {
        let start =
            json!({"message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 100, "output_tokens": 1}}});
        let end = json!({"type": "message_delta", "usage": {"output_tokens": 9}});
        let usage = Usage::read(&start).updated(Usage::read(&end));
        assert_eq!((usage.input, usage.output), (Some(104), Some(9)));
    }

    #[test]
    fn reasoning_is_counted_apart() {
        let event = json!({"usage": {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}}});
        assert_eq!(Usage::read(&event), Usage { input: None, output: Some(9), reasoning: Some(5) });
    }
}
