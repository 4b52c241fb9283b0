//! Temporary folders that leave no PostgreSQL behind, even when the test process is killed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which is the end of the test process or of the folder's value, however it comes;
/// then ends the server that may still run in the folder and removes both the server's socket and the folder.
const CLEAN_UP: &str = r#"
read -r _
file="$1/postgres/postmaster.pid"
if [ -r "$file" ]; then
    pid=$(sed -n 1p "$file")
    socket=$(sed -n 5p "$file")
    kill -QUIT "$pid"
    while [ -e "$file" ] && kill -0 "$pid"; do sleep 0.1; done
    case "$socket" in */tracejoin-*) rm -rf "$socket" ;; esac
fi
rm -rf "$1"
"#;

/// A temporary folder that every account can reach, for a private PostgreSQL.
pub struct Folder {
    path: PathBuf,
    guard: Child,
}

impl Folder {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tracejoin-test-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in("/tmp")
            .expect("a folder in /tmp");
        let path = folder.keep();
        let guard = Command::new("sh")
            .args(["-c", CLEAN_UP, "clean-up"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell that waits to clean up");
        Self { path, guard }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
