//! `postmaster.pid`: what a running (or killed) PostgreSQL says of itself, and whether that is still true.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

/// The lines of the file that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidFile {
    pub pid: Pid,
    /// Folder of the unix socket, once the server has made it.
    pub socket_folder: Option<PathBuf>,
    /// Key and id of the shared memory that all its processes hold.
    pub memory: Option<(i64, i64)>,
    /// It accepts connections.
    pub ready: bool,
}

impl PidFile {
    pub fn path(cluster: &Path) -> PathBuf {
        cluster.join("postmaster.pid")
    }

    /// What the file in `cluster` says; nothing if there is none or it is not yet written.
    pub fn read(cluster: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(Self::path(cluster)).ok()?)
    }

    /// Lines: pid, data folder, start time, port, socket folder, listen address, shared memory, status.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |number: usize| lines.get(number - 1).copied().unwrap_or_default();
        let pid: i32 = line(1).parse().ok()?;
        // A stand-alone backend (initdb's, a recovery by hand) writes its id as a negative number.
        let pid = Pid::from_raw(pid.checked_abs()?);
        let socket_folder = Some(line(5)).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let memory = line(7).split_once(' ').and_then(|(key, id)| Some((key.parse().ok()?, id.trim().parse().ok()?)));
        Some(Self { pid, socket_folder, memory, ready: line(8) == "ready" })
    }

    /// Whether the process named is a live PostgreSQL of `cluster`, and not one that got the same number later.
    pub fn is_alive(&self, cluster: &Path) -> bool {
        let Ok(command) = fs::read(format!("/proc/{}/cmdline", self.pid)) else {
            return false;
        };
        let mut arguments = command.split(|byte| *byte == 0);
        let program = arguments.next().unwrap_or_default();
        program.ends_with(b"postgres") && arguments.any(|argument| argument == cluster.as_os_str().as_encoded_bytes())
    }

    /// How many processes hold the shared memory named in the file; nothing if the kernel does not tell.
    pub fn memory_holders(&self) -> Option<u64> {
        let (key, id) = self.memory?;
        holders(&fs::read_to_string("/proc/sysvipc/shm").ok()?, key, id)
    }
}

/// The `nattch` column of a segment in the kernel's table, 0 for one that no longer exists.
fn holders(table: &str, key: i64, id: i64) -> Option<u64> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name: &str| header.iter().position(|title| *title == name);
    let (key_column, id_column, holders_column) = (column("key")?, column("shmid")?, column("nattch")?);
    for line in lines {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let cell = |index: usize| cells.get(index).and_then(|cell| cell.parse::<i64>().ok());
        if cell(key_column) == Some(key) && cell(id_column) == Some(id) {
            return cell(holders_column).and_then(|holders| holders.try_into().ok());
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "4711\n/data/postgres\n1700000000\n5432\n/run/tracejoin-x\n\n  5432001     98304\nready   \n";

    #[test]
    fn reads_a_running_server() {
        let file = PidFile::parse(READY).expect("complete");
        let expected = PidFile {
            pid: Pid::from_raw(4711),
            socket_folder: Some(PathBuf::from("/run/tracejoin-x")),
            memory: Some((5_432_001, 98_304)),
            ready: true,
        };
        assert_eq!(file, expected);
    }

    #[test]
    fn reads_a_file_half_written() {
        let file = PidFile::parse("4711\n/data/postgres\n").expect("the first line is enough");
        assert_eq!(file, PidFile { pid: Pid::from_raw(4711), socket_folder: None, memory: None, ready: false });
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("not a number"), None);
    }

    #[test]
    fn another_process_with_the_number_is_not_it() {
        let ourselves = PidFile { pid: nix::unistd::getpid(), socket_folder: None, memory: None, ready: true };
        assert!(!ourselves.is_alive(Path::new("/data/postgres")));
    }

    #[test]
    fn counts_the_holders_of_shared_memory() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid\n   5432001      98304   600                    56  4711  4799      6   101\n";
        assert_eq!(holders(table, 5_432_001, 98_304), Some(6));
        assert_eq!(holders(table, 5_432_001, 1), Some(0));
        assert_eq!(holders("", 5_432_001, 98_304), None);
    }
}
