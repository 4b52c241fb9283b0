//! `tracejoin demo`: everything started, a small LLM gateway played against it, and who owns the latency.
//!
//! The gateway is simulated, so its minutes pass at once; what it measured goes through the real endpoints: spans over
//! OTLP/gRPC, client records over HTTP.

mod fault;
mod folder;
mod gateway;
mod labels;
mod live;
mod record;
mod report;
mod send;
mod spans;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Command, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};

use self::folder::DemoFolder;
use super::api::Api;
use super::serve::{Signals, announce};
use super::server::{Plan, Server};
use crate::config::{LogFormat, Settings};
use crate::telemetry;
use ::api::PercentilesAnswer;
use model::{Nanos, TraceId, UnixNanos};

/// What ties the two sides of a simulated call together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    trace: TraceId,
    client: [u8; 8],
    entry: [u8; 8],
}

/// Shows what tracejoin does, with nothing set up.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Serve on after the report, until told to stop
    #[arg(long, conflicts_with = "live")]
    keep: bool,
    /// Folder of the demo's PostgreSQL [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Folder that holds initdb and postgres
    #[arg(long, env = "TRACEJOIN_POSTGRES_BIN", value_name = "DIR")]
    postgres_bin: Option<PathBuf>,
    /// Seed of the simulation
    #[arg(long, default_value_t = 7)]
    seed: u64,
    #[command(flatten)]
    live: live::LiveArgs,
}

const MINUTE: i64 = 60_000_000_000;
/// How long the last trace may take to be joined, on a machine that is busy.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);

/// Plays and reports.
pub async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    telemetry::init_logs(LogFormat::Text, "warn");
    let mut signals = Signals::listen()?;
    if args.live.live {
        return live::run(&args, signals).await;
    }
    let folder = DemoFolder::new(args.data_dir.clone());
    let plan = Plan::read(settings(&args, &folder, &[])?, Arc::default())?;
    let step = spinner("starting PostgreSQL and the listeners")?;
    let server = tokio::select! {
        started = Server::start(plan) => started?,
        () = signals.next() => return Ok(ExitCode::FAILURE),
    };
    let played = tokio::select! {
        played = show(&server, args.seed, &step) => played,
        () = signals.next() => Err(anyhow::anyhow!("told to stop")),
    };
    step.finish_and_clear();
    if args.keep && played.is_ok() {
        announce(server.addresses())?;
        signals.next().await;
    }
    server.stop().await;
    played.map(|()| ExitCode::SUCCESS)
}

/// A server's settings for the demo: free ports, little waiting, and never the user's own database.
fn settings(args: &DemoArgs, folder: &DemoFolder, more: &[String]) -> anyhow::Result<Settings> {
    let words = [
        "demo",
        "--otlp-grpc-addr=127.0.0.1:0",
        "--otlp-http-addr=127.0.0.1:0",
        "--http-addr=127.0.0.1:0",
        "--settle=1s",
        "--join-deadline=3s",
    ];
    let words = words.into_iter().map(OsString::from).chain(more.iter().map(OsString::from));
    let command = Settings::augment_args(Command::new("demo")).args_override_self(true);
    let matches = command.try_get_matches_from(words)?;
    let mut settings = Settings::from_arg_matches(&matches)?;
    settings.storage.database_url = None;
    settings.storage.data_dir = Some(folder.path().to_owned());
    settings.storage.postgres_bin.clone_from(&args.postgres_bin);
    Ok(settings)
}

/// Plays the gateway against a server and prints what the server says of it.
async fn show(server: &Server, seed: u64, step: &ProgressBar) -> anyhow::Result<()> {
    let addresses = server.addresses();
    let api = Api::at(format!("http://{}", addresses.http).parse().context("no address")?)?;
    let calls = gateway::play(seed);
    let end = UnixNanos(UnixNanos::now().0.div_euclid(MINUTE) * MINUTE);
    let start = end - gateway::LENGTH;
    let run = format!("demo-{:08x}", rand::random::<u32>());
    let traffic = send::Traffic { calls: &calls, start, run: &run };

    step.set_message(format!("sending {} requests: spans over OTLP/gRPC, client records over HTTP", calls.len()));
    let sent = traffic.send(addresses.otlp_grpc, &api).await?;
    step.set_message(format!("joining {} requests", calls.len()));
    wait_until_joined(&api, &run, calls.len()).await?;
    step.finish_and_clear();
    report::print(&api, &run, start, &sent).await
}

/// Waits until every request is joined or known to be a lone side.
async fn wait_until_joined(api: &Api, run: &str, requests: usize) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + JOIN_PATIENCE;
    let mut url = api.url(&["api", "v1", "phases"])?;
    url.query_pairs_mut().append_pair("from", "-1h").append_pair("run", run).append_pair("result", "all");
    loop {
        let answer: PercentilesAnswer = api.get_json(url.clone()).await?;
        let (seen, pending) = (answer.coverage.client_records, answer.coverage.pending);
        if seen >= requests as u64 && pending == 0 {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            bail!("of {requests} requests {seen} are there and {pending} still wait after {JOIN_PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn spinner(message: &'static str) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{spinner} {msg}").context("the spinner's template is wrong")?;
    let spinner = ProgressBar::new_spinner().with_style(style).with_message(message);
    spinner.enable_steady_tick(Duration::from_millis(100));
    Ok(spinner)
}

impl Identity {
    /// A new one. All zeros, which no identifier may be, is as likely as nothing; it is drawn again all the same.
    fn random() -> Self {
        loop {
            if let Ok(trace) = TraceId::from_bytes(rand::random()) {
                return Self { trace, client: rand::random(), entry: rand::random() };
            }
        }
    }
}

/// A minute of the play as the API names its ends.
fn minute(start: UnixNanos, index: i64) -> (String, String) {
    let show = |at: UnixNanos| at.to_datetime().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let from = start + Nanos(index * MINUTE);
    (show(from), show(from + Nanos(MINUTE)))
}
