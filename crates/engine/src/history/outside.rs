//! Agent programs that somebody runs outside of Ostler: what the process table says of them.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    history::{Outside, Source},
    limits::OUTSIDE_AGENTS,
};

/// What runs programs that are scripts.
const INTERPRETERS: [&str; 3] = ["node", "bun", "deno"];

/// What a process was started with.
pub(super) struct Environment(Vec<u8>);

impl Environment {
    pub(super) fn of(process: &Path) -> Environment {
        Environment(fs::read(process.join("environ")).unwrap_or_default())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let all = self.0.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        all.into_iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    pub(super) fn is_of_ostler(&self) -> bool {
        self.variable("OSTLER_SESSION_ID").is_some()
    }

    pub(super) fn pane(&self) -> Option<String> {
        self.variable("TMUX_PANE")
    }
}

/// The programs of this kind that run now. Where the table cannot be read, nobody is said to.
pub(super) async fn running(source: Source) -> Vec<Outside> {
    tokio::task::spawn_blocking(move || found(Path::new("/proc"), source)).await.unwrap_or_default()
}

fn found(proc: &Path, source: Source) -> Vec<Outside> {
    let own = fs::metadata(proc.join("self")).ok().map(|about| about.uid());
    let mut all: Vec<(u32, PathBuf)> = fs::read_dir(proc)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(_, dir)| is_program(&fs::read(dir.join("cmdline")).unwrap_or_default(), source))
        .filter(|(_, dir)| own.is_none_or(|own| fs::metadata(dir).is_ok_and(|about| about.uid() == own)))
        .collect();
    all.sort();
    // A program that starts itself again, as launchers do, is one.
    let pids: HashSet<u32> = all.iter().map(|(pid, _)| *pid).collect();
    all.into_iter()
        .filter(|(_, dir)| !parent(dir).is_some_and(|parent| pids.contains(&parent)))
        .map(|(pid, dir)| (pid, Environment::of(&dir)))
        .filter(|(_, environment)| !environment.is_of_ostler())
        .map(|(pid, environment)| Outside { pid, pane: environment.pane() })
        .take(OUTSIDE_AGENTS)
        .collect()
}

/// `claude …`, `node /usr/bin/codex …`; not `vim claude.md`.
fn is_program(command: &[u8], source: Source) -> bool {
    let mut words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let stem = |word: Option<std::borrow::Cow<'_, str>>| {
        // Some give themselves a title, which may have more words.
        let word = word?;
        let name = word.split(' ').next()?.rsplit('/').next()?;
        Some(name.trim_end_matches(".js").trim_end_matches(".mjs").to_owned())
    };
    let is_named = |name: &str| match source {
        Source::OpenClaw => matches!(name, "openclaw" | "openclaw-gateway"),
        _ => name == source.as_str(),
    };
    let Some(first) = stem(words.next()) else { return false };
    is_named(&first)
        || INTERPRETERS.contains(&first.as_str()) && stem(words.next()).is_some_and(|name| is_named(&name))
}

/// The process that started it.
fn parent(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, parent: u32, command: &[&str], environment: &str) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("cmdline"), command.join("\0")).unwrap();
        fs::write(dir.join("environ"), environment).unwrap();
        fs::write(dir.join("status"), format!("Name:\tx\nPPid:\t{parent}\n")).unwrap();
    }

    #[test]
    fn programs_of_a_kind_are_found_once_each_and_never_ours() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        process(proc, 10, 1, &["claude", "--resume", "d1"], "TMUX_PANE=%3\0");
        process(proc, 11, 1, &["vim", "claude"], "");
        process(proc, 12, 1, &["/usr/bin/claude"], "A=b\0OSTLER_SESSION_ID=ses_1\0");
        process(proc, 13, 10, &["bash", "-c", "claude"], "TMUX_PANE=%3\0");
        process(proc, 20, 1, &["node", "/usr/bin/codex", "resume"], "");
        process(proc, 21, 20, &["/usr/lib/codex/codex", "resume"], "");
        process(proc, 30, 1, &["openclaw-gateway"], "");
        process(proc, 31, 1, &["claude-desktop"], "");
        fs::write(proc.join("version"), "x").unwrap();
        let pids =
            |source| found(proc, source).into_iter().map(|one| (one.pid, one.pane)).collect::<Vec<_>>();
        assert_eq!(pids(Source::Claude), [(10, Some("%3".to_owned()))]);
        assert_eq!(pids(Source::Codex), [(20, None)]);
        assert_eq!(pids(Source::OpenClaw), [(30, None)]);
    }
}
