//! k6's output: the measurements of `--out json`, or client records that a script wrote to the console.

mod group;
mod identity;
mod labels;
mod line;
mod point;
mod request;
mod resolve;
mod stream;
#[cfg(test)]
mod tests;
mod unfinished;

use serde_json::{Map, Value};

use self::group::{Group, Groups};
use self::identity::{Identity, NO_ID};
use self::labels::TagRule;
use self::line::Line;
use self::point::{Metric, Part, Point};
use self::request::Request;
use self::resolve::{Fate, Filter, Held, resolve};
use self::unfinished::UnfinishedRequests;
use super::input::{self, Input};
use super::sink::Sink;
use super::{LabelArgs, foreign};

const UNKNOWN_LINE: &str = "a line that is neither k6's output nor a client record";
const NO_DURATION: &str = "a request without http_req_duration; have k6 write all of its own metrics";
const NO_LOAD: &str = "a request of setup() or teardown(), which is no load";
const NOT_ENDED: &str = "a stream that goes on after the file's end";
const GRPC: &str = "a gRPC call: only requests of k6/http and xk6-sse are imported";

/// How a file of k6's is read.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Import only requests whose tag `name` is this; may be repeated
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Import only requests whose tag `url` starts with this; may be repeated
    #[arg(long = "url", value_name = "PREFIX")]
    urls: Vec<String>,
    /// Make a k6 tag a dimension, such as tier=priority; may be repeated
    #[arg(long = "tag", value_name = "TAG=DIMENSION")]
    tags: Vec<TagRule>,
    #[command(flatten)]
    labels: LabelArgs,
}

/// Reads a file to its end, in memory that does not grow with it.
///
/// # Errors
/// A failure of the input, or an output of k6's that holds no requests.
pub fn read(mut input: Input, options: Options, sink: &mut Sink) -> anyhow::Result<()> {
    foreign::refuse(&mut input, "k6")?;
    let mut reader = Reader::new(options, sink);
    while let Some(line) = input::next_line(&mut input)? {
        if line.bytes.is_empty() {
            continue;
        }
        match Line::read(&line.bytes) {
            Line::Unknown if !line.whole => return reader.finish(true),
            read => reader.take(read)?,
        }
    }
    reader.finish(false)
}

struct Reader<'a> {
    options: Options,
    filter: Filter,
    sink: &'a mut Sink,
    groups: Groups,
    held: Held,
    unfinished: UnfinishedRequests,
    /// The most points that a request of this file had.
    fullest: usize,
    /// Whether the last line belongs to a request that may go on after the file's end.
    within_request: bool,
}

impl<'a> Reader<'a> {
    fn new(options: Options, sink: &'a mut Sink) -> Self {
        Self {
            filter: Filter { names: options.names.clone(), urls: options.urls.clone() },
            options,
            sink,
            groups: Groups::default(),
            held: Held::default(),
            unfinished: UnfinishedRequests::default(),
            fullest: 0,
            within_request: false,
        }
    }

    fn take(&mut self, line: Line) -> anyhow::Result<()> {
        if line == Line::Definition {
            return Ok(());
        }
        self.within_request = false;
        match line {
            Line::Point(point) => self.point(*point),
            Line::Record(record) => self.record(record),
            Line::Unknown => self.sink.refuse(UNKNOWN_LINE),
            Line::Other | Line::Definition => Ok(()),
        }
    }

    /// A record of the console is the server's to judge.
    fn record(&mut self, record: String) -> anyhow::Result<()> {
        let labels = &self.options.labels;
        if labels.run.is_none() && labels.scenario.is_none() {
            return self.sink.raw(record.replace(['\n', '\r'], " ").into_bytes());
        }
        let mut fields: Map<String, Value> = serde_json::from_str(&record)?;
        for (name, label) in [("run", &labels.run), ("scenario", &labels.scenario)] {
            if let Some(label) = label
                && fields.get(name).is_none_or(Value::is_null)
            {
                fields.insert(name.to_owned(), label.clone().into());
            }
        }
        self.sink.raw(serde_json::to_vec(&fields)?)
    }

    fn point(&mut self, point: Point) -> anyhow::Result<()> {
        let Metric::Part(part) = point.metric else { return self.beside(point) };
        self.within_request = true;
        for group in self.groups.add(part, point) {
            self.fullest = self.fullest.max(group.size());
            self.close(group)?;
        }
        Ok(())
    }

    /// A point that is not a part of a request. Without ids it tells nothing of one.
    fn beside(&mut self, point: Point) -> anyhow::Result<()> {
        let Ok(identity) = Identity::of(&point.labels) else { return Ok(()) };
        match point.metric {
            Metric::StreamEvent => self.unfinished.stream_event(identity, point.time, point.labels),
            Metric::Bytes if point.value > 0.0 => self.unfinished.bytes(identity, point.time, point.labels),
            Metric::Grpc => {
                self.unfinished.end(identity);
                self.sink.refuse(GRPC)?;
            }
            Metric::Bytes | Metric::Part(_) => {}
        }
        Ok(())
    }

    /// No point comes to this request any more.
    fn close(&mut self, group: Group) -> anyhow::Result<()> {
        let identity = match Identity::of(&group.labels) {
            Ok(identity) => identity,
            Err(reason) => return self.without_id(&group, reason),
        };
        if group.is_stream_start() {
            self.unfinished.stream_start(identity, group.time, group.labels);
            return Ok(());
        }
        let stream = self.unfinished.end(identity);
        let stream = group.is_stream_end().then(|| stream.unwrap_or_default());
        let Some(mut request) = Request::new(&group, &identity, stream, &self.options.tags) else {
            return self.sink.refuse(NO_DURATION);
        };
        request.left_out = self.filter.leaves_out(&group.labels);
        match self.held.add(identity, request) {
            Some(requests) => self.emit(requests),
            None => Ok(()),
        }
    }

    fn without_id(&mut self, group: &Group, reason: String) -> anyhow::Result<()> {
        if group.is_stream_start() {
            return Ok(());
        }
        if let Some(reason) = self.filter.leaves_out(&group.labels) {
            return self.sink.leave_out(reason);
        }
        let outside = |group: &str| group.starts_with("::setup") || group.starts_with("::teardown");
        if reason == NO_ID && group.labels.tag("group").is_some_and(outside) {
            return self.sink.leave_out(NO_LOAD);
        }
        self.sink.refuse(reason)
    }

    fn emit(&mut self, requests: Vec<Request>) -> anyhow::Result<()> {
        for fate in resolve(requests) {
            match fate {
                Fate::Import(mut request) => {
                    self.options.labels.fill(&mut request.line);
                    self.sink.record(&request.line)?;
                }
                Fate::LeaveOut(reason) => self.sink.leave_out(reason)?,
                Fate::Refuse(reason) => self.sink.refuse(reason)?,
            }
        }
        Ok(())
    }

    /// The file's end. A request whose points it may have cut apart is left out: a part of its times would make another
    /// request of it when the whole file is imported.
    fn finish(mut self, mut cut_off: bool) -> anyhow::Result<()> {
        let (groups, last) = std::mem::take(&mut self.groups).finish();
        for group in groups {
            self.fullest = self.fullest.max(group.size());
            self.close(group)?;
        }
        if let Some(last) = last {
            if self.within_request && !self.is_whole(&last) {
                cut_off = true;
            } else {
                self.close(last)?;
            }
        }
        while let Some(requests) = self.held.next() {
            self.emit(requests)?;
        }
        for interrupted in std::mem::take(&mut self.unfinished).finish(&self.options.tags) {
            let Some(mut line) = interrupted else {
                self.sink.leave_out(NOT_ENDED)?;
                continue;
            };
            self.options.labels.fill(&mut line);
            self.sink.record(&line)?;
        }
        if cut_off { self.sink.cut_off() } else { Ok(()) }
    }

    fn is_whole(&self, last: &Group) -> bool {
        let usual = if self.fullest == 0 { Part::COUNT } else { self.fullest };
        last.size() >= usual || last.is_stream_end() || last.is_stream_start()
    }
}
