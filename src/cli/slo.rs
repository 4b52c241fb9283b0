//! `tracejoin slo …`: objectives, as files and on a server.

pub(super) mod files;
mod validate;

use std::process::ExitCode;

/// Objectives: what must hold, checked, kept and asked for
#[derive(Debug, clap::Args)]
pub struct SloArgs {
    #[command(subcommand)]
    command: SloCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SloCommand {
    /// Check files of objectives, without a server: every mistake with its line and field
    Validate(validate::ValidateArgs),
}

/// Does what was asked for.
pub async fn run(args: SloArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        SloCommand::Validate(args) => validate::run(&args),
    }
}
