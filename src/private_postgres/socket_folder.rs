//! The folder of the unix socket: short, private, with a name that nobody can take first.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::account::Account;
use super::error::PrivatePostgresError;

const PREFIX: &str = "tracejoin-";

/// `sun_path` of a unix socket's address has 108 bytes, the last of which is 0.
const LONGEST_SOCKET_PATH: usize = 107;

/// What follows the base folder: our name with six random characters, and the name that PostgreSQL gives its socket.
const NAME_LENGTH: usize = "/tracejoin-xxxxxx/.s.PGSQL.5432".len();

/// Makes a folder of mode 0700 that belongs to `account` and disappears with the value returned. Its random name is new
/// in this instant, so that no other account can have prepared it, not even in a folder that all may write to.
pub fn make(account: &Account) -> Result<TempDir, PrivatePostgresError> {
    let mut tried = Vec::new();
    for base in bases(account) {
        if !fits(&base) {
            tried.push(format!("{} (too long)", base.display()));
            continue;
        }
        let mode = Permissions::from_mode(0o700);
        match tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempdir_in(&base) {
            Ok(folder) => {
                account.own(folder.path())?;
                return Ok(folder);
            }
            Err(error) => tried.push(format!("{} ({error})", base.display())),
        }
    }
    Err(PrivatePostgresError::NoSocketFolder { tried: tried.join(", ") })
}

/// Whether `folder` is named as [`make`] names them.
pub fn has_our_name(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// Where to put it, best first. For a borrowed account only folders that every account can reach.
fn bases(account: &Account) -> Vec<PathBuf> {
    let mut bases = Vec::new();
    if account.borrowed {
        bases.push(PathBuf::from("/run"));
    } else {
        bases.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
        bases.push(std::env::temp_dir());
    }
    bases.push(PathBuf::from("/tmp"));
    bases
}

fn fits(base: &Path) -> bool {
    base.is_absolute() && base.as_os_str().len() + NAME_LENGTH <= LONGEST_SOCKET_PATH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bases_do_not_fit_a_socket_address() {
        assert!(fits(Path::new("/tmp")));
        assert!(fits(&PathBuf::from(format!("/{}", "x".repeat(LONGEST_SOCKET_PATH - NAME_LENGTH - 1)))));
        assert!(!fits(&PathBuf::from(format!("/{}", "x".repeat(LONGEST_SOCKET_PATH - NAME_LENGTH)))));
        assert!(!fits(Path::new("relative")));
    }

    #[test]
    fn made_folders_are_private_and_known_by_name() {
        let name = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok().flatten().expect("a named user");
        let ours = Account { name: name.name, uid: name.uid.as_raw(), gid: name.gid.as_raw(), borrowed: false };
        let folder = make(&ours).expect("a folder");
        let mode = folder.path().metadata().expect("exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(has_our_name(folder.path()));
        assert!(!has_our_name(Path::new("/run/postgresql")));
    }
}
