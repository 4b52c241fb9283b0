//! The running server: started, watched, started again when it dies, stopped.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::account::Account;
use super::binaries::Binaries;
use super::cluster::Layout;
use super::error::PrivatePostgresError;
use super::left_over;
use super::lock::FolderLock;
use super::pid_file::PidFile;
use super::settings;

const POLL: Duration = Duration::from_millis(10);
/// How often to say that a recovery after a crash still goes on.
const REMINDER: Duration = Duration::from_secs(10);
/// Pauses between attempts to start a server that died: the first, doubled up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// A fast shutdown (sessions cut, a checkpoint written), then an immediate one (recovery at the next start).
const SHUTDOWNS: [(Signal, Duration); 2] =
    [(Signal::SIGINT, Duration::from_secs(60)), (Signal::SIGQUIT, Duration::from_secs(15))];

/// All that is needed to start the server, now and again. The lock and the socket's folder live as long as it may run.
#[derive(Debug)]
pub struct Server {
    pub layout: Layout,
    pub account: Account,
    pub binaries: Binaries,
    pub socket: TempDir,
    pub _lock: FolderLock,
}

/// A `postgres` process of ours. Whoever drops it without [`Process::stop`] has at least asked it to stop.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Server {
    /// Starts a server and waits until it accepts connections: at once after an orderly stop, after a recovery
    /// otherwise, however long that takes.
    pub async fn start(&self) -> Result<Process, PrivatePostgresError> {
        left_over::clear(&self.layout.cluster, &self.account, self.socket.path()).await?;
        self.layout.write_access_files(&self.account)?;
        let compression = self.supports_lz4().await.then_some("lz4");
        let mut process = self.spawn(compression)?;
        self.wait_until_ready(&mut process).await?;
        Ok(process)
    }

    /// Keeps a server running until `stop` is cancelled, then stops it.
    pub async fn supervise(self, mut process: Process, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                status = process.child.wait() => {
                    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    tracing::error!(%status, log = %self.layout.log.display(), "the private PostgreSQL ended");
                }
            }
            match self.start_again(&stop).await {
                Some(started) => process = started,
                None => return,
            }
        }
        process.stop().await;
    }

    /// Tries until it runs; nothing if told to stop meanwhile.
    async fn start_again(&self, stop: &CancellationToken) -> Option<Process> {
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = async {
                sleep(pause).await;
                self.start().await
            };
            match stop.run_until_cancelled(attempt).await? {
                Ok(process) => {
                    tracing::info!("the private PostgreSQL runs again");
                    return Some(process);
                }
                Err(error) => tracing::error!(%error, "the private PostgreSQL does not start"),
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn postgres(&self) -> Command {
        let mut command = self.account.command(&self.binaries.postgres);
        command.arg("-D").arg(&self.layout.cluster).current_dir(&self.layout.cluster);
        command
    }

    /// Whether this build can compress full-page images with lz4: asked, since distributions differ.
    async fn supports_lz4(&self) -> bool {
        let answer = self.postgres().args(["-C", "wal_compression", "-c", "wal_compression=lz4"]).output().await;
        answer.is_ok_and(|output| output.status.success())
    }

    fn spawn(&self, compression: Option<&str>) -> Result<Process, PrivatePostgresError> {
        let log = self.layout.open_log()?;
        let errors = log.try_clone().map_err(PrivatePostgresError::io("cannot open", &self.layout.log))?;
        let mut command = self.postgres();
        command.arg("-k").arg(self.socket.path()).args(["-p", &settings::PORT.to_string()]);
        for setting in settings::all(compression).into_iter().chain(self.layout.settings()) {
            command.arg("-c").arg(setting);
        }
        let child = command.stdout(log).stderr(errors).spawn();
        let child = child.map_err(PrivatePostgresError::io("cannot run", &self.binaries.postgres))?;
        Ok(Process { child })
    }

    async fn wait_until_ready(&self, process: &mut Process) -> Result<(), PrivatePostgresError> {
        let mut reminder = Instant::now() + REMINDER;
        loop {
            let ended = process.child.try_wait();
            if ended.map_err(PrivatePostgresError::io("cannot watch", &self.binaries.postgres))?.is_some() {
                return Err(PrivatePostgresError::Ended { log: self.layout.log.clone(), tail: self.layout.log_tail() });
            }
            let pid_file = PidFile::read(&self.layout.cluster);
            if pid_file.is_some_and(|file| file.ready && Some(file.pid) == process.pid()) {
                return Ok(());
            }
            if Instant::now() >= reminder {
                tracing::info!("waiting for the private PostgreSQL to recover");
                reminder += REMINDER;
            }
            sleep(POLL).await;
        }
    }
}

impl Process {
    /// Nothing once it has ended and been waited for.
    fn pid(&self) -> Option<Pid> {
        let id = i32::try_from(self.child.id()?).ok()?;
        Some(Pid::from_raw(id))
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // Fails only for a process that has just ended, which is what was wanted.
            let _ = kill(pid, signal);
        }
    }

    /// Stops it in order, or without delay if that takes too long.
    pub async fn stop(mut self) {
        for (signal, patience) in SHUTDOWNS {
            self.signal(signal);
            if timeout(patience, self.child.wait()).await.is_ok() {
                return;
            }
            tracing::warn!(%signal, "the private PostgreSQL has not stopped yet");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGINT);
    }
}
