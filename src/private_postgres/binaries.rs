//! Finds PostgreSQL's server binaries, and those that match a cluster.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::PrivatePostgresError;

/// Where Debian and its kin keep one folder a major version.
const DISTRIBUTION: &str = "/usr/lib/postgresql";

/// The oldest major version that the schema is tested against.
const OLDEST_MAJOR: u32 = 13;

/// A folder with `postgres` and `initdb` of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub postgres: PathBuf,
    pub initdb: PathBuf,
    pub major: u32,
}

impl Binaries {
    /// All that can be found, best first: the folder that the user names (and then no other), PATH, the distribution's
    /// folders from the newest.
    pub async fn find(named: Option<&Path>) -> Result<Vec<Self>, PrivatePostgresError> {
        if let Some(named) = named {
            return Ok(vec![Self::named(named).await?]);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = on_path(&path);
        folders.extend(newest_first(Path::new(DISTRIBUTION)));
        let mut found: Vec<Self> = Vec::new();
        for folder in folders {
            if found.iter().any(|binaries| binaries.postgres.parent() == Some(&folder)) || missing(&folder).is_some() {
                continue;
            }
            match Self::at(&folder).await {
                Ok(binaries) => found.push(binaries),
                Err(error) => tracing::warn!(%error, "skipped a folder of PostgreSQL binaries"),
            }
        }
        if found.is_empty() { Err(PrivatePostgresError::NotInstalled) } else { Ok(found) }
    }

    /// The best of `candidates` for a new cluster, or for one written by `needed`.
    pub fn matching(candidates: &[Self], cluster: &Path) -> Result<Self, PrivatePostgresError> {
        let Some(needed) = cluster_version(cluster)? else {
            return candidates.first().cloned().ok_or(PrivatePostgresError::NotInstalled);
        };
        for candidate in candidates {
            if candidate.major == needed {
                return Ok(candidate.clone());
            }
        }
        let found: Vec<String> = candidates.iter().map(|candidate| candidate.major.to_string()).collect();
        Err(PrivatePostgresError::VersionMismatch { data: cluster.to_owned(), needed, found: found.join(", ") })
    }

    async fn named(named: &Path) -> Result<Self, PrivatePostgresError> {
        let folder = if named.is_file() { named.parent().unwrap_or(named) } else { named };
        if let Some(missing) = missing(folder) {
            return Err(PrivatePostgresError::NoSuchBinary { folder: named.to_owned(), missing });
        }
        let folder = folder.canonicalize().map_err(PrivatePostgresError::io("cannot read", folder))?;
        Self::at(&folder).await
    }

    async fn at(folder: &Path) -> Result<Self, PrivatePostgresError> {
        let postgres = folder.join("postgres");
        let output = Command::new(&postgres).arg("--version").output().await;
        let output = output.map_err(PrivatePostgresError::io("cannot run", &postgres))?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some(major) = major_version(&answer) else {
            return Err(PrivatePostgresError::NotPostgres { program: postgres, answer });
        };
        if major < OLDEST_MAJOR {
            return Err(PrivatePostgresError::TooOld { folder: folder.to_owned(), found: major, oldest: OLDEST_MAJOR });
        }
        Ok(Self { postgres, initdb: folder.join("initdb"), major })
    }
}

/// The major version that wrote `cluster`, if there is one.
pub fn cluster_version(cluster: &Path) -> Result<Option<u32>, PrivatePostgresError> {
    let path = cluster.join("PG_VERSION");
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(PrivatePostgresError::io("cannot read", &path))?;
    match text.trim().parse() {
        Ok(major) => Ok(Some(major)),
        Err(_) => Err(PrivatePostgresError::BadVersionFile { path }),
    }
}

fn missing(folder: &Path) -> Option<&'static str> {
    ["postgres", "initdb"].into_iter().find(|name| !folder.join(name).is_file())
}

/// Folders of PATH that offer a `postgres`, symbolic links followed: PostgreSQL finds its libraries by its own place.
fn on_path(path: &OsStr) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::env::split_paths(path) {
        if let Ok(program) = entry.join("postgres").canonicalize()
            && let Some(folder) = program.parent()
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

/// The `bin` folders under `root`, highest version first.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if let Some(version) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) {
            versions.push(version);
        }
    }
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| root.join(version.to_string()).join("bin")).collect()
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` → 15; `17beta1` and `18devel` count as 17 and 18.
fn major_version(answer: &str) -> Option<u32> {
    let version = answer.strip_prefix("postgres (PostgreSQL) ")?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binaries(major: u32) -> Binaries {
        let folder = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
        Binaries { postgres: folder.join("postgres"), initdb: folder.join("initdb"), major }
    }

    #[test]
    fn reads_the_major_version() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major_version("postgres (PostgreSQL) "), None);
        assert_eq!(major_version("mysqld 8"), None);
    }

    #[test]
    fn sorts_versions_as_numbers() {
        let root = tempfile::tempdir().expect("a temporary folder");
        for name in ["9", "15", "17", "common"] {
            fs::create_dir(root.path().join(name)).expect("a folder");
        }
        let folders = newest_first(root.path());
        let expected: Vec<PathBuf> = ["17", "15", "9"].iter().map(|v| root.path().join(v).join("bin")).collect();
        assert_eq!(folders, expected);
    }

    #[test]
    fn a_cluster_gets_the_binaries_that_wrote_it() {
        let cluster = tempfile::tempdir().expect("a temporary folder");
        let candidates = [binaries(17), binaries(15)];
        assert_eq!(Binaries::matching(&candidates, cluster.path()).expect("new cluster").major, 17);

        fs::write(cluster.path().join("PG_VERSION"), "15\n").expect("written");
        assert_eq!(Binaries::matching(&candidates, cluster.path()).expect("old cluster").major, 15);

        fs::write(cluster.path().join("PG_VERSION"), "14\n").expect("written");
        let message = Binaries::matching(&candidates, cluster.path()).expect_err("no 14 here").to_string();
        assert!(message.contains("written by PostgreSQL 14"), "{message}");
        assert!(message.contains("of 17, 15"), "{message}");
        assert!(message.contains("`postgresql-14`"), "{message}");
    }

    #[test]
    fn a_damaged_version_file_is_named() {
        let cluster = tempfile::tempdir().expect("a temporary folder");
        fs::write(cluster.path().join("PG_VERSION"), "fifteen").expect("written");
        let error = cluster_version(cluster.path()).expect_err("not a number");
        assert!(matches!(error, PrivatePostgresError::BadVersionFile { .. }), "{error}");
    }
}
