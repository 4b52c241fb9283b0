//! A test's own folder.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Removed at the end, unless the test failed: then it keeps the logs and says where they are.
pub struct Scratch(Option<TempDir>);

impl Scratch {
    pub fn new() -> Self {
        // PostgreSQL's account, which is not root, has to pass through it.
        let open = Permissions::from_mode(0o755);
        let made = tempfile::Builder::new().prefix("tracejoin-real-").permissions(open).tempdir();
        Self(Some(made.expect("a temporary folder")))
    }

    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("there until dropped").path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(folder) = self.0.take() else { return };
        if std::thread::panicking() {
            eprintln!("logs are kept in {}", folder.keep().display());
        }
    }
}
