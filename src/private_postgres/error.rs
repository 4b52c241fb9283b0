//! What can keep a private PostgreSQL from starting, each with the way out.

use std::io;
use std::path::PathBuf;

/// Every message names the thing that is wrong and what the reader can do about it.
#[derive(Debug, thiserror::Error)]
pub enum PrivatePostgresError {
    #[error(
        "no PostgreSQL server binaries on PATH or under /usr/lib/postgresql: install the Debian package `postgresql`, \
         name their folder with --postgres-bin, or set DATABASE_URL to use a server of your own"
    )]
    NotInstalled,

    #[error("--postgres-bin {folder}: no `{missing}` in it; name the folder that holds `postgres` and `initdb`")]
    NoSuchBinary { folder: PathBuf, missing: &'static str },

    #[error("{program} does not answer `--version` as PostgreSQL does: {answer}")]
    NotPostgres { program: PathBuf, answer: String },

    #[error("{folder} holds PostgreSQL {found}; tracejoin needs {oldest} or newer")]
    TooOld { folder: PathBuf, found: u32, oldest: u32 },

    #[error(
        "{data} was written by PostgreSQL {needed}, but the binaries found are of {found}: install the Debian package \
         `postgresql-{needed}`, name its folder with --postgres-bin, or choose another --data-dir"
    )]
    VersionMismatch { data: PathBuf, needed: u32, found: String },

    #[error("{path} does not hold a PostgreSQL version number; the folder is damaged or not PostgreSQL's")]
    BadVersionFile { path: PathBuf },

    #[error(
        "running as root, but this machine has neither an account `postgres` nor `nobody` to run PostgreSQL under: add \
         one, run tracejoin as another user, or set DATABASE_URL"
    )]
    NoAccount,

    #[error(
        "user id {uid} has no entry in the user database, which PostgreSQL insists on: add one, run tracejoin as another \
         user, or set DATABASE_URL"
    )]
    UnknownUser { uid: u32 },

    #[error(
        "{folder} belongs to user id {owner}, but tracejoin runs as user id {user}: run it as the owner or as root"
    )]
    ForeignFolder { folder: PathBuf, owner: u32, user: u32 },

    #[error(
        "{folder} belongs to root, under whom PostgreSQL refuses to run: give it to the account `postgres` (chown -R)"
    )]
    RootFolder { folder: PathBuf },

    #[error(
        "the account `{account}`, under which PostgreSQL runs when tracejoin is root, cannot reach {folder}: choose a \
         --data-dir outside private folders such as root's home"
    )]
    Unreachable { account: String, folder: PathBuf },

    #[error(
        "the account `{account}`, under which PostgreSQL runs when tracejoin is root, may not execute {program}: make it \
         readable to all or name another folder with --postgres-bin"
    )]
    NotExecutable { account: String, program: PathBuf },

    #[error("{folder} is in use by tracejoin {holder}: stop that one or choose another --data-dir")]
    Locked { folder: PathBuf, holder: String },

    #[error("a PostgreSQL left over from an earlier run (process {pid}) does not stop: end it, then start again")]
    LeftOver { pid: i32 },

    #[error(
        "processes of an earlier PostgreSQL still hold the memory of {data}: wait for them to end or end them, then start \
         again"
    )]
    MemoryInUse { data: PathBuf },

    #[error("no folder short enough for a unix socket could be made; tried {tried}")]
    NoSocketFolder { tried: String },

    #[error("initdb failed: {output}")]
    Initdb { output: String },

    #[error("PostgreSQL ended before it was ready; the end of {log}:\n{tail}")]
    Ended { log: PathBuf, tail: String },

    #[error("the private PostgreSQL runs but does not let tracejoin in: {0}")]
    Connect(#[source] sqlx::Error),

    #[error("{action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl PrivatePostgresError {
    /// Names what was tried on which path, since an [`io::Error`] does not.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
