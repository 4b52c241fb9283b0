//! Clears the way for a new server in a cluster whose last one was not stopped by its parent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use tokio::time::{Instant, sleep};

use super::account::Account;
use super::error::PrivatePostgresError;
use super::pid_file::PidFile;
use super::socket_folder;

/// A fast shutdown writes a checkpoint first, which on a slow disk takes a while.
const FAST: Duration = Duration::from_secs(60);
const IMMEDIATE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);

/// Stops the server that `cluster`'s pid file names if it lives, and removes what it left behind. The caller holds the
/// folder's lock, so nobody of ours owns that server.
///
/// `socket` is the folder that the new server will use: a server of this very run that died names it too.
pub async fn clear(cluster: &Path, account: &Account, socket: &Path) -> Result<(), PrivatePostgresError> {
    let Some(left_over) = PidFile::read(cluster) else {
        return Ok(());
    };
    if left_over.is_alive(cluster) {
        tracing::warn!(pid = left_over.pid.as_raw(), "stopping the PostgreSQL left over from an earlier run");
        stop(&left_over, cluster).await?;
    }
    remove_pid_file(&left_over, cluster).await?;
    if left_over.socket_folder.as_deref() != Some(socket) {
        remove_socket_folder(&left_over, account);
    }
    Ok(())
}

async fn stop(left_over: &PidFile, cluster: &Path) -> Result<(), PrivatePostgresError> {
    for (signal, patience) in [(Signal::SIGINT, FAST), (Signal::SIGQUIT, IMMEDIATE)] {
        // It may end between the look and the signal; then there is nothing to do.
        let _ = kill(left_over.pid, signal);
        if holds_within(patience, || !left_over.is_alive(cluster)).await {
            return Ok(());
        }
    }
    Err(PrivatePostgresError::LeftOver { pid: left_over.pid.as_raw() })
}

/// PostgreSQL trusts the pid file as long as any process has that number, so a stale one would block it. As long as a
/// process of the old server holds its memory, it must not be removed.
async fn remove_pid_file(left_over: &PidFile, cluster: &Path) -> Result<(), PrivatePostgresError> {
    let path = PidFile::path(cluster);
    if !path.exists() {
        return Ok(());
    }
    if !holds_within(IMMEDIATE, || left_over.memory_holders().unwrap_or(0) == 0).await {
        return Err(PrivatePostgresError::MemoryInUse { data: cluster.to_owned() });
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PrivatePostgresError::io("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Only a folder that a tracejoin made, by its name and owner.
fn remove_socket_folder(left_over: &PidFile, account: &Account) {
    let Some(folder) = &left_over.socket_folder else {
        return;
    };
    let is_ours = fs::symlink_metadata(folder).is_ok_and(|m| m.is_dir() && m.uid() == account.uid);
    if is_ours
        && socket_folder::has_our_name(folder)
        && let Err(error) = fs::remove_dir_all(folder)
    {
        tracing::debug!(folder = %folder.display(), %error, "left an old socket folder");
    }
}

async fn holds_within(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !condition() {
        if Instant::now() >= end {
            return false;
        }
        sleep(POLL).await;
    }
    true
}
