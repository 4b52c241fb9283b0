//! One request as `key=value` lines.

use std::fmt::Write;

use api::{RequestAnswer, TraceAnswer, TtftAnswer};

/// One `key=value` a line, in milliseconds without trailing zeros; what is not known is `unknown`. Lines of the time to
/// the first token follow where both sides tell it. Several requests
/// follow each other, an empty line between them.
pub fn text(answer: &TraceAnswer) -> String {
    let blocks: Vec<String> = answer.requests().iter().map(block).collect();
    blocks.join("\n")
}

fn block(request: &RequestAnswer) -> String {
    let phases = request.phases.as_ref();
    let lines = [
        ("client_total_ms", request.client.as_ref().and_then(|client| client.duration_ms)),
        ("server_root_ms", request.server.as_ref().map(|server| server.total_ms)),
        ("network_envelope_ms", phases.and_then(|phases| phases.network_envelope_ms)),
        ("gateway_ms", phases.and_then(|phases| phases.gateway_ms)),
        ("gpu_queue_ms", phases.and_then(|phases| phases.gpu_queue_ms)),
        ("generation_ms", phases.and_then(|phases| phases.generation_ms)),
        ("provider_ms", phases.map(|phases| phases.provider_ms)),
        ("upstream_envelope_ms", phases.map(|phases| phases.upstream_envelope_ms)),
        ("unattributed_server_ms", phases.map(|phases| phases.unattributed_ms)),
    ];
    let mut text = format!("trace_id={}\n", request.trace_id);
    let first_token = request.ttft.as_ref().map(|ttft| to_first_token(request, ttft));
    for (key, value) in lines.into_iter().chain(first_token.into_iter().flatten()) {
        // Writing to a String cannot fail. Rust shows the shortest decimal that reads back as the same number.
        let _ = match value {
            Some(value) => writeln!(text, "{key}={value}"),
            None => writeln!(text, "{key}=unknown"),
        };
    }
    text
}

/// The second pair: the time to the first token, which `ttft_envelope_ms` and the lines after it add up to.
fn to_first_token(request: &RequestAnswer, ttft: &TtftAnswer) -> [(&'static str, Option<f64>); 9] {
    [
        ("client_ttft_ms", request.client.as_ref().and_then(|client| client.ttft_ms)),
        ("server_ttft_ms", request.server.as_ref().and_then(|server| server.ttft_ms)),
        ("ttft_envelope_ms", Some(ttft.envelope_ms)),
        ("ttft_gateway_ms", ttft.gateway_ms),
        ("ttft_gpu_queue_ms", ttft.gpu_queue_ms),
        ("ttft_generation_ms", ttft.generation_ms),
        ("ttft_provider_ms", Some(ttft.provider_ms)),
        ("ttft_upstream_envelope_ms", Some(ttft.upstream_envelope_ms)),
        ("ttft_unattributed_ms", Some(ttft.unattributed_ms)),
    ]
}
