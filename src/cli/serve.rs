//! `tracejoin serve`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, CommandFactory};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::server::{Addresses, Plan, Server};
use crate::config::{Settings, file};
use crate::telemetry;
use normalise::Dialects;

/// Runs a server until it is told to stop.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Settings in a TOML file, whose keys are the flags below without their dashes; flags and environment go before it
    #[arg(long, env = "TRACEJOIN_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub settings: Settings,

    /// How spans are read; the configuration file may have rules for it.
    #[arg(skip)]
    pub dialects: Arc<Dialects>,
}

/// Puts the flags of the configuration file before those of the command line, where they yield to them.
///
/// # Errors
/// Where the file cannot be used.
pub fn with_file(args: &[OsString], config: &std::path::Path) -> anyhow::Result<Vec<OsString>> {
    let command = super::Cli::command();
    let serve = command.find_subcommand("serve").context("there is no serve command")?;
    let flags = file::flags(config, serve, |name| std::env::var_os(name).is_some())?;
    let after = args.iter().position(|word| word == "serve").map_or(args.len(), |at| at + 1);
    let (before, rest) = args.split_at(after);
    // One that may be given several times would be added to and not replaced.
    let flags: Vec<OsString> = flags.into_iter().filter(|flag| !is_given(flag, rest)).collect();
    Ok([before, &flags, rest].concat())
}

/// Whether the command line has a flag of the same name.
fn is_given(flag: &OsString, line: &[OsString]) -> bool {
    let name = |word: &OsString| word.to_string_lossy().split('=').next().unwrap_or_default().to_owned();
    line.iter().any(|word| name(word) == name(flag))
}

/// Serves until SIGTERM or SIGINT.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    telemetry::init_logs(args.settings.log.log_format, "warn,tracejoin=info");
    let plan = match Plan::read(args.settings, args.dialects) {
        Ok(plan) => plan,
        Err(error) => return Ok(super::usage_error(&error)),
    };
    let mut signals = Signals::listen()?;
    let mut server = tokio::select! {
        started = Server::start(plan) => started?,
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    // Whoever started it may have stopped reading: no reason to stop serving.
    if let Err(error) = announce(server.addresses()) {
        tracing::warn!(%error, "the addresses could not be printed");
    }
    let failure = tokio::select! {
        failure = server.failed() => Some(failure),
        () = signals.next() => None,
    };
    tracing::info!("stopping");
    tokio::select! {
        () = server.stop() => {}
        () = signals.next() => tracing::warn!("told twice to stop: leaving at once"),
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// One line a listener, then one that says that all of them take and answer.
///
/// # Errors
/// A failure of standard output.
pub fn announce(addresses: Addresses) -> std::io::Result<()> {
    let Addresses { otlp_grpc, otlp_http, http } = addresses;
    let mut out = std::io::stdout().lock();
    writeln!(out, "tracejoin: otlp-grpc listening on {otlp_grpc}")?;
    writeln!(out, "tracejoin: otlp-http listening on {otlp_http}")?;
    writeln!(out, "tracejoin: http listening on {http}")?;
    writeln!(out, "tracejoin: ready")?;
    out.flush()
}

/// The signals that ask a process to stop.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they no longer end the process by themselves.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_given_several_times_replaces_the_file_too() {
        let line = ["serve", "--alertmanager=http://a", "--alert-resend", "5s"].map(OsString::from);
        for (flag, given) in [("--alertmanager=http://b", true), ("--alert-resend=1s", true), ("--alert=1", false)] {
            assert_eq!(is_given(&flag.into(), &line), given, "{flag}");
        }
    }
}
