//! The allow-list: what is not named here is dropped unread, so that prompts, answers and keys are never stored.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::dialect;

/// Resource attributes that tell who emitted a span, which clock it had, and where it ran.
const RESOURCE: &[&str] = &[
    "cloud.region",
    "container.id",
    "host.id",
    "host.name",
    "k8s.pod.name",
    "k8s.pod.uid",
    "llm.model",
    "llm.pool",
    "llm.priority",
    "llm.provider",
    "llm.region",
    "process.pid",
    "service.instance.id",
    "service.name",
    "service.namespace",
];

static SPAN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| dialect::keys().collect());

static EVENT: LazyLock<HashSet<&'static str>> = LazyLock::new(|| dialect::events().collect());

/// The key of a span's attribute, where it may be kept.
pub fn span_key(key: &str) -> Option<&'static str> {
    SPAN.get(key).copied()
}

/// The key of a resource's attribute, where it may be kept.
pub fn resource_key(key: &str) -> Option<&'static str> {
    RESOURCE.iter().copied().find(|known| *known == key)
}

/// The name of an event, where it may be kept.
pub fn event_name(name: &str) -> Option<&'static str> {
    EVENT.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_not_on_the_list() {
        for key in [
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.prompt",
            "gen_ai.prompt.0.content",
            "gen_ai.completion.0.content",
            "gen_ai.system_instructions",
            "llm.input_messages.0.message.content",
            "input.value",
            "output.value",
            "http.url",
            "http.target",
            "url.full",
            "url.query",
            "enduser.id",
            "user.email",
            "http.request.header.authorization",
        ] {
            assert_eq!(span_key(key), None, "{key}");
            assert_eq!(resource_key(key), None, "{key}");
        }
        assert_eq!(event_name("gen_ai.user.message"), None);
    }

    #[test]
    fn what_dialects_read_is_on_the_list() {
        for key in ["llm.phase", "gen_ai.latency.time_in_queue", "http.status_code", "gen_ai.usage.output_tokens"] {
            assert_eq!(span_key(key), Some(key));
        }
        assert_eq!(event_name("first_token"), Some("first_token"));
    }
}
