//! The allow-list: what is not named here is dropped unread, so that prompts, answers and keys are never stored.

use std::borrow::Cow;
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

/// What may be kept: what the built-in dialects read, and what the rules of a configuration file need beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    attributes: HashSet<String>,
    resource: HashSet<String>,
    events: HashSet<String>,
}

impl AllowList {
    /// Adds an attribute of spans.
    pub fn allow_attribute(&mut self, key: &str) {
        self.attributes.insert(key.to_owned());
    }

    /// Adds an attribute of spans and of their resources.
    pub fn allow_label(&mut self, key: &str) {
        self.allow_attribute(key);
        self.resource.insert(key.to_owned());
    }

    /// Adds an event.
    pub fn allow_event(&mut self, name: &str) {
        self.events.insert(name.to_owned());
    }

    /// The key of a span's attribute, where it may be kept.
    pub fn span_key(&self, key: &str) -> Option<Cow<'static, str>> {
        SPAN.get(key).map(|known| Cow::Borrowed(*known)).or_else(|| owned(&self.attributes, key))
    }

    /// The key of a resource's attribute, where it may be kept.
    pub fn resource_key(&self, key: &str) -> Option<Cow<'static, str>> {
        let known = RESOURCE.iter().copied().chain(dialect::resource_keys()).find(|known| *known == key);
        known.map(Cow::Borrowed).or_else(|| owned(&self.resource, key))
    }

    /// Whether an event may be kept.
    pub fn keeps_event(&self, name: &str) -> bool {
        EVENT.contains(name) || self.events.contains(name)
    }
}

fn owned(keys: &HashSet<String>, key: &str) -> Option<Cow<'static, str>> {
    keys.get(key).map(|known| Cow::Owned(known.clone()))
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
            assert_eq!(AllowList::default().span_key(key), None, "{key}");
            assert_eq!(AllowList::default().resource_key(key), None, "{key}");
        }
        assert!(!AllowList::default().keeps_event("gen_ai.user.message"));
    }

    #[test]
    fn what_dialects_read_is_on_the_list() {
        for key in ["llm.phase", "gen_ai.latency.time_in_queue", "http.status_code", "gen_ai.usage.output_tokens"] {
            assert_eq!(AllowList::default().span_key(key).as_deref(), Some(key));
        }
        assert!(AllowList::default().keeps_event("first_token"));
    }

    #[test]
    fn rules_extend_the_list() {
        let mut allowed = AllowList::default();
        allowed.allow_attribute("acme.queue_ms");
        allowed.allow_label("acme.pool");
        allowed.allow_event("acme.first");
        let kept = |key: &str| (allowed.span_key(key).is_some(), allowed.resource_key(key).is_some());
        assert_eq!(kept("acme.queue_ms"), (true, false));
        assert_eq!(kept("acme.pool"), (true, true));
        assert_eq!(kept("acme.other"), (false, false));
        assert!(allowed.keeps_event("acme.first") && !allowed.keeps_event("acme.last"));
    }
}
