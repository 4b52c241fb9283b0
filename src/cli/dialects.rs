//! `tracejoin dialects` and `tracejoin dialects test FILE`: without a server and without a database.

mod list;
mod reading;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::import::otlp::Messages;
use crate::config::dialects;
use normalise::Dialects;

/// Lists the dialects in which spans are understood.
#[derive(Debug, clap::Args)]
pub struct DialectsArgs {
    #[command(subcommand)]
    command: Option<DialectsCommand>,
    /// A configuration file whose dialect rules are read too
    #[arg(long, env = "TRACEJOIN_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum DialectsCommand {
    /// Show how each span of an OTLP file would be read and why, and what each trace comes to
    Test(TestArgs),
}

/// Reads a file as a server would.
#[derive(Debug, clap::Args)]
struct TestArgs {
    /// OTLP traces: JSON, one document or one a line, or protobuf; perhaps compressed. - is standard input
    file: PathBuf,
}

/// Prints the dialects, or how they read a file. Leaves with 1 where a part of the file could not be read.
pub fn run(args: DialectsArgs) -> anyhow::Result<ExitCode> {
    let dialects = match &args.config {
        Some(path) => dialects::read(path)?,
        None => Dialects::default(),
    };
    let mut out = std::io::stdout().lock();
    let Some(DialectsCommand::Test(test)) = args.command else {
        let listed = list::Listed::of(&dialects);
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&listed)?)?;
        } else {
            write!(out, "{}", list::table(&listed))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let messages = Messages::open(&test.file)?;
    let read =
        reading::File::read(messages, &dialects).with_context(|| format!("cannot read {}", test.file.display()))?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&read)?)?;
    } else {
        write!(out, "{}", report::text(&read))?;
    }
    Ok(if read.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
