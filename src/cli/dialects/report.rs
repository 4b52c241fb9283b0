//! How a file is read, for a person.

use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;

use super::reading::{File, LaidReading, SpanReading, Trace};
use api::{RequestAnswer, TraceAnswer};

/// The report. Writing to a String cannot fail, so what it returns is not looked at.
pub fn text(file: &File) -> String {
    let spans: usize = file.traces.iter().map(|trace| trace.spans.len()).sum();
    let mut text = format!("spans {spans}, traces {}, messages {}\n", file.traces.len(), file.messages);
    for reason in &file.refused {
        let _ = writeln!(text, "not read: {reason}");
    }
    for trace in &file.traces {
        let _ = write!(text, "\ntrace {}\n\n{}", trace.trace_id, spans_of(trace));
        for request in trace.answer.iter().flat_map(TraceAnswer::requests) {
            let _ = write!(text, "\n{}", outcome(request));
        }
    }
    if !file.dropped_attributes.is_empty() {
        let dropped = file.dropped_attributes.iter().map(|(key, count)| format!("  {key} ({count})\n"));
        let _ =
            write!(text, "\ndropped unread, since no dialect and no rule names it:\n{}", dropped.collect::<String>());
    }
    text
}

fn spans_of(trace: &Trace) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["span", "kind", "service", "ms", "phase", "rule", "tells"]);
    for span in &trace.spans {
        let length = span.duration_ms.map_or_else(|| "invalid".to_owned(), |length| length.to_string());
        let phase = match (span.phase, span.sub) {
            (Some(phase), Some(sub)) => format!("{} ({sub})", phase.name()),
            (Some(phase), None) => phase.name().to_owned(),
            (None, _) => String::new(),
        };
        let rule = if span.dialect.is_empty() { "none".to_owned() } else { format!("{}: {}", span.dialect, span.rule) };
        table.add_row([&span.name, span.kind, &span.service, &length, &phase, &rule, &tells(span).join("\n")]);
    }
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What a span tells beside its interval, and from which of its attributes.
fn tells(span: &SpanReading) -> Vec<String> {
    let mut told: Vec<String> = span.role.iter().map(|role| (*role).to_owned()).collect();
    if span.root {
        told.push("may be an entry".to_owned());
    }
    told.extend(span.laid.iter().map(laid));
    told.extend(span.absent_is_zero.iter().map(|phase| format!("{} is 0 where absent", phase.name())));
    if let Some((token, source)) = span.first_token_ms.zip(span.first_token_source) {
        told.push(format!("first token after {token} ms ({source})"));
    }
    let counts = [("input_tokens", span.input_tokens), ("output_tokens", span.output_tokens)];
    told.extend(counts.iter().filter_map(|(name, count)| count.map(|count| format!("{name} {count}"))));
    let marks = [("streaming", span.streaming), ("cold_start", span.cold_start)];
    told.extend(marks.iter().filter_map(|(name, mark)| mark.map(|mark| format!("{name} {mark}"))));
    told.extend(span.labels.0.iter().map(|(label, value)| format!("{} {value}", label.name())));
    told.extend(span.request_ids.iter().map(|id| format!("request id {id}")));
    told.extend(span.flags.iter().map(|flag| format!("flag {}", flag.name())));
    told.extend(span.attributes.iter().map(|(key, value)| format!("kept {key} = {}", plain(value))));
    told.extend(span.events.iter().map(|(name, at)| format!("kept event {name} at {at} ms")));
    if !span.dropped.is_empty() {
        told.push(format!("dropped {}", span.dropped.len()));
    }
    told
}

fn laid(laid: &LaidReading) -> String {
    let part = laid.sub.map(|sub| format!(" ({sub})")).unwrap_or_default();
    let place = match (laid.anchor, laid.offset_ms) {
        ("start", _) => "from the start".to_owned(),
        ("end", _) => "back from the end".to_owned(),
        ("until_child", Some(offset)) => format!("from {offset} ms, until the first span inside"),
        (_, offset) => format!("from {} ms", offset.unwrap_or_default()),
    };
    format!("{}{part} {} ms {place}", laid.phase.name(), laid.duration_ms)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}

/// What the join makes of a request, without a client's record.
fn outcome(request: &RequestAnswer) -> String {
    let mut text = format!("{} without a client record", request.state.name());
    if !request.flags.is_empty() {
        let _ = write!(text, ", flags {}", request.flags.join(", "));
    }
    text.push('\n');
    let Some(phases) = request.phases.as_ref() else { return text };
    let total = request.server.as_ref().map(|server| server.total_ms);
    let ttft = request.server.as_ref().and_then(|server| server.ttft_ms);
    let lines = [
        ("server_root_ms", total, None),
        ("gateway_ms", phases.gateway_ms, Some("gateway")),
        ("gpu_queue_ms", phases.gpu_queue_ms, Some("gpu_queue")),
        ("generation_ms", phases.generation_ms, Some("generation")),
        ("provider_ms", Some(phases.provider_ms), Some("provider")),
        ("upstream_envelope_ms", Some(phases.upstream_envelope_ms), None),
        ("unattributed_server_ms", Some(phases.unattributed_ms), None),
        ("server_ttft_ms", ttft, None),
    ];
    for (key, value, phase) in lines {
        let value = value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        let told = request.phase_sources.iter().filter(|(told, _)| Some(told.name()) == phase);
        let rules: Vec<&str> = told.flat_map(|(_, rules)| rules).map(String::as_str).collect();
        let by = if rules.is_empty() { String::new() } else { format!("  by {}", rules.join(" | ")) };
        let _ = writeln!(text, "{key}={value}{by}");
    }
    text
}
