//! A file that grows by whole gzip members, so that a process that is killed leaves at most its last one torn.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A file of gzip members. Whoever reads it sees them as one.
#[derive(Debug)]
pub struct MemberFile {
    file: File,
    length: u64,
}

impl MemberFile {
    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// Where it is there, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).create_new(true).open(path)?, length: 0 })
    }

    /// Adds a member. One that is written in part is taken back, so that the next follows a whole one.
    ///
    /// # Errors
    /// Where it cannot be written; [`MemberFile::is_whole`] says whether the file may be written to again.
    pub fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text)?;
        let member = encoder.finish()?;
        if let Err(error) = self.file.write_all(&member) {
            // Whether that went well is asked by `is_whole`.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += member.len() as u64;
        Ok(())
    }

    /// Whether it still has a name: somebody may have deleted it.
    pub fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }

    /// Whether nothing but whole members is in it.
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.len() == self.length)
    }

    /// Brings it to the disk.
    ///
    /// # Errors
    /// A failure of the disk.
    pub fn close(self) -> io::Result<()> {
        self.file.sync_all()
    }
}
