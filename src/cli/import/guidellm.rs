//! GuideLLM's report, JSON or YAML: benchmarks, in each the requests that succeeded, that were cut off, and that failed.

mod report;
mod request;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use self::report::Group;
use self::request::{Request, Timings, Usage};
use super::input::{self, Input};
use super::sink::Sink;
use super::{LabelArgs, clock, fault, foreign};
use crate::cli::record_line::{Millis, RecordLine, StreamLine};
use model::{Nanos, ResultClass};

const WAY_OUT: &str = "GuideLLM sends no id of its own with a request. Where the server's spans tell the id of the answer \
                       (gen_ai.response.id, or vLLM's gen_ai.request.id), pass --by-response-id; otherwise run GuideLLM \
                       under opentelemetry-instrument with the httpx client instrumentation and send its CLIENT spans to \
                       tracejoin";
const NO_RESPONSE_ID: &str = "it has no response_id, so nothing on the server's side can be found for it";
const NO_REQUEST: &str = "it is no request of a GuideLLM report; import the file as GuideLLM wrote it";

/// How requests are found.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Join by the id that the server gave its answer
    #[arg(long)]
    pub by_response_id: bool,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// Reads a file to its end.
///
/// # Errors
/// A file that cannot be joined, one of another format, a failure of the input, or an upload that stopped.
pub fn read(mut input: Input, options: Options, sink: &mut Sink) -> anyhow::Result<()> {
    foreign::refuse(&mut input, "guidellm")?;
    if !options.by_response_id {
        bail!("nothing in the file can be joined by itself: {WAY_OUT}");
    }
    let is_json = input::peek(&mut input).context("cannot read the file")?.starts_with(b"{");
    let mut member = |group, value| one(group, value, sink, &options.labels);
    let whole = if is_json { report::json(input, &mut member) } else { report::yaml(input, &mut member) }?;
    if whole { Ok(()) } else { sink.cut_off() }
}

fn one(group: Group, value: Value, sink: &mut Sink, labels: &LabelArgs) -> anyhow::Result<()> {
    let Ok(request) = serde_json::from_value::<Request>(value) else { return sink.refuse(NO_REQUEST) };
    if request.response_id.is_none() {
        return sink.refuse(NO_RESPONSE_ID);
    }
    let mut line = record(group, request);
    labels.fill(&mut line);
    sink.record(&line)
}

/// `request_start` is taken when the first header is written, so connecting lies before it.
fn record(group: Group, request: Request) -> RecordLine {
    let times = &request.info.timings;
    let since = |at| between(times.request_start, at).map(Millis);
    let end = times.request_end.or(times.resolve_end.filter(|_| group != Group::Successful));
    let mut line = RecordLine {
        request_id: request.response_id,
        started_at: times.request_start.and_then(clock::unix),
        duration_ms: since(end),
        client_queue_ms: between(times.targeted_start, times.resolve_start).map(Millis),
        ttft_ms: since(times.first_token_iteration),
        ttft_visible_ms: since(times.first_output_token_iteration),
        streaming: streaming(group, times),
        input_tokens: tokens(request.input_metrics.as_ref()),
        output_tokens: tokens(request.output_metrics.as_ref()),
        stream: stream(times),
        response_metrics: request.response_metrics.and_then(own_timing),
        ..RecordLine::default()
    };
    match group {
        Group::Successful => {}
        Group::Incomplete => line.result = Some(ResultClass::Cancelled),
        Group::Errored => fault::read(request.info.error.as_deref().unwrap_or_default()).note(&mut line),
    }
    line
}

/// A whole answer that came in no iterations was not streamed; of a broken one that tells nothing.
fn streaming(group: Group, times: &Timings) -> Option<bool> {
    match (times.request_iterations, group) {
        (1.., _) => Some(true),
        (_, Group::Successful) => Some(false),
        _ => None,
    }
}

/// GuideLLM keeps the first and the last token and how many came, but not the gaps between them.
fn stream(times: &Timings) -> Option<StreamLine> {
    times.first_token_iteration?;
    Some(StreamLine {
        business_events: Some(times.token_iterations).filter(|tokens| *tokens > 0),
        last_event_ms: between(times.request_start, times.last_token_iteration).map(Millis),
        ..StreamLine::default()
    })
}

fn tokens(usage: Option<&Usage>) -> Option<i64> {
    let usage = usage?;
    usage.total_tokens.or(usage.text_tokens)
}

/// vLLM's `metrics` object as it came; what is no number tells no time.
fn own_timing(metrics: serde_json::Map<String, Value>) -> Option<Value> {
    let mut numbers: serde_json::Map<String, Value> =
        metrics.into_iter().filter(|(_, value)| value.is_number()).collect();
    if numbers.is_empty() {
        return None;
    }
    numbers.insert("kind".to_owned(), json!("vllm"));
    Some(Value::Object(numbers))
}

/// The difference of two times in seconds; `None` where one is unknown or they are in the wrong order.
fn between(from: Option<f64>, to: Option<f64>) -> Option<Nanos> {
    Nanos::from_secs(to? - from?).filter(|length| length.0 >= 0)
}

#[cfg(test)]
mod tests;
