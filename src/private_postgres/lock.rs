//! One tracejoin a data folder, whoever starts it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::error::PrivatePostgresError;

/// Held as long as it lives. The kernel lets go of it when the process ends, however it ends, and child processes do
/// not inherit it.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock of `folder`, or says who holds it.
    pub fn take(folder: &Path) -> Result<Self, PrivatePostgresError> {
        let path = folder.join("tracejoin.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(PrivatePostgresError::io("cannot open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(&mut file);
                return Err(PrivatePostgresError::Locked { folder: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(PrivatePostgresError::io("cannot lock", path)(error)),
        }
        write_holder(&file, path)?;
        Ok(Self { _file: file })
    }
}

fn write_holder(mut file: &File, path: PathBuf) -> Result<(), PrivatePostgresError> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let holder = format!("process {} on host {}\n", std::process::id(), host.to_string_lossy());
    file.set_len(0)
        .and_then(|()| file.write_all(holder.as_bytes()))
        .map_err(PrivatePostgresError::io("cannot write", path))
}

/// The holder writes its name just after it got the lock, so the file may be empty for a moment.
fn read_holder(file: &mut File) -> String {
    let mut holder = String::new();
    match file.take(512).read_to_string(&mut holder) {
        Ok(_) if !holder.trim().is_empty() => holder.trim().to_owned(),
        _ => "that has not written its name yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_is_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = FolderLock::take(folder.path()).expect("nobody holds it");
        let message = FolderLock::take(folder.path()).expect_err("held").to_string();
        assert!(message.contains(&format!("process {} on host ", std::process::id())), "{message}");
        drop(first);
        FolderLock::take(folder.path()).expect("free again");
    }
}
