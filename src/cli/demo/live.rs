//! `tracejoin demo --live`: the gateway in real time, until told to stop, with faults on demand.

mod objectives;
mod outbox;
mod traffic;

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use url::Url;

use self::outbox::Outbox;
use self::traffic::Traffic;
use super::fault::{Fault, Faults};
use super::folder::DemoFolder;
use super::{DemoArgs, settings};
use crate::cli::api::Api;
use crate::cli::serve::Signals;
use crate::cli::server::{Addresses, Plan, Server};
use model::{Nanos, UnixNanos};

/// How often what has ended is sent.
const TICK: Duration = Duration::from_millis(250);

/// The demo in real time.
#[derive(Debug, Clone, clap::Args)]
pub struct LiveArgs {
    /// Play in real time and without end, instead of eight minutes at once
    #[arg(long)]
    pub live: bool,
    /// Send to this server, instead of starting one
    #[arg(long, requires_all = ["live", "otlp"], conflicts_with_all = ["data_dir", "postgres_bin"], value_name = "URL")]
    server: Option<Url>,
    /// Where that server takes OTLP/gRPC
    #[arg(long, requires = "server", value_name = "HOST:PORT")]
    otlp: Option<String>,
    /// Where the demo's own server answers
    #[arg(long, requires = "live", conflicts_with = "server", value_name = "ADDR", default_value = "127.0.0.1:0")]
    http_addr: SocketAddr,
    /// Requests a second
    #[arg(long, requires = "live", default_value_t = 10, value_parser = clap::value_parser!(u32).range(5..=100))]
    rate: u32,
    /// Stop after this long
    #[arg(long = "for", requires = "live", value_parser = humantime::parse_duration, value_name = "TIME")]
    length: Option<Duration>,
    /// What goes wrong; several at once with commas between them
    #[arg(long, requires = "live", value_delimiter = ',')]
    fault: Vec<Fault>,
    /// When it goes wrong
    #[arg(long, requires = "fault", value_parser = humantime::parse_duration, value_name = "TIME", default_value = "0s")]
    fault_after: Duration,
    /// How long it stays wrong [default: to the end]
    #[arg(long, requires = "fault", value_parser = humantime::parse_duration, value_name = "TIME")]
    fault_for: Option<Duration>,
    /// Take faults from standard input too, a line each: `fault queue errors`, `fault none`
    #[arg(long, requires = "live")]
    steer: bool,
}

/// Where traffic goes.
struct Target {
    otlp: String,
    api: Api,
}

/// Plays until told to stop.
pub async fn run(args: &DemoArgs, mut signals: Signals) -> anyhow::Result<ExitCode> {
    if let (Some(server), Some(otlp)) = (&args.live.server, &args.live.otlp) {
        let target = Target { otlp: otlp.clone(), api: Api::at(server.clone())? };
        say(&format!("sending to {server}"))?;
        tokio::select! {
            played = play(args, &target) => played?,
            () = signals.next() => {}
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = DemoFolder::new(args.data_dir.clone());
    let address = format!("--http-addr={}", args.live.http_addr);
    let settings = settings(args, &folder, &["--slo-evaluation=2s".to_owned(), address])?;
    let plan = Plan::read(settings, Arc::default())?;
    let mut server = tokio::select! {
        started = Server::start(plan) => started?,
        () = signals.next() => return Ok(ExitCode::FAILURE),
    };
    let addresses = server.addresses();
    let played = tokio::select! {
        played = play_against(addresses, args) => played,
        failure = server.failed() => Err(failure),
        () = signals.next() => Ok(()),
    };
    server.stop().await;
    played.map(|()| ExitCode::SUCCESS)
}

async fn play_against(addresses: Addresses, args: &DemoArgs) -> anyhow::Result<()> {
    let url = format!("http://{}", addresses.http);
    let target = Target { otlp: addresses.otlp_grpc.to_string(), api: Api::at(url.parse().context("no address")?)? };
    let promised = objectives::apply(&target.api).await?;
    say(&format!("a server answers at {url}; {promised} objectives over the last 30 s are judged every 2 s"))?;
    for (path, shown) in [("phases?from=-30s", "phases"), ("slos", "objectives"), ("alerts", "alerts that fire")] {
        say(&format!("{shown}: curl '{url}/api/v1/{path}'"))?;
    }
    play(args, &target).await
}

async fn play(args: &DemoArgs, target: &Target) -> anyhow::Result<()> {
    let live = &args.live;
    let outbox = Outbox::open(&target.otlp, &target.api).await?;
    let mut stage = Stage::new(Traffic::new(args.seed, live.rate, UnixNanos::now()));
    say(&format!("{} requests/s as run {}", live.rate, stage.traffic.run()))?;
    let mut planned = plan(live).into_iter().peekable();
    let mut commands = live.steer.then(commands);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(line) = next(&mut commands) => stage.obey(&line)?,
        }
        while let Some((_, faults)) = planned.next_if(|(after, _)| *after <= stage.started.elapsed()) {
            stage.set_faults(faults)?;
        }
        outbox.send(stage.traffic.ended(stage.now()));
        if live.length.is_some_and(|length| stage.started.elapsed() >= length) {
            outbox.close().await;
            return say(&format!("{} requests were sent", stage.traffic.sent()));
        }
    }
}

/// Traffic, and the clock that it goes by.
struct Stage {
    traffic: Traffic,
    started: Instant,
}

impl Stage {
    fn new(traffic: Traffic) -> Self {
        Self { traffic, started: Instant::now() }
    }

    fn now(&self) -> Nanos {
        Nanos::from(self.started.elapsed())
    }

    fn set_faults(&mut self, faults: Faults) -> anyhow::Result<()> {
        say(&format!("fault {faults}"))?;
        self.traffic.set_faults(faults, self.now());
        Ok(())
    }

    /// Does what a line says, or says what is wrong with it.
    fn obey(&mut self, line: &str) -> anyhow::Result<()> {
        match line.parse() {
            Ok(faults) => self.set_faults(faults),
            Err(error) => say(&error.to_string()),
        }
    }
}

/// When which faults begin.
fn plan(live: &LiveArgs) -> Vec<(Duration, Faults)> {
    if live.fault.is_empty() {
        return Vec::new();
    }
    let begin = (live.fault_after, live.fault.iter().copied().collect());
    let end = live.fault_for.map(|length| (live.fault_after + length, Faults::default()));
    std::iter::once(begin).chain(end).collect()
}

/// The lines of standard input.
///
/// A thread of its own reads them: it may sleep in that for ever, and a runtime would wait for its own threads.
fn commands() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// The next line; none ever where none can come.
async fn next(commands: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match commands {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

fn say(what: &str) -> anyhow::Result<()> {
    let now = chrono::Utc::now().format("%H:%M:%S");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{now} {what}")?;
    Ok(out.flush()?)
}
