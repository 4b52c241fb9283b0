//! What `vllm bench serve --save-result --save-detailed` writes: one object a run, in it a list for each measurement.

mod run;

use std::io::Read;

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};

use self::run::Run;
use super::input::Input;
use super::sink::Sink;
use super::{LabelArgs, fault, foreign};
use crate::cli::record_line::{Millis, RecordLine, StreamLine};
use model::{Dimension, Nanos, UnixNanos};

const WAY_OUT: &str = "the file holds neither an id of a request nor a wall clock, so nothing can be joined. Run the bench \
                       under opentelemetry-instrument with the aiohttp client instrumentation and send its CLIENT spans \
                       to tracejoin; or, where it ran with --request-id-prefix P and the server's spans tell the request \
                       id, pass the same --request-id-prefix P here: the ids sent are P and the index";

/// What rebuilds the ids.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// The --request-id-prefix that the bench ran with; of a file with several runs, one for each in order
    #[arg(long, value_name = "PREFIX")]
    pub request_id_prefix: Vec<String>,
    /// When its first request started, in RFC 3339; likewise one for each run. Without it, windows go by the time of arrival
    #[arg(long, value_name = "TIME")]
    pub started_at: Vec<DateTime<Utc>>,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// Reads a file to its end. `--append-result` writes several runs into one.
///
/// # Errors
/// A file that cannot be joined, one of another format, a failure of the input, or an upload that stopped.
pub fn read(mut input: Input, options: Options, sink: &mut Sink) -> anyhow::Result<()> {
    foreign::refuse(&mut input, "vllm-bench")?;
    if options.request_id_prefix.is_empty() {
        bail!(WAY_OUT);
    }
    // An array would hide that the runs stand one after another.
    let runs = serde_json::Deserializer::from_reader(input.by_ref()).into_iter::<Run>();
    let mut read = 0;
    for run in runs {
        match run {
            Ok(run) => one_run(&run, read, sink, &options)?,
            Err(error) if error.is_eof() => return sink.cut_off(),
            Err(error) => return Err(error).context("the file is no result of `vllm bench serve --save-result`"),
        }
        read += 1;
    }
    if options.request_id_prefix.len() > read {
        bail!("--request-id-prefix is given {} times, but the file holds {read} runs", options.request_id_prefix.len());
    }
    Ok(())
}

fn one_run(run: &Run, at: usize, sink: &mut Sink, options: &Options) -> anyhow::Result<()> {
    let requests = run.requests().with_context(|| format!("run {} of the file", at + 1))?;
    let Some(prefix) = options.request_id_prefix.get(at) else {
        bail!("the file holds more than {at} runs; give --request-id-prefix once for each, in order");
    };
    let started_at = options.started_at.get(at).and_then(|at| at.timestamp_nanos_opt()).map(UnixNanos);
    for index in 0..requests {
        let mut line = record(run, index, started_at);
        line.request_id = Some(format!("{prefix}{index}"));
        options.labels.fill(&mut line);
        sink.record(&line)?;
    }
    Ok(())
}

/// The bench starts its clock before it has a connection, so what it tells is the wall; and stops it at the last token.
fn record(run: &Run, index: usize, started_at: Option<UnixNanos>) -> RecordLine {
    let measured = |list: &Option<Vec<f64>>| list.as_ref().and_then(|list| seconds(list[index]));
    let wall = measured(&run.latencies).filter(|wall| *wall > Nanos(0)).or_else(|| run.last_token(index));
    let ttft = measured(&run.ttfts).filter(|ttft| *ttft > Nanos(0));
    let mut line = RecordLine {
        started_at: started_at.map(|at| UnixNanos(at.0.saturating_add(run.offset(index).0))),
        wall_ms: wall.map(Millis),
        client_queue_ms: measured(&run.queue_times).map(Millis),
        ttft_ms: ttft.map(Millis),
        streaming: ttft.is_some().then_some(true),
        input_tokens: count(&run.input_lens, index),
        output_tokens: count(&run.output_lens, index).filter(|_| wall.is_some()),
        stream: ttft.map(|ttft| stream(run, index, ttft, wall)),
        ..RecordLine::default()
    };
    if let Some(model) = &run.model_id {
        line.dimensions.insert(Dimension::Model, model.clone());
    }
    if let Some(concurrency) = run.max_concurrency {
        line.dimensions.insert(Dimension::Concurrency, concurrency.to_string());
    }
    outcome(&mut line, run.error(index));
    line
}

/// Without a latency nothing was answered, whatever the list of errors says.
fn outcome(line: &mut RecordLine, error: &str) {
    if error.is_empty() && line.wall_ms.is_some() {
        return;
    }
    fault::read(error).note(line);
}

fn stream(run: &Run, index: usize, ttft: Nanos, wall: Option<Nanos>) -> StreamLine {
    let last_event_ms = wall.map(Millis);
    let Some(itls) = &run.itls else { return StreamLine { last_event_ms, ..StreamLine::default() } };
    let gaps: Vec<Nanos> = itls[index].iter().filter_map(|gap| seconds(*gap)).collect();
    StreamLine { last_event_ms, ..StreamLine::of_gaps(ttft, &gaps) }
}

fn seconds(seconds: f64) -> Option<Nanos> {
    Nanos::from_secs(seconds).filter(|nanos| nanos.0 >= 0)
}

fn count(list: &Option<Vec<Option<i64>>>, index: usize) -> Option<i64> {
    list.as_ref()?[index].filter(|count| *count >= 0)
}

#[cfg(test)]
mod tests;
