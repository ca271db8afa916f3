//! Where and when it was measured.

use std::{fs, path::Path, process::Command, thread};

/// Facts without which a number means nothing.
pub(crate) struct Machine {
    cores: usize,
    kernel: String,
    memory_gb: u64,
    file_system: String,
    load: String,
    date: String,
    commit: String,
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
            commit: commit(Path::new(env!("CARGO_MANIFEST_DIR"))),
        }
    }

    pub(crate) fn write(&self) -> String {
        let Self { cores, kernel, memory_gb, file_system, load, date, commit } = self;
        format!(
            "{date} · {cores} cores · {memory_gb} GB · Linux {kernel} · {file_system} · load average before {load} · {commit}"
        )
    }
}

/// Of which tree the program was made: its last commit, and whether anything was changed since.
fn commit(tree: &Path) -> String {
    let git = |words: &[&str]| {
        let said = Command::new("git").arg("-C").arg(tree).args(words).output().ok()?;
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    match (git(&["rev-parse", "--short=10", "HEAD"]), git(&["status", "--porcelain"])) {
        (Some(commit), Some(changed)) if changed.is_empty() => format!("commit {commit}"),
        (Some(commit), _) => format!("commit {commit} and what was changed since"),
        (None, _) => "commit unknown".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_of_which_tree_it_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(commit(dir.path()), "commit unknown");
        let git = |words: &[&str]| {
            let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
            let said =
                Command::new("git").arg("-C").arg(dir.path()).args(identity).args(words).output().unwrap();
            assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        let head = git(&["rev-parse", "--short=10", "HEAD"]);
        assert_eq!(commit(dir.path()), format!("commit {head}"));
        fs::write(dir.path().join("new"), "").unwrap();
        assert_eq!(commit(dir.path()), format!("commit {head} and what was changed since"));
    }
}
