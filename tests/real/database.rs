//! A PostgreSQL server of the test's own that it can really stop and start again at the same address.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::{Uid, User};
use tokio::net::TcpStream;

use crate::collector::free_address;
use crate::process::Process;
use crate::scratch::Scratch;

pub struct Database {
    port: u16,
    binaries: PathBuf,
    cluster: PathBuf,
    account: Option<User>,
    server: Option<Process>,
}

impl Database {
    /// Makes the cluster and starts the server.
    pub async fn start(scratch: &Scratch) -> Self {
        let account = lent_account();
        let cluster = scratch.join("cluster");
        fs::create_dir(&cluster).expect("a folder for the cluster");
        if let Some(account) = &account {
            chown(&cluster, Some(account.uid.as_raw()), Some(account.gid.as_raw()))
                .expect("root may give a folder away");
        }
        let port = free_address().port();
        let mut database = Self { port, binaries: binaries(), cluster, account, server: None };
        let mut initdb = database.command("initdb");
        initdb.args(["--username=tracejoin", "--auth=trust", "--encoding=UTF8", "--no-locale", "--pgdata"]);
        let made = initdb.arg(&database.cluster).output().expect("initdb runs");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        database.resume(scratch).await;
        database
    }

    pub fn url(&self) -> String {
        format!("postgres://tracejoin@127.0.0.1:{}/postgres", self.port)
    }

    /// Shuts the server down; its clients are cut off.
    pub async fn stop(&mut self) {
        let server = self.server.take().expect("the server runs");
        server.stop(Signal::SIGINT).await;
    }

    /// Starts the server again on its data and at its address.
    pub async fn resume(&mut self, scratch: &Scratch) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(&self.cluster).args(["-p", &self.port.to_string()]);
        postgres.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        let server = Process::spawn(scratch, "postgres", &mut postgres);
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            assert!(Instant::now() < deadline, "PostgreSQL does not listen:\n{}", server.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.server = Some(server);
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command.current_dir("/");
        if let Some(account) = &self.account {
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        command
    }
}

/// PostgreSQL refuses root, who lends it an account.
fn lent_account() -> Option<User> {
    if !Uid::effective().is_root() {
        return None;
    }
    let account = ["postgres", "nobody"].iter().find_map(|name| User::from_name(name).ok().flatten());
    Some(account.expect("an account `postgres` or `nobody`"))
}

/// The newest server of the distribution, else the one on the path.
fn binaries() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let major = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest =
        versions.map(|entry| entry.path()).filter(|folder| folder.join("bin/postgres").exists()).max_by_key(major);
    if let Some(folder) = newest {
        return folder.join("bin");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|folder: &PathBuf| Path::new(folder).join("postgres").exists());
    found.expect("PostgreSQL's server binaries: install the package postgresql")
}
