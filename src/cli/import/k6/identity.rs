//! Which request a point belongs to.

use super::point::Labels;
use model::{SpanId, TraceId};
use normalise::TraceContext;

/// The ids under which a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    pub trace_id: TraceId,
    /// The client's span.
    pub span_id: Option<SpanId>,
    /// The traceparent's sampled flag, where there is a traceparent.
    pub sampled: Option<bool>,
}

/// Why there are none, and what to do.
pub const NO_ID: &str = "a request without trace_id in its metadata or tags; send it through clients/k6/tracejoin.js, or \
                         name the requests to import with --name or --url";
const DISAGREE: &str = "a request whose traceparent is not that of its trace_id and span_id; set one of them only";

impl Identity {
    /// From metadata, else tags; from `trace_id` and `span_id`, else `traceparent`.
    ///
    /// # Errors
    /// A reason that is one of few.
    pub fn of(labels: &Labels) -> Result<Self, String> {
        let parent = labels.any("traceparent").map(str::parse::<TraceContext>).transpose();
        let parent = parent.map_err(|error| format!("a request whose traceparent {error}"))?;
        let trace_id = labels.any("trace_id").map(str::parse::<TraceId>).transpose();
        let trace_id = trace_id
            .map_err(|error| format!("a request whose trace_id {error}; set 32 hexadecimal digits, not all zero"))?;
        let span_id = labels.any("span_id").map(str::parse::<SpanId>).transpose();
        let span_id = span_id
            .map_err(|error| format!("a request whose span_id {error}; set 16 hexadecimal digits, not all zero"))?;
        let Some(parent) = parent else {
            let trace_id = trace_id.ok_or(NO_ID)?;
            return Ok(Self { trace_id, span_id, sampled: None });
        };
        let agrees =
            trace_id.is_none_or(|id| id == parent.trace_id) && (span_id.is_none() || span_id == parent.span_id);
        if !agrees {
            return Err(DISAGREE.to_owned());
        }
        Ok(Self { trace_id: parent.trace_id, span_id: parent.span_id, sampled: parent.sampled })
    }

    /// The traceparent that carries the same; `None` where only a traceparent that was sent would tell the flag.
    pub fn traceparent(&self) -> Option<String> {
        let (span_id, sampled) = self.span_id.zip(self.sampled)?;
        Some(format!("00-{}-{span_id}-{:02x}", self.trace_id, u8::from(sampled)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn labels(tags: &[(&str, &str)], metadata: &[(&str, &str)]) -> Labels {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Labels { tags: map(tags), metadata: map(metadata) }
    }

    #[test]
    fn ids_come_from_metadata_then_tags_then_a_traceparent() {
        let parent = format!("00-{TRACE}-{SPAN}-00");
        let other = "1".repeat(32);
        let plain = Identity { trace_id: TRACE.parse().expect("an id"), span_id: SPAN.parse().ok(), sampled: None };
        let unsampled = Identity { sampled: Some(false), ..plain };
        for (tags, metadata, want) in [
            (vec![("trace_id", &*other)], vec![("trace_id", TRACE), ("span_id", SPAN)], plain),
            (vec![("trace_id", TRACE), ("span_id", SPAN)], vec![], plain),
            (vec![], vec![("traceparent", &*parent)], unsampled),
            (vec![("traceparent", &*parent)], vec![("trace_id", TRACE)], unsampled),
        ] {
            assert_eq!(Identity::of(&labels(&tags, &metadata)), Ok(want));
        }
        assert_eq!(unsampled.traceparent(), Some(parent));
        assert_eq!(plain.traceparent(), None);
    }

    #[test]
    fn bad_ids_are_refused_by_reason() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let zero = "0".repeat(32);
        for (metadata, reason) in [
            (vec![], "without trace_id"),
            (vec![("trace_id", "")], "without trace_id"),
            (vec![("trace_id", "xyz")], "whose trace_id has 1 bytes"),
            (vec![("trace_id", &*zero)], "whose trace_id is all zeros"),
            (vec![("trace_id", TRACE), ("span_id", "zz")], "whose span_id has"),
            (vec![("traceparent", "00-1")], "whose traceparent is not of the form"),
            (vec![("trace_id", &TRACE.replace('0', "1")), ("traceparent", &*parent)], "whose traceparent is not that"),
        ] {
            let error = Identity::of(&labels(&[], &metadata)).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }
}
