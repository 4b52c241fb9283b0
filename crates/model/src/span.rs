//! A server's observation: spans, trimmed to what later stages need.

use std::borrow::Cow;
use std::sync::Arc;

use super::id::SpanId;
use super::time::{Interval, UnixNanos};

/// A scalar attribute value, or a list of texts.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Str(String),
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// A floating-point number, perhaps not finite: readers decide.
    Double(f64),
    /// A list, its members as texts.
    List(Vec<String>),
}

/// Attributes sorted by key, each key once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    pairs: Vec<(Cow<'static, str>, Value)>,
    /// The [`bit`]s of all keys: dialects ask for many keys, and most of them are seen not to be there at once.
    bits: u64,
}

impl Attributes {
    /// Sorts by key; of equal keys the last value wins, as in OTLP's maps.
    pub fn new(mut pairs: Vec<(Cow<'static, str>, Value)>) -> Self {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut kept.1, &mut later.1);
            }
            same
        });
        let bits = pairs.iter().fold(0, |bits, (key, _)| bits | bit(key));
        Self { pairs, bits }
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        if self.bits & bit(key) == 0 {
            return None;
        }
        self.pairs.binary_search_by(|pair| pair.0.as_ref().cmp(key)).ok().map(|at| &self.pairs[at].1)
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Key and value, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// One bit of 64 for a key, from its length and two of its bytes: quick to tell, and equal for equal keys.
fn bit(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
    1 << ((bytes.len() + 5 * byte(bytes.len() / 2) + 11 * byte(bytes.len().saturating_sub(2))) % 64)
}

/// OTLP's span kind, under OTLP's number, which is also the one that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SpanKind {
    /// Not set.
    Unspecified = 0,
    /// Work inside a process.
    Internal = 1,
    /// Answers a remote caller.
    Server = 2,
    /// Calls a remote server.
    Client = 3,
    /// Puts a message.
    Producer = 4,
    /// Takes a message.
    Consumer = 5,
}

impl SpanKind {
    /// From OTLP's number; an unknown one is unspecified, as protobuf readers do.
    pub const fn from_number(number: i32) -> Self {
        match number {
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            _ => Self::Unspecified,
        }
    }

    /// The lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }
}

/// Who emitted a span: the trimmed resource and a digest of the whole one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource {
    /// Attributes on the allow-list.
    pub attributes: Attributes,
    /// A digest of all attributes as received: two resources with one digest are the same resource.
    pub digest: u64,
}

/// Spans of one clock domain share one clock, so their readings may be compared (design, section 2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClockDomain(pub String);

impl Resource {
    /// A text attribute, where it is told and not empty.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.attributes.get(key)? {
            Value::Str(text) if text.is_empty() => None,
            Value::Str(text) => Some(Cow::Borrowed(text)),
            Value::Int(number) => Some(Cow::Owned(number.to_string())),
            _ => None,
        }
    }

    /// `service.name`, or `unknown_service`.
    pub fn service(&self) -> Cow<'_, str> {
        self.text("service.name").unwrap_or(Cow::Borrowed("unknown_service"))
    }

    /// Same (`service.namespace`, `service.name`, `service.instance.id`); else same (`service.name`, host, container or
    /// pod, process id); else same resource.
    pub fn clock_domain(&self) -> ClockDomain {
        let text = |key: &str| self.text(key).unwrap_or_default();
        let service = text("service.name");
        let instance = text("service.instance.id");
        if !instance.is_empty() {
            return ClockDomain(format!("{}/{service}/{instance}", text("service.namespace")));
        }
        let first =
            |keys: &[&str]| keys.iter().map(|key| text(key)).find(|value| !value.is_empty()).unwrap_or_default();
        let host = first(&["host.id", "host.name"]);
        let unit = first(&["container.id", "k8s.pod.uid", "k8s.pod.name"]);
        let process = text("process.pid");
        let told = [&host, &unit, &process].into_iter().any(|part| !part.is_empty());
        if !service.is_empty() && told {
            return ClockDomain(format!("{service}@{host}/{unit}/{process}"));
        }
        ClockDomain(format!("{service}#{:016x}", self.digest))
    }
}

/// The instrumentation scope that made a span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Its name, perhaps empty.
    pub name: String,
}

/// Something that happened at an instant of a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    pub name: String,
    /// When, by the span's own clock.
    pub at: UnixNanos,
    /// Attributes on the allow-list.
    pub attributes: Attributes,
}

/// One span, trimmed: only what the allow-list names is kept of its attributes and events.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub span_id: SpanId,
    /// The parent's id; an empty or all-zero one on the wire means none.
    pub parent: Option<SpanId>,
    /// Its name, bounded in length.
    pub name: String,
    /// OTLP's kind.
    pub kind: SpanKind,
    /// Start, by its own clock.
    pub start: UnixNanos,
    /// End, by its own clock; `None` where it was not told.
    pub end: Option<UnixNanos>,
    /// Attributes on the allow-list.
    pub attributes: Attributes,
    /// Events on the allow-list, by time.
    pub events: Vec<SpanEvent>,
    /// Whether the status is ERROR.
    pub error: bool,
    /// Whether a text of it held U+0000, which was replaced.
    pub repaired: bool,
    /// What made it.
    pub scope: Arc<Scope>,
    /// Who emitted it.
    pub resource: Arc<Resource>,
}

impl Span {
    /// Its stretch of its own clock; `None` where the end is missing or lies before the start.
    pub fn interval(&self) -> Option<Interval> {
        Interval::new(self.start, self.end?)
    }
}

/// The spans of one trace that arrived together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fragment {
    pub spans: Vec<Span>,
    /// How many more there were than are kept of one trace.
    pub dropped: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_keys_the_last_value_wins() {
        let pairs = [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)];
        let attributes = Attributes::new(pairs.map(|(key, value)| (Cow::Borrowed(key), Value::Int(value))).to_vec());
        assert_eq!(attributes.iter().collect::<Vec<_>>(), [("a", &Value::Int(4)), ("b", &Value::Int(5))]);
    }

    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let keys: Vec<String> = (0..200).map(|number| format!("key.{number}")).collect();
        let pairs = |keys: &[String]| keys.iter().map(|key| (Cow::Owned(key.clone()), Value::Bool(true))).collect();
        for count in [0, 1, 7, 100] {
            let attributes = Attributes::new(pairs(&keys[..count]));
            for (place, key) in keys.iter().enumerate() {
                assert_eq!(attributes.has(key), place < count, "{key} of {count}");
            }
        }
    }
}
