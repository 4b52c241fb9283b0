//! The folders of the archive, one a day by UTC.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

const FORM: &str = "%Y-%m-%d";
const PREFIX: &str = "events-";
const SUFFIX: &str = ".ndjson.gz";

/// The day that a folder's name tells, as 2026-11-30.
pub fn parse(name: &str) -> Option<NaiveDate> {
    let day = NaiveDate::parse_from_str(name, FORM).ok()?;
    (folder(day) == name).then_some(day)
}

/// The name of a day's folder.
pub(super) fn folder(day: NaiveDate) -> String {
    day.format(FORM).to_string()
}

/// The name of a process's file.
pub(super) fn file(instance: &str) -> String {
    format!("{PREFIX}{instance}{SUFFIX}")
}

/// The days of an archive with their folders, the oldest first. What is named otherwise is none.
///
/// # Errors
/// Where the folder cannot be read.
pub fn days(dir: &Path) -> io::Result<Vec<(NaiveDate, PathBuf)>> {
    let mut days = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(day) = entry.file_name().to_str().and_then(parse) {
            days.push((day, entry.path()));
        }
    }
    days.sort();
    Ok(days)
}

/// Deletes the days before one, and says which. Of a folder only our own files go; one that holds others stays.
///
/// # Errors
/// What cannot be read or deleted, another process that was quicker apart.
pub(super) fn delete_before(dir: &Path, first_kept: NaiveDate) -> io::Result<Vec<NaiveDate>> {
    let mut deleted = Vec::new();
    for (day, path) in days(dir)?.into_iter().filter(|(day, _)| *day < first_kept) {
        match delete(&path) {
            Ok(true) => deleted.push(day),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

fn delete(folder: &Path) -> io::Result<bool> {
    let mut others = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if ours {
            fs::remove_file(entry.path())?;
        }
        others |= !ours;
    }
    if !others {
        fs::remove_dir(folder)?;
    }
    Ok(!others)
}
