//! The server's settings: durable, sized for this machine, reachable by nobody else.

use std::fs;

/// Port of the socket's name; nothing listens on a network.
pub const PORT: u16 = 5432;

const MIB: u64 = 1 << 20;

/// Settings that do not depend on the machine. They are given on the command line, so that neither an edited
/// `postgresql.conf` nor `alter system` weakens what an acknowledgement promises.
const FIXED: [(&str, &str); 16] = [
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("synchronous_commit", "on"),
    // Ingest is a steady stream: rare checkpoints save most of the full-page images.
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "15min"),
    ("checkpoint_completion_target", "0.9"),
    // Queries here are short; compiling them costs more than it saves.
    ("jit", "off"),
    // Rows carry what callers measured: no statement text, parameters or row contents in the log.
    ("log_min_error_statement", "panic"),
    ("log_error_verbosity", "terse"),
    ("log_parameter_max_length_on_error", "0"),
    ("log_checkpoints", "off"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
];

/// `name=value` pairs for `postgres -c`.
pub fn all(compression: Option<&str>) -> Vec<String> {
    let mut settings: Vec<String> = FIXED.iter().map(|(name, value)| format!("{name}={value}")).collect();
    settings.push(format!("shared_buffers={}MB", shared_buffers_mib(memory_bytes())));
    if let Some(method) = compression {
        settings.push(format!("wal_compression={method}"));
    }
    settings
}

/// A sixteenth of the memory: enough for the newest partitions and their indexes, little enough to share a small
/// machine with the gateway that is measured.
fn shared_buffers_mib(memory: Option<u64>) -> u64 {
    match memory {
        Some(bytes) => (bytes / 16 / MIB).clamp(64, 1024),
        None => 128,
    }
}

/// The memory that we may use: the machine's, or less where a control group limits it.
fn memory_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse::<u64>().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(group.min(machine)),
        (machine, group) => machine.or(group),
    }
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_the_memory_within_bounds() {
        assert_eq!(shared_buffers_mib(None), 128);
        assert_eq!(shared_buffers_mib(Some(512 * MIB)), 64);
        assert_eq!(shared_buffers_mib(Some(4096 * MIB)), 256);
        assert_eq!(shared_buffers_mib(Some(u64::MAX)), 1024);
    }

    #[test]
    fn reads_the_machine_s_memory() {
        assert_eq!(total_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 * MIB));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn compression_is_set_only_where_supported() {
        assert!(all(Some("lz4")).contains(&"wal_compression=lz4".to_owned()));
        assert!(!all(None).iter().any(|setting| setting.starts_with("wal_compression")));
    }
}
