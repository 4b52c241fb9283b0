//! One file a command; the only module that knows every part.

mod api;
mod check;
mod demo;
mod dialects;
mod dimension;
mod gate;
mod import;
mod phases;
mod probe;
mod recompute;
mod record_line;
mod serve;
mod server;
mod slo;
mod trace;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// Names the owner of a slow LLM answer: the network, the gateway, the queue in front of the GPU, or the model.
#[derive(Debug, Parser)]
#[command(name = "tracejoin", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Receive spans and client records, join them and answer
    #[command(args_override_self = true)]
    Serve(Box<serve::ServeArgs>),
    /// See it work: starts everything, plays a small LLM gateway, and shows who owns the latency
    Demo(demo::DemoArgs),
    /// Explain one request: which phase its time went to
    Trace(trace::TraceArgs),
    /// Show percentiles of every phase, with their coverage
    Phases(phases::PhasesArgs),
    /// Judge a test run or a window by objectives, for CI: 0 held, 1 broken, 2 not asked, 3 nobody can tell
    Gate(Box<gate::GateArgs>),
    /// Send one request through your gateway and say which parts of its trace arrive
    Check(Box<check::CheckArgs>),
    /// Measure a streamed answer as a person waits for it: once and explained, or by a schedule
    Probe(Box<probe::ProbeArgs>),
    /// Send measurements or spans from a file to a server
    Import(import::ImportArgs),
    /// Send archived event lines to a server again
    Recompute(recompute::RecomputeArgs),
    /// List the dialects in which spans are understood, or show how the spans of a file are read
    Dialects(dialects::DialectsArgs),
    /// Objectives: what must hold, checked, kept and asked for
    Slo(slo::SloArgs),
}

/// Reads the command line, and the configuration file where one is named.
///
/// # Errors
/// A usage error of clap's, or a file that cannot be used.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Cli> {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = Cli::try_parse_from(&args)?;
    let Command::Serve(serve) = &cli.command else { return Ok(cli) };
    let Some(config) = &serve.config else { return Ok(cli) };
    let dialects = crate::config::dialects::read(config)?;
    let mut cli = Cli::try_parse_from(serve::with_file(&args, config)?)?;
    if let Command::Serve(serve) = &mut cli.command {
        serve.dialects = Arc::new(dialects);
    }
    Ok(cli)
}

/// Prints what is wrong with the command line, or the help that was asked for, and gives the status to leave with.
pub fn usage_error(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<clap::Error>() {
        Some(error) => {
            // Where even this cannot be printed nobody is left to be told.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        None => {
            eprintln!("tracejoin: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command and gives the status to leave with.
///
/// # Errors
/// Why it could not be done.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(*args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Trace(args) => trace::run(args).await,
            Command::Phases(args) => phases::run(args).await,
            Command::Gate(args) => gate::run(*args).await,
            Command::Check(args) => check::run(*args).await,
            Command::Probe(args) => probe::run(*args).await,
            Command::Import(args) => import::run(args).await,
            Command::Recompute(args) => recompute::run(args).await,
            Command::Dialects(args) => dialects::run(args),
            Command::Slo(args) => slo::run(args).await,
        }
    })
}

/// Whether a command failed only because nobody reads its output any more, as under `| head`.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
