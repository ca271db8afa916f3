//! What the kernel says of processes and threads: time on the processors, bytes written, memory.

use std::{collections::BTreeMap, fs, time::Duration};

/// Clock ticks in a second; Linux tells programs 100 on every machine.
const TICKS: u64 = 100;

/// What one thread has used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) written: u64,
}

/// What the threads of a process have used, by their names.
pub(crate) fn threads(pid: u32) -> BTreeMap<String, Used> {
    let mut by_name: BTreeMap<String, Used> = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let used = by_name.entry(read("comm").trim().to_owned()).or_default();
        used.cpu += cpu_of(&read("stat"));
        used.written += field(&read("io"), "write_bytes:");
    }
    by_name
}

/// What was used between two looks.
pub(crate) fn since(
    before: &BTreeMap<String, Used>,
    after: &BTreeMap<String, Used>,
) -> BTreeMap<String, Used> {
    let grown = |(name, after): (&String, &Used)| {
        let before = before.get(name).copied().unwrap_or_default();
        let used = Used {
            cpu: after.cpu.saturating_sub(before.cpu),
            written: after.written.saturating_sub(before.written),
        };
        (name.clone(), used)
    };
    after.iter().map(grown).collect()
}

/// Time on the processors of a process and all its threads, the ended ones too.
pub(crate) fn cpu(pid: u32) -> Duration {
    cpu_of(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
}

/// Time on the processors of the threads that a process has now, to the nanosecond: [`cpu`] counts whole ticks, and a
/// process that does little has none.
pub(crate) fn run_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn cpu_of(stat: &str) -> Duration {
    // The name may hold spaces; user and system time are fields 14 and 15.
    let ticks = |field: usize| -> u64 {
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(field - 3)?.parse().ok()).unwrap_or(0)
    };
    Duration::from_millis((ticks(14) + ticks(15)) * 1_000 / TICKS)
}

/// Bytes of its memory that are in memory now.
pub(crate) fn resident(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(), "VmRSS:") * 1024
}

/// Bytes that exist because of this process alone.
pub(crate) fn private_dirty(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default(), "Private_Dirty:")
        * 1024
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The number behind a name.
fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_itself() {
        let own = std::process::id();
        assert!(resident(own) > 0 && private_dirty(own) > 0);
        assert!(threads(own).values().count() > 0);
        assert_eq!(field("a: 1\nVmRSS:   77 kB\n", "VmRSS:"), 77);
    }
}
