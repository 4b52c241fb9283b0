//! Small codes for texts: well-known ones are never written, the others are written once a body.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::DecodeError;

/// Texts with a fixed code, their place in this list. Append only: bodies on disk refer to the places. The first 64 fit
/// one byte.
const WELL_KNOWN: &[&str] = &[
    "",
    "auth.check",
    "request.prepare",
    "route.select",
    "inference.acquire_slot",
    "inference.generate",
    "provider.request",
    "response.write",
    "first_token",
    "llm.phase",
    "queue",
    "generation",
    "gateway",
    "provider",
    "llm.model",
    "llm.pool",
    "llm.priority",
    "llm.queue.outcome",
    "acquired",
    "normal",
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "http.status_code",
    "http.method",
    "POST",
    "GET",
    "POST /v1/chat/completions",
    "/v1/chat/completions",
    "service.name",
    "service.namespace",
    "service.instance.id",
    "host.name",
    "host.id",
    "container.id",
    "k8s.pod.name",
    "k8s.pod.uid",
    "process.pid",
    "gen_ai.operation.name",
    "gen_ai.system",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.latency.time_in_queue",
    "gen_ai.latency.time_to_first_token",
    "gen_ai.latency.e2e",
    "gen_ai.latency.time_in_model_prefill",
    "gen_ai.latency.time_in_model_decode",
    "gen_ai.latency.time_in_model_inference",
    "gen_ai.request.id",
    "gen_ai.response.id",
    "llm_request",
    "litellm_request",
    "raw_gen_ai_request",
    "chat",
    "server.address",
    "upstream_cluster",
    "peer.address",
    "region",
    "provider.route",
    "gen_ai.response.time_to_first_chunk",
    "litellm.call_id",
    "x-request-id",
    "telemetry.sdk.language",
    "llm.first_token",
    "llm.input_tokens",
    "llm.output_tokens",
    "llm.cold_start",
    "llm.region",
    "llm.provider",
    "http.target",
    "url.path",
];

static CODES: LazyLock<HashMap<&'static str, u32>> =
    LazyLock::new(|| WELL_KNOWN.iter().zip(0..).map(|(text, code)| (*text, code)).collect());

/// Gives texts their codes while a body is written.
#[derive(Default)]
pub(super) struct TextWriter<'a> {
    own: HashMap<&'a str, u32>,
    list: Vec<String>,
}

impl<'a> TextWriter<'a> {
    /// The code of a text: even for well-known ones, odd for those that the body carries itself.
    pub(super) fn code(&mut self, text: &'a str) -> u32 {
        if let Some(code) = CODES.get(text) {
            return code << 1;
        }
        let next = self.list.len() as u32;
        let code = *self.own.entry(text).or_insert_with(|| {
            self.list.push(text.to_owned());
            next
        });
        code << 1 | 1
    }

    /// The texts that the body must carry.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.list
    }
}

/// The text of a code.
pub(super) fn read_text(texts: &[String], code: u32) -> Result<Cow<'static, str>, DecodeError> {
    let place = (code >> 1) as usize;
    if code & 1 == 0 {
        let text = WELL_KNOWN.get(place).ok_or_else(|| DecodeError::damaged("it names an unknown text code"))?;
        return Ok(Cow::Borrowed(text));
    }
    let text = texts.get(place).ok_or_else(|| DecodeError::damaged("it names a text that it does not carry"))?;
    Ok(Cow::Owned(text.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_readable() {
        assert_eq!(CODES.len(), WELL_KNOWN.len(), "a text stands twice in the list");
        let mut writer = TextWriter::default();
        let known = writer.code("llm.phase");
        let own = writer.code("my.gateway");
        assert_eq!(writer.code("my.gateway"), own);
        let texts = writer.into_texts();
        assert_eq!(texts, ["my.gateway"]);
        assert_eq!(read_text(&texts, known), Ok(Cow::Borrowed("llm.phase")));
        assert_eq!(read_text(&texts, own), Ok(Cow::Owned("my.gateway".to_owned())));
    }

    #[test]
    fn the_list_only_grows_at_its_end() {
        assert_eq!(WELL_KNOWN[9], "llm.phase");
        assert_eq!(WELL_KNOWN[29], "service.name");
        assert_eq!(WELL_KNOWN[55], "llm_request");
    }

    #[test]
    fn a_code_without_a_text_is_an_error() {
        assert!(read_text(&[], 1).is_err());
        assert!(read_text(&[], u32::MAX - 1).is_err());
    }
}
