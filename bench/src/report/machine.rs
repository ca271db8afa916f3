//! Where and when it was measured.

use std::{fs, path::Path, thread};

/// Facts without which a number means nothing.
pub(crate) struct Machine {
    cores: usize,
    kernel: String,
    memory_gb: u64,
    file_system: String,
    load: String,
    date: String,
}

impl Machine {
    /// Looks at the machine as it is now; `dir` is where the benchmarks write.
    pub(crate) fn now(dir: &Path) -> Self {
        let word = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let memory = word("/proc/meminfo");
        let memory =
            memory.lines().next().and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Self {
            cores: thread::available_parallelism().map_or(0, usize::from),
            kernel: word("/proc/sys/kernel/osrelease"),
            memory_gb: memory.unwrap_or(0) >> 20,
            file_system: file_system(dir),
            load: word("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        }
    }

    pub(crate) fn write(&self) -> String {
        let Self { cores, kernel, memory_gb, file_system, load, date } = self;
        format!(
            "{date} · {cores} cores · {memory_gb} GB · Linux {kernel} · {file_system} · load average before {load}"
        )
    }
}

/// The kind of the file system that holds a directory: the longest mount point above it.
fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fitting = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        dir.starts_with(place).then(|| (place.len(), kind.to_owned()))
    });
    fitting.max_by_key(|(length, _)| *length).map_or_else(|| "?".to_owned(), |(_, kind)| kind)
}
