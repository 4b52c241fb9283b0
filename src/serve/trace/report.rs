//! One request as `key=value` lines.

use std::fmt::Write;

use super::view::{RequestAnswer, TraceAnswer};

/// One `key=value` a line, in milliseconds without trailing zeros; what is not known is `unknown`. Several requests
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
    for (key, value) in lines {
        // Writing to a String cannot fail. Rust shows the shortest decimal that reads back as the same number.
        let _ = match value {
            Some(value) => writeln!(text, "{key}={value}"),
            None => writeln!(text, "{key}=unknown"),
        };
    }
    text
}
