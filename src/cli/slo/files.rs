//! Objectives from files and folders.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use slo::document::{self, DocumentError};
use slo::{Objective, ObjectiveId};

/// The endings of files that are read where a folder is named.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Why files of objectives cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The system refuses to read one.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder holds none.
    #[error("{} holds no file that ends in .yaml, .yml or .json; name a folder or a file of objectives", .0.display())]
    Empty(PathBuf),
    /// What they say cannot be used; one line for each mistake.
    #[error("{}", lines(.0))]
    Wrong(Vec<FileError>),
}

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{error}")]
pub struct FileError {
    pub file: String,
    /// Where in it, what, and what to do.
    #[serde(flatten)]
    pub error: DocumentError,
}

fn lines(errors: &[FileError]) -> String {
    let lines: Vec<String> = errors.iter().map(FileError::to_string).collect();
    lines.join("\n")
}

/// Reads the objectives of the files named, and of those in the folders named, in the order of their paths.
///
/// # Errors
/// [`FilesError`]: for what files say, all mistakes of all files at once.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Objective>, FilesError> {
    let mut objectives = Vec::new();
    let mut wrong = Vec::new();
    let mut seen: HashMap<ObjectiveId, String> = HashMap::new();
    for path in gather(paths)? {
        let text = std::fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        let file = path.display().to_string();
        match document::read(&text) {
            Ok(read) => {
                wrong.extend(read.iter().filter_map(|objective| named_twice(objective, &file, &seen)));
                seen.extend(read.iter().map(|objective| (objective.id.clone(), file.clone())));
                objectives.extend(read);
            }
            Err(errors) => wrong.extend(errors.into_iter().map(|error| FileError { file: file.clone(), error })),
        }
    }
    if wrong.is_empty() { Ok(objectives) } else { Err(FilesError::Wrong(wrong)) }
}

/// The refusal of a name that another file has given already.
fn named_twice(objective: &Objective, file: &str, seen: &HashMap<ObjectiveId, String>) -> Option<FileError> {
    let other = seen.get(&objective.id)?;
    let reason = format!("`{}` is already an objective of {other}; rename one of them", objective.id);
    let error = DocumentError { line: 1, column: 1, field: "metadata.name".to_owned(), reason };
    Some(FileError { file: file.to_owned(), error })
}

/// The files behind paths: a file is itself, a folder what lies in it and in its folders. Each once.
fn gather(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FilesError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        gather_folder(path, &mut files)?;
        if files.len() == before {
            return Err(FilesError::Empty(path.clone()));
        }
    }
    let mut once = Vec::new();
    for file in files {
        if !once.contains(&file) {
            once.push(file);
        }
    }
    Ok(once)
}

/// Hidden names are passed over, and links to folders: a folder that is mounted shows its files a second time through them.
fn gather_folder(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), FilesError> {
    let refuse = |source| unreadable(folder, source);
    let mut entries = std::fs::read_dir(folder).map_err(refuse)?.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().map_err(refuse)?.is_dir() {
            gather_folder(&path, files)?;
        } else if path.is_file() && ENDINGS.iter().any(|ending| path.extension().is_some_and(|own| own == *ending)) {
            files.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> FilesError {
    FilesError::Unreadable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn objective(name: &str) -> String {
        format!(
            "apiVersion: tracejoin/v1\nkind: SLO\nmetadata: {{name: {name}}}\n\
             spec: {{phase: ttft, quantile: 0.95, threshold_ms: 500}}\n"
        )
    }

    fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
            fs::write(path, text).expect("written");
        }
        folder
    }

    #[test]
    fn a_folder_gives_what_lies_in_it_in_the_order_of_names() {
        let folder = folder(&[
            ("b.yml", objective("second")),
            ("a.yaml", objective("first")),
            ("sub/c.json", objective("third")),
            (".hidden.yaml", "not: an objective".to_owned()),
            ("README.md", "# not one either".to_owned()),
        ]);
        let paths = [folder.path().to_owned(), folder.path().join("a.yaml")];
        let names: Vec<String> = read(&paths).expect("objectives").iter().map(|one| one.id.to_string()).collect();
        assert_eq!(names, ["first", "second", "third"]);
    }

    #[test]
    fn every_mistake_of_every_file_is_told_at_once() {
        let files = [
            ("a.yaml", objective("same")),
            ("b.yaml", objective("same")),
            ("c.yaml", objective("other").replace("500", "-1")),
        ];
        let folder = folder(&files);
        let FilesError::Wrong(errors) = read(&[folder.path().to_owned()]).expect_err("mistakes") else {
            panic!("mistakes of files")
        };
        let at = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(errors.len(), 2);
        assert_eq!(
            errors[0].to_string(),
            format!(
                "{}:1:1: metadata.name: `same` is already an objective of {}; rename one of them",
                at("b.yaml"),
                at("a.yaml")
            )
        );
        assert!(errors[1].to_string().starts_with(&format!("{}:4:51: spec.threshold_ms: is -1;", at("c.yaml"))));
    }

    #[test]
    fn a_folder_without_objectives_and_a_file_that_is_not_there_are_refused() {
        let folder = folder(&[("README.md", String::new())]);
        assert!(matches!(read(&[folder.path().to_owned()]), Err(FilesError::Empty(_))));
        assert!(matches!(read(&[folder.path().join("none.yaml")]), Err(FilesError::Unreadable { .. })));
    }
}
