//! Memory and processor time of processes as reported by the kernel.

use crate::Result;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Memory of one process, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Current resident memory.
    pub(crate) resident: u64,
    /// Peak resident memory.
    pub(crate) peak: u64,
}

/// Returns the memory of the process `id`.
pub(crate) fn memory(id: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let field = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no such line in a status")?;
        Ok(kibibytes.trim().parse::<u64>()? * 1024)
    };
    Ok(Memory { resident: field("VmRSS")?, peak: field("VmHWM")? })
}

/// Processor time of a period.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    /// Time of the watched processes.
    pub(crate) server: Duration,
    /// Time of this program.
    pub(crate) client: Duration,
    /// Time of everything else on the host, including the kernel.
    pub(crate) others: Duration,
}

impl Work {
    /// Adds the processor time of another period.
    pub(crate) fn add(&mut self, other: &Self) {
        self.server += other.server;
        self.client += other.client;
        self.others += other.others;
    }
}

/// Processor time up to a moment.
pub(crate) struct Reading {
    server: Duration,
    client: Duration,
    all: Duration,
}

impl Reading {
    /// Reads the processor time. `watched` are the processes of the server, whose children are included.
    pub(crate) fn take(watched: &[u32]) -> Result<Self> {
        let processes = processes();
        let belongs = |mut id: u32| {
            for _ in 0..8 {
                if watched.contains(&id) {
                    return true;
                }
                match processes.get(&id) {
                    Some((parent, _)) if *parent > 1 => id = *parent,
                    _ => return false,
                }
            }
            false
        };
        let server = processes.iter().filter(|(id, _)| belongs(**id)).map(|(_, (_, ticks))| ticks).sum();
        let client = processes.get(&std::process::id()).map_or(0, |(_, ticks)| *ticks);
        let stat = fs::read_to_string("/proc/stat")?;
        let fields = stat.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
        // user nice system idle iowait irq softirq steal
        let busy = fields.take(8).enumerate().filter(|(place, _)| !matches!(place, 3 | 4));
        let all = busy.map(|(_, ticks)| ticks.parse::<u64>().unwrap_or(0)).sum();
        Ok(Self { server: time(server), client: time(client), all: time(all) })
    }

    /// Returns the processor time used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Work {
        let server = self.server.saturating_sub(earlier.server);
        let client = self.client.saturating_sub(earlier.client);
        let others = self.all.saturating_sub(earlier.all).saturating_sub(server).saturating_sub(client);
        Work { server, client, others }
    }
}

/// Returns the parent and the used ticks of every process.
fn processes() -> BTreeMap<u32, (u32, u64)> {
    let Ok(directory) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let ids = directory.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| Some((id, parent_and_ticks(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?))).collect()
}

fn parent_and_ticks(stat: &str) -> Option<(u32, u64)> {
    // The name, in parentheses, may contain anything. The fields are counted after it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((fields.get(1)?.parse().ok()?, ticks))
}

fn time(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
