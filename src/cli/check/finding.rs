//! Which parts of a request's trace arrived, and what to do for each that did not.

use serde::Serialize;

use api::RequestAnswer;

/// Whether one part of the trace arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub part: &'static str,
    /// Whether it arrived.
    pub ok: bool,
    /// What was seen, or what to do.
    pub detail: String,
}

/// Looks at a request whose client sent `client_span` as its parent id.
pub fn findings(request: &RequestAnswer, client_span: &str) -> Vec<Finding> {
    vec![gateway(request), client_parent(request, client_span), queue(request), generation(request)]
}

fn gateway(request: &RequestAnswer) -> Finding {
    let part = "gateway span";
    if let Some(server) = &request.server {
        let entry = request.spans.iter().find(|span| span.span_id == server.entry_span_id);
        let (name, service) = entry.map_or(("?", "?"), |span| (span.name.as_str(), span.service.as_str()));
        return Finding { part, ok: true, detail: format!("{name} of {service}, {} ms", server.total_ms) };
    }
    let detail = if request.spans.is_empty() {
        "no span of this trace arrived: have the gateway export OTLP to this server, read the traceparent header (W3C \
         propagator), and sample what a caller sampled (parentbased_always_on)"
            .to_owned()
    } else {
        let names: Vec<&str> = request.spans.iter().map(|span| span.name.as_str()).collect();
        format!(
            "none of the spans that arrived ({}) is a server's: have the gateway make a span of kind SERVER for each \
             request",
            names.join(", ")
        )
    };
    Finding { part, ok: false, detail }
}

fn client_parent(request: &RequestAnswer, client_span: &str) -> Finding {
    let part = "client parent";
    let child = request.spans.iter().find(|span| span.parent_span_id.as_deref() == Some(client_span));
    match child {
        Some(span) => {
            Finding { part, ok: true, detail: format!("{} names the client's span as its parent", span.name) }
        }
        None if request.spans.is_empty() => {
            Finding { part, ok: false, detail: "no span of this trace arrived".to_owned() }
        }
        None => {
            let detail = "no span names the client's span as its parent: something before the gateway replaces the \
                          traceparent's parent id without exporting its own span; export that too, or let the header \
                          pass"
                .to_owned();
            Finding { part, ok: false, detail }
        }
    }
}

fn queue(request: &RequestAnswer) -> Finding {
    let part = "queue";
    let advice = "nothing tells the wait for a slot: give it a span with llm.phase=queue, or let the engine export its \
                  own spans (vLLM: --otlp-traces-endpoint)";
    let told = request.phases.as_ref().and_then(|phases| phases.gpu_queue_ms);
    told_or(part, told, advice)
}

fn generation(request: &RequestAnswer) -> Finding {
    let part = "generation";
    let phases = request.phases.as_ref();
    let provider = phases.map(|phases| phases.provider_ms).filter(|millis| *millis > 0.0);
    match (phases.and_then(|phases| phases.generation_ms), provider) {
        (None, Some(millis)) => Finding {
            part,
            ok: true,
            detail: format!("{millis} ms in a provider that does not disclose its queue or generation"),
        },
        (told, _) => {
            let advice = "nothing tells inference apart: give it a span with llm.phase=generation, or let the engine \
                          export its own spans";
            told_or(part, told, advice)
        }
    }
}

fn told_or(part: &'static str, told: Option<f64>, advice: &str) -> Finding {
    match told {
        Some(millis) => Finding { part, ok: true, detail: format!("{millis} ms") },
        None => Finding { part, ok: false, detail: advice.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::trace::tests::explained;

    const CLIENT: &str = "00000000006acfc0";

    fn missing(request: &RequestAnswer) -> Vec<&'static str> {
        findings(request, CLIENT).into_iter().filter(|finding| !finding.ok).map(|finding| finding.part).collect()
    }

    #[test]
    fn a_whole_trace_has_every_part() {
        assert_eq!(missing(&RequestAnswer::from(&explained())), [] as [&str; 0]);
    }

    #[test]
    fn each_missing_part_is_named() {
        let mut request = RequestAnswer::from(&explained());
        request.spans[0].parent_span_id = Some("00000000000000ff".to_owned());
        if let Some(phases) = &mut request.phases {
            (phases.gpu_queue_ms, phases.generation_ms) = (None, None);
        }
        assert_eq!(missing(&request), ["client parent", "queue", "generation"]);
        if let Some(phases) = &mut request.phases {
            phases.provider_ms = 800.0;
        }
        assert_eq!(missing(&request), ["client parent", "queue"], "an opaque provider is where inference was");
        (request.server, request.phases, request.spans) = (None, None, Vec::new());
        assert_eq!(missing(&request), ["gateway span", "client parent", "queue", "generation"]);
    }
}
