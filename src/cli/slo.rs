//! `tracejoin slo …`: objectives, as files and on a server.

mod alerts;
mod apply;
mod delete;
mod dry_run;
pub(super) mod files;
mod list;
mod rules;
mod status;
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
    /// Check files of objectives and put what they tell on a server: every change is a new version
    Apply(apply::ApplyArgs),
    /// List the objectives of a server
    List(list::ListArgs),
    /// Show whether objectives hold, with the numbers that decided, or how the budget of one burns
    Status(status::StatusArgs),
    /// List the alerts of a server: what fires, and what did
    Alerts(alerts::AlertsArgs),
    /// Replay objectives over data of the past: how often they would have fired, and how early
    DryRun(dry_run::DryRunArgs),
    /// Delete an objective, or a budget with its parts
    Delete(delete::DeleteArgs),
    /// Write objectives as rules for Prometheus, for those who alert there
    Rules(rules::RulesArgs),
}

/// Does what was asked for.
pub async fn run(args: SloArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        SloCommand::Validate(args) => validate::run(&args),
        SloCommand::Apply(args) => apply::run(args).await,
        SloCommand::List(args) => list::run(args).await,
        SloCommand::Status(args) => status::run(args).await,
        SloCommand::Alerts(args) => alerts::run(args).await,
        SloCommand::DryRun(args) => dry_run::run(args).await,
        SloCommand::Delete(args) => delete::run(args).await,
        SloCommand::Rules(args) => rules::run(&args),
    }
}
