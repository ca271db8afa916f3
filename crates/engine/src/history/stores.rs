//! What lies in a program's store: files found by their names, and what each is about from its beginning and end alone.

use std::{
    collections::HashMap,
    fs,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use ostler_domain::{
    Time,
    history::{Source, Store},
};
use ostler_providers::history::{About, glance};

use super::{lines, openclaw, openclaw::Row, time_of};

/// How deep and how far a store is looked through.
const DEPTH: usize = 8;
const ENTRIES: usize = 2_000_000;
/// How much of a file is read to know what it is about; more only where that says nothing.
const BEGINNING: u64 = 64 * 1024;
const LONG_BEGINNING: u64 = 4 * 1024 * 1024;
const END: u64 = 16 * 1024;

/// A file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreFile {
    pub(super) source: Source,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) written: Time,
}

/// A dialogue that a store has.
#[derive(Debug, Clone)]
pub(super) struct Dialogue {
    pub(super) file: StoreFile,
    pub(super) about: About,
    /// What OpenClaw's index says of it.
    pub(super) row: Option<Row>,
}

/// Sizes of files that were looked at before: they are not again until they change.
pub(super) type Seen = HashMap<PathBuf, (u64, Time)>;

/// The dialogues of a store that have changed, or why it cannot be looked through.
pub(super) fn look(store: &Store, since: Option<Time>, seen: &Seen) -> Result<Vec<Dialogue>, String> {
    let dir = Path::new(&store.dir);
    if !dir.is_dir() {
        return Err("there is no such directory".to_owned());
    }
    let mut files = Vec::new();
    let roots: Vec<PathBuf> = match store.source {
        Source::Claude => below(dir, &["projects"]),
        Source::Codex => below(dir, &["sessions", "archived_sessions"]),
        Source::OpenClaw => below(dir, &["agents"]),
    };
    let mut left = ENTRIES;
    for root in roots {
        walk(store.source, &root, 0, &mut left, &mut files);
    }
    let is_new = |file: &StoreFile| {
        since.is_none_or(|since| file.written >= since)
            && seen.get(&file.path) != Some(&(file.size, file.written))
    };
    files.retain(is_new);
    let mut rows = openclaw::Indexes::default();
    let about = |file: StoreFile| {
        let about = about(&file).unwrap_or_default();
        let about = named(about, &file);
        let row = (file.source == Source::OpenClaw).then(|| rows.row(&file.path, about.dialogue.as_deref()));
        Dialogue { file, about, row }
    };
    Ok(files.into_iter().map(about).collect())
}

/// Those of these directories that are there; the directory itself where somebody named it exactly.
fn below(dir: &Path, names: &[&str]) -> Vec<PathBuf> {
    let there: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).filter(|path| path.is_dir()).collect();
    if there.is_empty() { vec![dir.to_owned()] } else { there }
}

/// Links are not followed: whoever can write into a store must not be able to have others' files read.
fn walk(source: Source, dir: &Path, depth: usize, left: &mut usize, found: &mut Vec<StoreFile>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match left.checked_sub(1) {
            Some(rest) => *left = rest,
            None => return,
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < DEPTH {
            walk(source, &entry.path(), depth + 1, left, found);
        } else if kind.is_file() && is_dialogue(source, &entry.file_name().to_string_lossy()) {
            let Ok(about) = entry.metadata() else { continue };
            let written = about.modified().map(time_of).unwrap_or_default();
            found.push(StoreFile { source, path: entry.path(), size: about.len(), written });
        }
    }
}

pub(super) fn is_dialogue(source: Source, name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".jsonl") else { return false };
    match source {
        Source::Claude => stem != "history" && stem != "journal",
        Source::Codex => stem.starts_with("rollout-"),
        // What it kept of its own workings, and copies from before a compaction.
        Source::OpenClaw => !stem.contains(".trajectory") && !stem.contains(".checkpoint."),
    }
}

fn about(file: &StoreFile) -> io::Result<About> {
    let read = |from: u64, most: u64| -> io::Result<Vec<u8>> {
        let mut open = lines::open(&file.path)?;
        open.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        open.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let end = read(file.size.saturating_sub(END), END)?;
    let stem = stem(&file.path);
    let known = glance(file.source, &stem, &read(0, BEGINNING)?, &end);
    let says_enough = known.dialogue.is_some() && known.prompt.is_some();
    if says_enough || file.size <= BEGINNING {
        return Ok(known);
    }
    Ok(glance(file.source, &stem, &read(0, LONG_BEGINNING)?, &end))
}

/// How a file is called, without the ending.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A file is named after its dialogue; what its lines call it says which that is only where the name does not.
fn named(about: About, file: &StoreFile) -> About {
    // Nobody has said anything in it, and nobody has answered. What comes from OpenClaw goes out again all the same.
    if about.prompt.is_none() && about.model.is_none() && file.source != Source::OpenClaw {
        return About { dialogue: None, ..about };
    }
    let dialogue = match file.source {
        Source::Claude | Source::OpenClaw => Some(stem(&file.path)),
        Source::Codex => about.dialogue.clone(),
    };
    About { dialogue, ..about }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(source: Source, dir: &Path) -> Store {
        Store { source, dir: dir.to_string_lossy().into_owned() }
    }

    #[test]
    fn dialogues_are_found_by_their_names_and_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("projects/-srv-shop");
        fs::create_dir_all(project.join("s1/subagents")).unwrap();
        let line = r#"{"type":"user","sessionId":"s1","cwd":"/srv/shop","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"fix it"}}"#;
        fs::write(project.join("s1.jsonl"), format!("{line}\n")).unwrap();
        let helper = line.replace("\"type\"", "\"isSidechain\":true,\"agentId\":\"a7\",\"type\"");
        fs::write(project.join("s1/subagents/agent-a7.jsonl"), format!("{helper}\n")).unwrap();
        fs::write(project.join("notes.md"), "no").unwrap();
        fs::write(project.join("empty.jsonl"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", project.join("s2.jsonl")).unwrap();
        std::os::unix::fs::symlink(dir.path(), project.join("around")).unwrap();
        let mut found = look(&store(Source::Claude, dir.path()), None, &Seen::new()).unwrap();
        found.sort_by_key(|dialogue| dialogue.about.dialogue.clone());
        let names: Vec<Option<&str>> =
            found.iter().map(|dialogue| dialogue.about.dialogue.as_deref()).collect();
        assert_eq!(names, [None, Some("agent-a7"), Some("s1")]);
        assert_eq!(found[1].about.parent.as_deref(), Some("s1"));
        assert_eq!(found[2].about.cwd.as_deref(), Some("/srv/shop"));
        assert_eq!(found[2].about.prompt.as_deref(), Some("fix it"));
        // What has not changed is not looked at again, and what is old not at all.
        let seen = found.iter().map(|found| (found.file.path.clone(), (found.file.size, found.file.written)));
        assert!(look(&store(Source::Claude, dir.path()), None, &seen.collect()).unwrap().is_empty());
        let later = found[0].file.written.plus(std::time::Duration::from_secs(60));
        assert!(look(&store(Source::Claude, dir.path()), Some(later), &Seen::new()).unwrap().is_empty());
        assert!(look(&store(Source::Claude, &dir.path().join("none")), None, &Seen::new()).is_err());
    }

    #[test]
    fn a_rollout_is_called_as_its_file_where_its_first_line_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let day = dir.path().join("sessions/2026/11/19");
        fs::create_dir_all(&day).unwrap();
        let thread = "01a1e5cf-056d-7732-a866-52276e3dc640";
        let said = r#"{"type":"event_msg","payload":{"type":"user_message","message":"fix it"}}"#;
        let lines = format!("garbage\n{said}\n{said}\n");
        fs::write(day.join(format!("rollout-2026-11-19T10-00-00-{thread}.jsonl")), lines).unwrap();
        let found = look(&store(Source::Codex, dir.path()), None, &Seen::new()).unwrap();
        assert_eq!(found[0].about.dialogue.as_deref(), Some(thread));
        assert_eq!(found[0].about.prompt.as_deref(), Some("fix it"));
    }
}
