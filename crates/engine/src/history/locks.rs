//! OpenClaw's locks: `<transcript>.jsonl.lock`, with the process that writes. What it is writing may be half there.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use ostler_domain::Time;
use serde::Deserialize;

/// A lock is never held for longer.
const STALE: Duration = Duration::from_secs(30 * 60);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lock {
    pid: u32,
    #[serde(default)]
    created_at: Option<String>,
    /// When the process began, in the kernel's ticks: tells it from another one with its number.
    #[serde(default)]
    starttime: Option<u64>,
}

/// Who holds a lock in one of these directories, in words.
pub(super) fn held(proc: &Path, dirs: &[impl AsRef<Path>], now: SystemTime) -> Option<String> {
    for dir in dirs {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || !name.ends_with(".lock") {
                continue;
            }
            let age = entry.metadata().and_then(|about| about.modified());
            let is_fresh = age.is_ok_and(|at| now.duration_since(at).unwrap_or_default() < STALE);
            let text = fs::read(entry.path()).unwrap_or_default();
            match serde_json::from_slice::<Lock>(&text) {
                Ok(lock) if is_live(proc, &lock, now) => {
                    return Some(format!("process {} writes to it: {name}", lock.pid));
                }
                Ok(_) => {}
                Err(_) if is_fresh => return Some(format!("somebody writes to it: {name}")),
                Err(_) => {}
            }
        }
    }
    None
}

fn is_live(proc: &Path, lock: &Lock, now: SystemTime) -> bool {
    let created = lock.created_at.as_deref().and_then(Time::from_rfc3339);
    let is_stale = created.is_some_and(|created| super::time_of(now).since(created) > STALE);
    let Ok(stat) = fs::read_to_string(proc.join(lock.pid.to_string()).join("stat")) else { return false };
    let is_same = lock.starttime.is_none_or(|began| started(&stat) == Some(began));
    is_same && !is_stale
}

/// The moment in which a process began, in ticks since the machine did.
pub(super) fn started(stat: &str) -> Option<u64> {
    // Its name may have anything in it but ends with the last parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_holds_while_its_process_lives_and_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc");
        fs::create_dir_all(proc.join("77")).unwrap();
        let fields: Vec<String> = (4..=52).map(|n| if n == 22 { "900" } else { "0" }.to_owned()).collect();
        fs::write(proc.join("77/stat"), format!("77 (a) b) S {}", fields.join(" "))).unwrap();
        let store = dir.path().join("store");
        fs::create_dir(&store).unwrap();
        let now = SystemTime::now();
        let held = |text: &str| {
            fs::write(store.join("a.jsonl.lock"), text).unwrap();
            held(&proc, &[&store], now)
        };
        assert_eq!(held(r#"{"pid":77,"starttime":900}"#).unwrap(), "process 77 writes to it: a.jsonl.lock");
        assert_eq!(held(r#"{"pid":77,"starttime":901}"#), None, "another process has its number");
        assert_eq!(held(r#"{"pid":78,"starttime":900}"#), None, "it is dead");
        assert_eq!(
            held(r#"{"pid":77,"createdAt":"2020-01-01T00:00:00.000Z"}"#),
            None,
            "nobody holds one so long"
        );
        assert!(held("").is_some(), "half a lock that was just made");
    }
}
