//! Child processes that never outlive their test.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::scratch::Scratch;

/// How long a process may take to end after a signal before the test gives up on it.
const GRACE: Duration = Duration::from_secs(20);

/// A running child; its output goes to files in the scratch folder. Dropping it ends it politely, then by force.
pub struct Process {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    pub fn spawn(scratch: &Scratch, name: &str, command: &mut Command) -> Self {
        Self::start(scratch, name, command.stdin(Stdio::null()))
    }

    /// The same, with a standard input to write to.
    pub fn spawn_steered(scratch: &Scratch, name: &str, command: &mut Command) -> (Self, ChildStdin) {
        let mut process = Self::start(scratch, name, command.stdin(Stdio::piped()));
        let stdin = process.child.stdin.take().expect("it is piped");
        (process, stdin)
    }

    fn start(scratch: &Scratch, name: &str, command: &mut Command) -> Self {
        let stdout = scratch.join(&format!("{name}.out"));
        let stderr = scratch.join(&format!("{name}.log"));
        let out = File::create(&stdout).expect("a file for its output");
        let log = File::options().create(true).append(true).open(&stderr).expect("a file for its log");
        let child = command.stdout(out).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {name} ({command:?}): {error}"));
        Self { name: name.to_owned(), child, stdout, stderr }
    }

    /// Waits until the lines of standard output satisfy `read`, and returns what it made of them.
    pub async fn wait_for_output<T>(&mut self, patience: Duration, read: impl Fn(&str) -> Option<T>) -> T {
        self.wait_for(self.stdout.clone(), patience, read).await
    }

    /// The same of its log.
    pub async fn wait_for_log<T>(&mut self, patience: Duration, read: impl Fn(&str) -> Option<T>) -> T {
        self.wait_for(self.stderr.clone(), patience, read).await
    }

    async fn wait_for<T>(&mut self, file: PathBuf, patience: Duration, read: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + patience;
        loop {
            let output = fs::read_to_string(&file).unwrap_or_default();
            if let Some(found) = read(&output) {
                return found;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("{} ended at once ({status}); its log:\n{}", self.name, self.log_tail());
            }
            assert!(Instant::now() < deadline, "{} was not ready; its log:\n{}", self.name, self.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        // If it has just ended, whoever waits for it sees that.
        let _ = kill(pid, signal);
    }

    /// Sends the signal and waits for the end.
    pub async fn stop(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait(GRACE).await
    }

    pub async fn wait(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child's status") {
                return status;
            }
            assert!(Instant::now() < deadline, "{} did not end; its log:\n{}", self.name, self.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.stderr).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An ended child's number may be another's by now.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
