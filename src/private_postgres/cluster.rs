//! The files of the private PostgreSQL: made once, and the little that is written anew at each start.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::account::{Account, own_name};
use super::binaries::Binaries;
use super::error::PrivatePostgresError;

/// PostgreSQL's superuser and our only user.
pub const ROLE: &str = "tracejoin";

/// A server's log of this size is put aside at the next start.
const LARGE_LOG_BYTES: u64 = 16 << 20;

/// Paths below one data folder. The folder itself stays ours; only `cluster` belongs to the server's account, so that
/// a borrowed account cannot make root follow its links.
#[derive(Debug, Clone)]
pub struct Layout {
    pub root: PathBuf,
    pub cluster: PathBuf,
    pub log: PathBuf,
    hba: PathBuf,
    ident: PathBuf,
}

impl Layout {
    pub fn of(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            cluster: root.join("postgres"),
            log: root.join("postgres.log"),
            hba: root.join("pg_hba.conf"),
            ident: root.join("pg_ident.conf"),
        }
    }

    /// Settings that point the server at the files beside the cluster.
    pub fn settings(&self) -> [String; 2] {
        [format!("hba_file={}", self.hba.display()), format!("ident_file={}", self.ident.display())]
    }

    /// The server's log, opened for it to append to.
    pub fn open_log(&self) -> Result<fs::File, PrivatePostgresError> {
        if fs::metadata(&self.log).is_ok_and(|metadata| metadata.len() > LARGE_LOG_BYTES) {
            let aside = self.root.join("postgres.log.old");
            fs::rename(&self.log, &aside).map_err(PrivatePostgresError::io("cannot rename to", aside))?;
        }
        let log = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log);
        log.map_err(PrivatePostgresError::io("cannot open", &self.log))
    }

    /// The last lines of the server's log, for an error message.
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }

    /// Lets in ourselves and the server's account, each known to the kernel by its user id, and nobody else.
    pub fn write_access_files(&self, account: &Account) -> Result<(), PrivatePostgresError> {
        let mut map = String::new();
        for name in [own_name()?, account.name.clone()] {
            map.push_str(&format!("tracejoin \"{name}\" {ROLE}\n"));
        }
        let files = [(&self.hba, "local all all peer map=tracejoin\n"), (&self.ident, map.as_str())];
        for (path, text) in files {
            fs::write(path, text).map_err(PrivatePostgresError::io("cannot write", path))?;
            if account.borrowed {
                let readable = fs::Permissions::from_mode(0o644);
                fs::set_permissions(path, readable).map_err(PrivatePostgresError::io("cannot open up", path))?;
            }
        }
        Ok(())
    }
}

/// Makes the data folder; a borrowed account may pass through it, whatever our mask for new files.
pub fn make_root(root: &Path, account: &Account) -> Result<PathBuf, PrivatePostgresError> {
    if !root.is_dir() {
        fs::create_dir_all(root).map_err(PrivatePostgresError::io("cannot make the folder", root))?;
        if account.borrowed {
            let passable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(root, passable).map_err(PrivatePostgresError::io("cannot open up", root))?;
        }
    }
    root.canonicalize().map_err(PrivatePostgresError::io("cannot read", root))
}

/// Runs initdb beside the cluster's place and moves the result there, so that an initdb that was cut short is never
/// taken for a cluster.
pub async fn initialise(layout: &Layout, account: &Account, binaries: &Binaries) -> Result<(), PrivatePostgresError> {
    let new = layout.root.join("postgres.new");
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(PrivatePostgresError::io("cannot remove", new)(error));
        }
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&new).map_err(PrivatePostgresError::io("cannot make the folder", &new))?;
    account.own(&new)?;
    tracing::info!(folder = %layout.cluster.display(), version = binaries.major, "making a private PostgreSQL");
    let output = account
        .command(&binaries.initdb)
        .args(["--username", ROLE, "--encoding", "UTF8", "--locale", "C", "--auth", "peer", "--pgdata"])
        .arg(&new)
        .current_dir(&new)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(PrivatePostgresError::io("cannot run", &binaries.initdb))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(PrivatePostgresError::Initdb { output });
    }
    fs::rename(&new, &layout.cluster).map_err(PrivatePostgresError::io("cannot move into place", &layout.cluster))
}
