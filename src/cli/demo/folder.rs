//! Where the demo's database lives.

use std::path::{Path, PathBuf};

/// The demo's data folder: one that the user named, or a temporary one that goes with this value.
pub struct DemoFolder {
    path: PathBuf,
    temporary: bool,
}

impl DemoFolder {
    /// The folder named, else one of our own below the system's temporary folder. It is not made here: PostgreSQL's
    /// account must own it.
    pub fn new(named: Option<PathBuf>) -> Self {
        match named {
            Some(path) => Self { path, temporary: false },
            None => {
                let name = format!("tracejoin-demo-{}-{:08x}", std::process::id(), rand::random::<u32>());
                Self { path: std::env::temp_dir().join(name), temporary: true }
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.path.display(), "the demo's folder could not be removed");
        }
    }
}
