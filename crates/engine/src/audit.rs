//! The audit log: who was let to do what, one JSON line each, in a file that no agent can reach. Each line carries the
//! hash of the one before, so that a line that was cut out or changed shows.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ostler_domain::{Policy, Time};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Change;

/// A line's hash before there is a line.
const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Allowed,
    Denied,
}

/// By which way somebody came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Door {
    /// The control socket: a person.
    Control,
    /// The HTTP door: a browser, or a program with a token.
    Http,
    /// A session: its agent.
    Session,
    /// Nobody came: Ostler's own doing.
    None,
}

/// Who it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) name: &'a str,
    pub(crate) pid: Option<u32>,
    pub(crate) door: Door,
}

impl<'a> Who<'a> {
    pub(crate) fn of(change: &'a Change) -> Self {
        let door = match change.pid {
            // Who asks from within this process came in by its other door.
            Some(pid) if pid == std::process::id() => Door::Http,
            Some(_) => Door::Control,
            None => Door::None,
        };
        Self { name: &change.by.0, pid: change.pid, door }
    }
}

/// One decision.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) time: Time,
    pub(crate) actor: Who<'a>,
    /// `session.start`, `campaign.set`, `command`, `halt`, …
    pub(crate) action: &'static str,
    pub(crate) object: String,
    pub(crate) decision: Decision,
    pub(crate) reason: String,
    pub(crate) policy: Option<&'a Policy>,
}

/// A line as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    time_us: i64,
    actor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    door: Option<Door>,
    action: String,
    object: String,
    decision: Decision,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    previous: String,
}

/// The file, opened when there is something to write.
pub(crate) struct Audit {
    path: PathBuf,
    open: Mutex<Option<Open>>,
}

struct Open {
    file: File,
    last: String,
}

impl Audit {
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self { path: state_dir.join("audit.jsonl"), open: Mutex::new(None) }
    }

    /// Adds a line. What cannot be written is said in the daemon's log: a full disk has refused the thing itself already.
    pub(crate) fn write(&self, entry: &Entry<'_>) {
        if let Err(error) = self.try_write(entry) {
            tracing::error!(action = entry.action, object = entry.object, %error, "the audit log cannot be written");
        }
    }

    fn try_write(&self, entry: &Entry<'_>) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *open {
            Some(open) => open,
            none => none.insert(Open::at(&self.path)?),
        };
        let written = Written {
            time_us: entry.time.micros(),
            actor: entry.actor.name.to_owned(),
            pid: entry.actor.pid,
            door: Some(entry.actor.door),
            action: entry.action.to_owned(),
            object: entry.object.clone(),
            decision: entry.decision,
            reason: entry.reason.clone(),
            policy: entry.policy.map(|policy| hash(&serde_json::to_vec(policy).unwrap_or_default())),
            previous: open.last.clone(),
        };
        let mut line = serde_json::to_vec(&written)?;
        let hash = hash(&line);
        line.push(b'\n');
        open.file.write_all(&line)?;
        open.last = hash;
        Ok(())
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        file.seek(SeekFrom::Start(0))?;
        let mut last = BEGINNING.to_owned();
        let mut ends_whole = true;
        for line in BufReader::new(&file).split(b'\n') {
            let line = line?;
            ends_whole = serde_json::from_slice::<Written>(&line).is_ok();
            last = hash(&line);
        }
        if !ends_whole {
            // A daemon that was killed in the middle of a line: the next one begins on its own.
            file.write_all(b"\n")?;
        }
        Ok(Self { file, last })
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a look through the log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub path: PathBuf,
    pub lines: u64,
    /// Lines that were cut off when a daemon was killed; the next one follows from what there is of them.
    pub torn: u64,
    /// The first line that does not follow from the one before it, and why.
    pub broken: Option<(u64, &'static str)>,
}

impl Audit {
    /// Looks whether each line follows from the one before it, and the last one is the last that this daemon wrote.
    pub(crate) fn verify(&self) -> io::Result<Verified> {
        // Nobody writes meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Verified { path: self.path.clone(), lines: 0, torn: 0, broken: None };
        let mut last = BEGINNING.to_owned();
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        for line in file.map(BufReader::new).into_iter().flat_map(|file| file.split(b'\n')) {
            let line = line?;
            found.lines += 1;
            match serde_json::from_slice::<Written>(&line) {
                Ok(written) if written.previous != last => {
                    let why = "it does not follow from the line before it: one of them was changed, or lines \
                               between them were taken out";
                    found.broken.get_or_insert((found.lines, why));
                }
                Ok(_) => {}
                Err(_) => found.torn += 1,
            }
            last = hash(&line);
        }
        if open.as_ref().is_some_and(|open| open.last != last) {
            let why = "it is not the last that the daemon wrote: lines at the end were changed or taken out";
            found.broken.get_or_insert((found.lines, why));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str) -> impl Fn(&Audit) {
        let object = object.to_owned();
        move |audit| {
            audit.write(&Entry {
                time: Time::from_micros(7),
                actor: Who { name: "ann", pid: Some(7), door: Door::Control },
                action: "command",
                object: object.clone(),
                decision: Decision::Denied,
                reason: "command list".to_owned(),
                policy: Some(&Policy::default()),
            });
        }
    }

    #[test]
    fn a_line_that_was_changed_or_cut_out_shows() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..2 {
            // The chain goes on over a restart.
            let audit = Audit::below(dir.path());
            (0..3).for_each(|n| entry(&format!("{round}.{n}"))(&audit));
        }
        let path = dir.path().join("audit.jsonl");
        let first_broken = || Audit::below(dir.path()).verify().unwrap().broken.map(|(line, _)| line);
        assert_eq!(first_broken(), None);
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        std::fs::write(&path, [&lines[..2], &lines[3..]].concat().join("\n")).unwrap();
        assert_eq!(first_broken(), Some(3));
        std::fs::write(&path, whole.replacen("0.1", "9.9", 1)).unwrap();
        assert_eq!(first_broken(), Some(3));
    }

    #[test]
    fn what_a_killed_daemon_left_is_no_forgery_and_a_cut_end_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        assert_eq!(Audit::below(dir.path()).verify().unwrap().lines, 0, "there is none yet");
        entry("one")(&Audit::below(dir.path()));
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"time_us\":7,\"act").unwrap();
        let audit = Audit::below(dir.path());
        entry("two")(&audit);
        let found = audit.verify().unwrap();
        assert_eq!((found.lines, found.torn, found.broken), (3, 1, None));
        let whole = std::fs::read_to_string(&path).unwrap();
        let (without_last, _) = whole.trim_end().rsplit_once('\n').unwrap();
        std::fs::write(&path, format!("{without_last}\n")).unwrap();
        assert!(audit.verify().unwrap().broken.is_some_and(|(_, why)| why.contains("not the last")));
    }
}
