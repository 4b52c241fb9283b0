//! A log of Locust's `request` event as CSV: the columns of `locust.contrib.csv_request_logger`, with an id beside them.

mod table;

use anyhow::bail;

use self::table::{Row, Table};
use super::input::Input;
use super::sink::Sink;
use super::{LabelArgs, clock, fault, foreign};
use crate::cli::record_line::{Millis, RecordLine};

const WAY_OUT: &str = "it has no column traceparent, trace_id or x_request_id, so nothing can be joined. Log the request's \
                       own headers in a listener of the request event (`context` or `response.request.headers`), as \
                       docs/load-tools.md shows; or run `locust --otel` and send its CLIENT spans to tracejoin";

const SHORT: &str = "it has fewer columns than the first row names; write the file with a CSV writer";

/// What the file does not tell.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// The requests were made with stream=True, so that their times end at the answer's headers
    #[arg(long)]
    pub headers_only: bool,
    #[command(flatten)]
    pub labels: LabelArgs,
}

/// Reads a file to its end.
///
/// # Errors
/// A file without ids, one of another format, a failure of the input, or an upload that stopped.
pub fn read(mut input: Input, options: Options, sink: &mut Sink) -> anyhow::Result<()> {
    foreign::refuse(&mut input, "locust")?;
    let mut table = Table::open(input)?;
    if !["response_time_ms", "response_time"].into_iter().any(|name| table.has(name)) {
        bail!("the file has no column response_time_ms; import what a listener of Locust's request event wrote");
    }
    if !["traceparent", "trace_id", "x_request_id", "request_id"].into_iter().any(|name| table.has(name)) {
        bail!("the file is a log of Locust's request event, but {WAY_OUT}");
    }
    // Only of the last row does a short one mean that the file is still being written.
    let mut short = false;
    while let Some(row) = table.next()? {
        if std::mem::take(&mut short) {
            sink.refuse(SHORT)?;
        }
        match row {
            Row::Short => short = true,
            Row::Whole => match record(&table, &options) {
                Ok(mut line) => {
                    options.labels.fill(&mut line);
                    sink.record(&line)?;
                }
                Err(reason) => sink.refuse(reason)?,
            },
        }
    }
    if short { sink.cut_off() } else { Ok(()) }
}

/// Locust's time runs from before the connection to the end of the answer, or with `stream=True` to its headers.
fn record(table: &Table, options: &Options) -> Result<RecordLine, &'static str> {
    let time = number(table, &["response_time_ms", "response_time"]).and_then(Millis::new);
    let status = number(table, &["status_code"]).map(|status| status as i64);
    let mut line = RecordLine {
        traceparent: text(table, &["traceparent"]),
        request_id: text(table, &["x_request_id", "request_id"]),
        started_at: number(table, &["timestamp", "start_time"]).and_then(clock::unix),
        wall_ms: time.filter(|_| !options.headers_only),
        headers_ms: time.filter(|_| options.headers_only),
        headers_only: options.headers_only.then_some(true),
        status: status.filter(|status| *status < 600),
        ..RecordLine::default()
    };
    if line.traceparent.is_none() {
        line.trace_id = id(table, "trace_id")?;
        line.span_id = id(table, "span_id")?;
    }
    if line.traceparent.is_none() && line.trace_id.is_none() && line.request_id.is_none() {
        return Err("its columns of ids are empty; a request that is not to be traced can be left out of the log");
    }
    // `catch_response` may fail a request whose status is good.
    if let Some(exception) = table.get("exception") {
        fault::read(exception).note(&mut line);
    }
    Ok(line)
}

fn text(table: &Table, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| table.get(name)).map(str::to_owned)
}

fn id<T: std::str::FromStr>(table: &Table, name: &str) -> Result<Option<T>, &'static str> {
    let Some(text) = table.get(name) else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| "its trace_id or span_id is no id of W3C Trace Context; log the traceparent instead")
}

fn number(table: &Table, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| table.get(name)).and_then(|text| text.parse().ok()).filter(|number| *number >= 0.0)
}

#[cfg(test)]
mod tests;
