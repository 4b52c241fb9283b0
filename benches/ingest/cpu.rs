//! Processor time by process, and the machine's load, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// Processor time that was used so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    pub server: Duration,
    pub postgres: Duration,
    pub generator: Duration,
}

impl Used {
    /// Of a server, of a postmaster with all its processes, and of this process.
    pub fn now(server: u32, postmaster: u32) -> anyhow::Result<Self> {
        Ok(Self {
            server: Stat::read(server)?.own,
            postgres: family(postmaster)?,
            generator: Stat::read(std::process::id())?.own,
        })
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            server: self.server.saturating_sub(earlier.server),
            postgres: self.postgres.saturating_sub(earlier.postgres),
            generator: self.generator.saturating_sub(earlier.generator),
        }
    }
}

/// The load average of the last minute.
pub fn load_average() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    text.split(' ').next().and_then(|first| first.parse().ok()).context("/proc/loadavg begins with a number")
}

/// Parent of a process.
pub fn parent(pid: u32) -> anyhow::Result<u32> {
    Ok(Stat::read(pid)?.parent)
}

/// A process with its children, those that have ended among them.
fn family(pid: u32) -> anyhow::Result<Duration> {
    let head = Stat::read(pid)?;
    let mut total = head.own + head.ended_children;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(other) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended meanwhile.
        let Ok(stat) = Stat::read(other) else { continue };
        if stat.parent == pid {
            total += stat.own;
        }
    }
    Ok(total)
}

struct Stat {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Stat {
    /// See proc(5), `/proc/pid/stat`.
    fn read(pid: u32) -> anyhow::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name before it may hold anything.
        let (_, rest) = text.rsplit_once(") ").context("a name in parentheses")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
        let ticks = |place| Some(Duration::from_millis(10 * (number(place)? + number(place + 1)?)));
        let parent = number(1).and_then(|parent| u32::try_from(parent).ok());
        let read = || Some(Self { parent: parent?, own: ticks(11)?, ended_children: ticks(13)? });
        read().context("numbers in /proc/pid/stat")
    }
}
