//! `tracejoin recompute PATH…`: sends archived event lines to a server again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use chrono::NaiveDate;

use super::api::{Api, ServerArgs};
use super::import::{self, Tally};
use crate::archive;

/// Sends archived event lines to a server, so that their metrics can be computed again. Lines that it has already count
/// as duplicates and change nothing.
#[derive(Debug, clap::Args)]
pub struct RecomputeArgs {
    /// The archive's folder, folders of single days, or files of lines
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The first day to send, such as 2026-11-30; of an archive's folder only
    #[arg(long, value_name = "DAY", value_parser = day)]
    from: Option<NaiveDate>,
    /// The last day to send; of an archive's folder only
    #[arg(long, value_name = "DAY", value_parser = day)]
    to: Option<NaiveDate>,
    /// How long to try again while the server is busy or unavailable
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration)]
    retry_for: Duration,
    /// Print the counts as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

fn day(text: &str) -> Result<NaiveDate, String> {
    archive::parse_day(text).ok_or_else(|| "is no day; write one such as 2026-11-30".to_owned())
}

/// Sends the lines and prints what became of them.
pub async fn run(args: RecomputeArgs) -> anyhow::Result<ExitCode> {
    let files = files(&args)?;
    if files.is_empty() {
        bail!("there are no archived lines in what is named; give the --archive-dir of a server, and days that it has");
    }
    let url = Api::new(&args.server)?.url(&["api", "v1", "events"])?;
    let mut tally = Tally::default();
    for file in files {
        let sent = import::send_events(&file, url.clone(), args.retry_for).await;
        tally.add(sent.with_context(|| format!("{} was sent in part at most; send it again", file.display()))?);
    }
    tally.print(args.json)?;
    Ok(if tally.any_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The files to send, the oldest day first.
fn files(args: &RecomputeArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &args.paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot_read = || format!("cannot read {}", path.display());
        let days = archive::days(path).with_context(cannot_read)?;
        if days.is_empty() {
            files.extend(files_of(path).with_context(cannot_read)?);
        }
        for (day, folder) in days {
            if args.from.is_none_or(|from| from <= day) && args.to.is_none_or(|to| day <= to) {
                files.extend(files_of(&folder).with_context(|| format!("cannot read {}", folder.display()))?);
            }
        }
    }
    Ok(files)
}

/// The files of a day, by name.
fn files_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(dir: &Path, paths: &[&str], from: Option<&str>, to: Option<&str>) -> Vec<String> {
        let args = RecomputeArgs {
            paths: paths.iter().map(|path| dir.join(path)).collect(),
            from: from.map(|text| day(text).expect("a day")),
            to: to.map(|text| day(text).expect("a day")),
            retry_for: Duration::ZERO,
            json: false,
            server: ServerArgs { server: "http://127.0.0.1:1".parse().expect("a URL") },
        };
        let name = |path: PathBuf| path.strip_prefix(dir).expect("inside").display().to_string();
        files(&args).expect("readable").into_iter().map(name).collect()
    }

    #[test]
    fn days_of_a_range_folders_of_days_and_files_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        for file in ["2026-11-29/b", "2026-11-29/a", "2026-11-30/c", "2026-12-01/d", "other/e"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let chosen = |paths: &[&str], from, to| chosen(dir.path(), paths, from, to);
        assert_eq!(chosen(&[""], None, None), ["2026-11-29/a", "2026-11-29/b", "2026-11-30/c", "2026-12-01/d"]);
        assert_eq!(chosen(&[""], Some("2026-11-30"), Some("2026-11-30")), ["2026-11-30/c"]);
        assert_eq!(chosen(&[""], Some("2026-11-30"), None), ["2026-11-30/c", "2026-12-01/d"]);
        assert_eq!(chosen(&["2026-12-01", "other/e"], None, None), ["2026-12-01/d", "other/e"]);
        assert!(day("2026-13-01").is_err() && day("30.11.2026").is_err());
    }
}
