//! Under whose user id PostgreSQL runs: it refuses root.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User};
use tokio::process::Command;

use super::error::PrivatePostgresError;

/// Accounts that root lends to PostgreSQL, best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The account of the server's processes and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// We are root and put on this account; otherwise it is our own.
    pub borrowed: bool,
}

impl Account {
    /// The account for the cluster in `cluster`: its owner if it exists already, else ourselves, or for root the first
    /// unprivileged account of this machine.
    pub fn of_cluster(cluster: &Path) -> Result<Self, PrivatePostgresError> {
        let user = Uid::effective();
        let owner = match fs::metadata(cluster) {
            Ok(metadata) => Some(metadata.uid()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(PrivatePostgresError::io("cannot read", cluster)(error)),
        };
        if !user.is_root() {
            return match owner {
                Some(owner) if owner != user.as_raw() => {
                    Err(PrivatePostgresError::ForeignFolder { folder: cluster.to_owned(), owner, user: user.as_raw() })
                }
                _ => Self::by_uid(user, false),
            };
        }
        match owner {
            Some(0) => Err(PrivatePostgresError::RootFolder { folder: cluster.to_owned() }),
            Some(owner) => Self::by_uid(Uid::from_raw(owner), true),
            None => Self::unprivileged(),
        }
    }

    fn by_uid(uid: Uid, borrowed: bool) -> Result<Self, PrivatePostgresError> {
        let user = User::from_uid(uid).ok().flatten();
        let user = user.ok_or(PrivatePostgresError::UnknownUser { uid: uid.as_raw() })?;
        Ok(Self::of_user(user, borrowed))
    }

    fn unprivileged() -> Result<Self, PrivatePostgresError> {
        for name in UNPRIVILEGED {
            if let Ok(Some(user)) = User::from_name(name) {
                return Ok(Self::of_user(user, true));
            }
        }
        Err(PrivatePostgresError::NoAccount)
    }

    fn of_user(user: User, borrowed: bool) -> Self {
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), borrowed }
    }

    /// A command that will run as this account, without our supplementary groups (the standard library drops those of
    /// root together with its user id), without PostgreSQL's own environment variables, in a process group of its own
    /// so that Ctrl-C in the terminal reaches us first.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.borrowed {
            command.uid(self.uid).gid(self.gid);
        }
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").process_group(0).stdin(std::process::Stdio::null());
        command
    }

    /// Gives `path` to the account where root made it.
    pub fn own(&self, path: &Path) -> Result<(), PrivatePostgresError> {
        if !self.borrowed {
            return Ok(());
        }
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(PrivatePostgresError::io("cannot give away", path))
    }

    /// Whether the account can enter `folder` (or, if that does not exist yet, its nearest existing parent). Asked of
    /// the kernel by starting `program` there, since modes alone do not tell (access lists, mounts).
    pub async fn can_reach(&self, folder: &Path, program: &Path) -> Result<bool, PrivatePostgresError> {
        if !self.borrowed {
            return Ok(true);
        }
        if !self.can_run(program, Path::new("/")).await? {
            return Err(PrivatePostgresError::NotExecutable {
                account: self.name.clone(),
                program: program.to_owned(),
            });
        }
        let existing = folder.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
        self.can_run(program, existing).await
    }

    async fn can_run(&self, program: &Path, folder: &Path) -> Result<bool, PrivatePostgresError> {
        match self.command(program).arg("--version").current_dir(folder).output().await {
            Ok(output) => Ok(output.status.success()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(PrivatePostgresError::io("cannot run", program)(error)),
        }
    }
}

/// The name of the account that tracejoin itself runs under, as PostgreSQL's peer authentication sees it.
pub fn own_name() -> Result<String, PrivatePostgresError> {
    Ok(Account::by_uid(Uid::effective(), false)?.name)
}
