//! What a probe is told on the command line. What may be a secret is taken as text and read here, since the parser of
//! arguments prints a value that it does not like.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use reqwest::Method;
use url::Url;

use super::header;
use super::prompt::{Form, Prompts, Template};
use crate::cli::api::{Api, ServerArgs};
use crate::probe::{Client, DoneRule, HttpVersion, Limits, Request, Rules, Sequence, Trust, pointer};
use model::Dimension;

/// Measures a streamed answer: setup, first event, first token, rhythm, end.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// Where the streamed answer comes from
    url: String,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    labels: LabelArgs,
    /// Print what was measured, and send it to no server
    #[arg(long)]
    no_server: bool,
    /// How long the request's spans may take to arrive and be joined, where it is sent once
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = humantime::parse_duration)]
    wait: Duration,
    /// How long a record is tried again while the server is busy or unavailable
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    retry_for: Duration,
    /// Print JSON, one line a request
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// What to send.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
struct RequestArgs {
    /// The method [default: POST with a body, GET without]
    #[arg(long, short = 'X', value_name = "METHOD")]
    method: Option<Method>,
    /// A header, as 'NAME: VALUE'; ${VARIABLE} takes a secret from the environment. Repeat it for more
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    headers: Vec<String>,
    /// The model to ask; with it, or with prompts, the body is one of OpenAI's
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Prompts by weight, in TOML or JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    prompts: Option<PathBuf>,
    /// Which of OpenAI's bodies to send [default: as the URL's path says]
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "body")]
    form: Option<Form>,
    /// The most tokens to ask for, where a prompt does not say
    #[arg(long, value_name = "N", default_value_t = 128, conflicts_with = "body")]
    max_tokens: u64,
    /// A body of your own, sent as it is
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
}

/// How events are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reading the stream")]
struct ReadingArgs {
    /// JSON pointer to the text of an event; repeat it for more [default: those of OpenAI, Anthropic, TGI and others]
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    content: Vec<String>,
    /// Name of the events that carry tokens; repeat it for more [default: any]
    #[arg(long = "token-event", value_name = "NAME")]
    token_events: Vec<String>,
    /// Name of an event that only keeps the connection alive, beside ping and heartbeat; repeat it for more
    #[arg(long = "heartbeat-event", value_name = "NAME")]
    heartbeat_events: Vec<String>,
    /// What ends the answer: its data, event:NAME, pointer:POINTER, or never; repeat it for more [default: [DONE] and others]
    #[arg(long, value_name = "RULE")]
    done: Vec<DoneRule>,
    /// Where events tell their number, to find missing ones: a JSON pointer, or id
    #[arg(long, value_name = "POINTER", default_value = "/sequence_number")]
    sequence: Sequence,
}

/// How to connect, and when to give up.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
struct ConnectionArgs {
    /// The longest that a request may take, setup and redirects included
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// The longest silence of a stream
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = humantime::parse_duration)]
    stall_timeout: Duration,
    /// The most redirects to follow
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_redirects: u32,
    /// Speak HTTP/1.1
    #[arg(long, conflicts_with = "http2")]
    http1: bool,
    /// Speak HTTP/2, without TLS by prior knowledge
    #[arg(long)]
    http2: bool,
    /// Trust these certificates too, in PEM form
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca_file: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    insecure: bool,
}

/// When to send.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Schedule")]
struct ScheduleArgs {
    /// Start a request this often, however long answers take
    #[arg(long, value_name = "DURATION", conflicts_with = "rate", value_parser = humantime::parse_duration)]
    every: Option<Duration>,
    /// Start so many requests a second
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// End after so many starts [default: 1 without --every and --rate, else none]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Skip a start while so many requests are under way
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    max_in_flight: u64,
}

/// Labels of the records.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Labels")]
struct LabelArgs {
    /// The test run
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// The scenario
    #[arg(long, value_name = "NAME", default_value = "probe")]
    scenario: String,
    /// A label such as region=eu; repeat it for more
    #[arg(long = "dimension", value_name = "KEY=VALUE", value_parser = crate::cli::dimension::parse)]
    dimensions: Vec<(Dimension, String)>,
}

/// When to start requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// From start to start.
    pub every: Duration,
    /// How many starts there are; none for as long as wanted.
    pub count: Option<u64>,
    /// How many requests may be under way.
    pub max_in_flight: usize,
}

/// The labels of every record.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// The test run.
    pub run: Option<String>,
    pub scenario: String,
    /// All others.
    pub dimensions: BTreeMap<Dimension, String>,
}

/// What to do, read and checked.
pub struct Plan {
    pub client: Arc<Client>,
    /// The request but for its body.
    request: Request,
    bodies: Bodies,
    /// When; `None` is once.
    pub pace: Option<Pace>,
    pub labels: Labels,
    /// The server that takes records.
    pub api: Option<Api>,
    /// How long to wait for spans.
    pub wait: Duration,
    /// How long to try to deliver.
    pub retry_for: Duration,
    /// Whether to print JSON.
    pub json: bool,
}

enum Bodies {
    Fixed(Bytes),
    Prompts(Template, Prompts),
}

impl Plan {
    /// Reads the arguments, the files and variables that they name.
    ///
    /// # Errors
    /// What cannot be used, without its value.
    pub fn new(args: ProbeArgs) -> anyhow::Result<Self> {
        let url = url(&args.url)?;
        let bodies = bodies(&args.request, &url)?;
        let method = args.request.method.clone().unwrap_or(match &bodies {
            Bodies::Fixed(body) if body.is_empty() => Method::GET,
            _ => Method::POST,
        });
        let headers = header::read(&args.request.headers, |name| std::env::var(name).ok())?;
        let mut dimensions: BTreeMap<Dimension, String> = args.labels.dimensions.into_iter().collect();
        if let Some(model) = args.request.model {
            dimensions.entry(Dimension::Model).or_insert(model);
        }
        Ok(Self {
            client: Arc::new(client(args.reading, args.connection)?),
            request: Request { method, url, headers, body: Bytes::new() },
            bodies,
            pace: pace(&args.schedule)?,
            labels: Labels { run: args.labels.run, scenario: args.labels.scenario, dimensions },
            api: if args.no_server { None } else { Some(Api::new(&args.server)?) },
            wait: args.wait,
            retry_for: args.retry_for,
            json: args.json,
        })
    }

    /// The next request, with a prompt drawn by its weight.
    pub fn request(&self) -> Request {
        let body = match &self.bodies {
            Bodies::Fixed(body) => body.clone(),
            Bodies::Prompts(template, prompts) => template.body(prompts.draw()),
        };
        Request { body, ..self.request.clone() }
    }
}

fn url(text: &str) -> anyhow::Result<Url> {
    let url: Url = text.parse().context("the URL is none; give one such as https://host/v1/chat/completions")?;
    ensure!(
        matches!(url.scheme(), "http" | "https") && url.has_host(),
        "the URL has to begin with http:// or https://"
    );
    let open = url.username().is_empty() && url.password().is_none();
    ensure!(
        open,
        "the URL holds a login, which would show in lists of processes; use -H 'Authorization: Basic ${{NAME}}'"
    );
    Ok(url)
}

fn bodies(args: &RequestArgs, url: &Url) -> anyhow::Result<Bodies> {
    if let Some(file) = &args.body {
        let body = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        return Ok(Bodies::Fixed(body.into()));
    }
    let prompts = match &args.prompts {
        Some(file) => Prompts::read(file)?,
        None if args.model.is_some() => Prompts::built_in(),
        None => return Ok(Bodies::Fixed(Bytes::new())),
    };
    let form = args.form.unwrap_or_else(|| Form::of_path(url.path()));
    let template = Template { form, model: args.model.clone(), max_tokens: args.max_tokens };
    prompts.check(form)?;
    Ok(Bodies::Prompts(template, prompts))
}

fn client(reading: ReadingArgs, connection: ConnectionArgs) -> anyhow::Result<Client> {
    let mut rules = Rules { content: reading.content, token_events: reading.token_events, ..Rules::default() };
    rules.heartbeat_events.extend(reading.heartbeat_events);
    rules.sequence = reading.sequence;
    if !reading.done.is_empty() {
        rules.done = reading.done;
    }
    let limits =
        Limits { total: connection.timeout, stall: connection.stall_timeout, redirects: connection.max_redirects };
    let version = match (connection.http1, connection.http2) {
        (true, _) => HttpVersion::Http1,
        (_, true) => HttpVersion::Http2,
        _ => HttpVersion::Negotiated,
    };
    let trust = match connection.ca_file {
        Some(file) => Trust::File(file),
        None if connection.insecure => Trust::Anyone,
        None => Trust::System,
    };
    Ok(Client::new(rules, limits, &trust, version)?)
}

fn pace(args: &ScheduleArgs) -> anyhow::Result<Option<Pace>> {
    let every = match (args.every, args.rate) {
        (Some(every), _) => every,
        (None, Some(rate)) => {
            ensure!(rate.is_finite() && rate > 0.0, "--rate has to be over 0");
            Duration::try_from_secs_f64(1.0 / rate).context("--rate is too low; use --every")?
        }
        (None, None) => {
            ensure!(args.count.is_none_or(|count| count == 1), "--count needs --every or --rate");
            return Ok(None);
        }
    };
    ensure!(!every.is_zero(), "the time from start to start has to be over 0");
    Ok(Some(Pace { every, count: args.count, max_in_flight: args.max_in_flight as usize }))
}
