//! AIPerf's `profile_export.jsonl`: one request a line.

mod ids;
mod line;
mod timing;

use anyhow::Context;
use serde_json::{Map, Value};

use self::ids::{Found, Ids};
use self::line::{Exported, TraceData};
use super::input::{self, Input};
use super::sink::Sink;
use super::{LabelArgs, fault, foreign};
use crate::cli::record_line::{RecordLine, StreamLine};
use model::{MetricsKind, ResultClass, UnixNanos};

const NO_LINE: &str = "it is no line of AIPerf's profile_export.jsonl; import the file as AIPerf wrote it";
const WARM_UP: &str = "it belongs to the warm-up; --warmup imports it too";

const OWN_TIMING: &[(MetricsKind, &[&str])] = &[
    (
        MetricsKind::VllmHeaders,
        &[
            "x-vllm-total-time",
            "x-vllm-queue-time",
            "x-vllm-prefill-time",
            "x-vllm-decode-time",
            "x-vllm-inference-time",
        ],
    ),
    (MetricsKind::TgiHeaders, &["x-total-time", "x-queue-time", "x-inference-time"]),
    (MetricsKind::ServerTiming, &["server-timing"]),
    (MetricsKind::LitellmHeaders, &["x-litellm-overhead-duration-ms"]),
];

/// What is read of a file.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Import the requests of the warm-up too
    #[arg(long)]
    pub warmup: bool,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// Reads a file to its end.
///
/// # Errors
/// A file of another format, a failure of the input, or an upload that stopped.
pub fn read(mut input: Input, options: Options, sink: &mut Sink) -> anyhow::Result<()> {
    foreign::refuse(&mut input, "aiperf")?;
    let mut ids = Ids::default();
    while let Some(line) = input::next_line(&mut input).context("cannot read the file")? {
        if line.bytes.is_empty() {
            continue;
        }
        let Ok(exported) = serde_json::from_slice::<Exported>(&line.bytes) else {
            if line.whole {
                sink.refuse(NO_LINE)?
            } else {
                sink.cut_off()?
            }
            continue;
        };
        if !options.warmup && exported.metadata.benchmark_phase.as_deref() == Some("warmup") {
            sink.leave_out(WARM_UP)?;
            continue;
        }
        for found in ids.take(record(&exported)) {
            hand_on(found, sink, &options.labels)?;
        }
    }
    ids.last().map_or(Ok(()), |line| hand_on(Ok(line), sink, &options.labels))
}

fn hand_on(found: Found, sink: &mut Sink, labels: &LabelArgs) -> anyhow::Result<()> {
    match found {
        Ok(mut line) => {
            labels.fill(&mut line);
            sink.record(&line)
        }
        Err(reason) => sink.refuse(reason),
    }
}

fn record(exported: &Exported) -> RecordLine {
    let stream = stream(exported);
    let mut record = RecordLine {
        request_id: exported.metadata.x_request_id.clone().filter(|id| !id.is_empty()),
        started_at: Some(UnixNanos(exported.metadata.request_start_ns)),
        streaming: stream.is_some().then_some(true),
        status: status(exported),
        input_tokens: exported.count("usage_prompt_tokens").or_else(|| exported.count("input_sequence_length")),
        output_tokens: exported.count("usage_completion_tokens").or_else(|| exported.count("output_sequence_length")),
        stream,
        response_metrics: exported.trace_data.as_ref().and_then(own_timing),
        ..RecordLine::default()
    };
    trace_ids(&mut record, exported);
    outcome(&mut record, exported);
    timing::fill(&mut record, exported);
    record
}

/// The traceparent that was sent. Where the server answers with another trace in `traceresponse`, it did not take the
/// one sent, and its spans are in its own.
fn trace_ids(record: &mut RecordLine, exported: &Exported) {
    let Some(trace) = &exported.trace_data else { return };
    let sent = trace.sent("traceparent");
    let theirs = trace.answered("traceresponse").and_then(|answer| answer.split('-').nth(1));
    let ours = sent.and_then(|sent| sent.split('-').nth(1));
    match theirs.filter(|theirs| ours != Some(theirs)).and_then(|theirs| theirs.parse().ok()) {
        Some(theirs) => record.trace_id = Some(theirs),
        None => record.traceparent = sent.map(str::to_owned),
    }
}

/// The headers in which the answer tells its own timing, as they came; of several kinds the one that tells more.
fn own_timing(trace: &TraceData) -> Option<Value> {
    OWN_TIMING.iter().find_map(|(kind, names)| {
        let told = names.iter().filter_map(|name| Some(((*name).to_owned(), trace.answered(name)?.into())));
        let mut told: Map<String, Value> = told.collect();
        (!told.is_empty()).then(|| {
            told.insert("kind".to_owned(), kind.name().into());
            Value::Object(told)
        })
    })
}

/// Gaps between chunks with content; AIPerf has no metric of the first token where an answer is not streamed.
fn stream(exported: &Exported) -> Option<StreamLine> {
    let first = exported.duration("time_to_first_token")?;
    let gaps = exported.durations("inter_chunk_latency").unwrap_or_default();
    // When the last one came, AIPerf's own latency tells better than a sum of gaps.
    Some(StreamLine { last_event_ms: None, ..StreamLine::of_gaps(first, &gaps) })
}

fn status(exported: &Exported) -> Option<i64> {
    let told = exported.trace_data.as_ref().and_then(|trace| trace.response_status_code);
    let code = exported.error.as_ref().and_then(|error| error.code);
    told.or(code).filter(|status| (100..600).contains(status))
}

fn outcome(record: &mut RecordLine, exported: &Exported) {
    if exported.metadata.was_cancelled {
        record.result = Some(ResultClass::Cancelled);
    }
    if let Some(error) = &exported.error {
        fault::read(error.class.as_deref().unwrap_or_default()).note(record);
    }
}

#[cfg(test)]
mod tests;
