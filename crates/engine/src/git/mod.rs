//! What becomes of campaigns' files: snapshots after each turn, what differs between them, and the way back.
//!
//! Everything that git does is done inside a sandbox ([`inside`]). Snapshots are commits of a repository of Ostler's own,
//! one for each campaign, which no agent can see; the tree is read-only while one is taken.

mod blame;
pub(crate) mod diff;
pub(crate) mod forecast;
mod fresh;
mod in_the_way;
pub(crate) mod inside;
mod rewind;
mod snapshot;
pub(crate) mod worktree;
mod worktrees;

use std::{
    collections::HashMap,
    fs::{DirBuilder, File},
    io::{self, Read},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ostler_domain::{CampaignId, limits::SNAPSHOTS_AT_ONCE, policy::Snapshots, snapshot::branch_of_head};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use tokio::{
    sync::{Mutex as Turns, OwnedMutexGuard, Semaphore},
    time::Instant,
};

/// Who may look at which repository now.
pub(crate) struct Git {
    turns: Mutex<HashMap<CampaignId, Arc<Turns<()>>>>,
    at_once: Semaphore,
    /// Trees that took too long, and when they are looked at again.
    too_large: Mutex<HashMap<PathBuf, Instant>>,
}

impl Default for Git {
    fn default() -> Self {
        Self {
            turns: Mutex::default(),
            at_once: Semaphore::new(SNAPSHOTS_AT_ONCE),
            too_large: Mutex::default(),
        }
    }
}

impl Git {
    /// One at a time writes to a campaign's repository.
    async fn alone(&self, campaign: CampaignId) -> OwnedMutexGuard<()> {
        let turn =
            self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(campaign).or_default().clone();
        turn.lock_owned().await
    }

    fn is_too_large(&self, tree: &Path) -> bool {
        let mut known = self.too_large.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, until| *until > Instant::now());
        known.contains_key(tree)
    }

    fn took_too_long(&self, tree: &Path) {
        let until = Instant::now() + ostler_domain::limits::SNAPSHOT_AGAIN;
        self.too_large.lock().unwrap_or_else(PoisonError::into_inner).insert(tree.to_owned(), until);
    }
}

/// A campaign's repository of snapshots, made if it is not there.
fn repository(state_dir: &Path, campaign: CampaignId) -> io::Result<PathBuf> {
    let path = state_dir.join("snapshots").join(campaign.to_string());
    DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    std::fs::canonicalize(path)
}

/// Whether a directory is the top of a repository or a work tree of one.
fn is_repository(tree: &Path) -> bool {
    std::fs::symlink_metadata(tree.join(".git")).is_ok()
}

/// Whether a directory's files are written down.
fn is_written_down(tree: &Path, word: Option<Snapshots>) -> bool {
    match word.unwrap_or_default() {
        Snapshots::Git => tree.ancestors().any(is_repository),
        Snapshots::Always => true,
        Snapshots::Never => false,
    }
}

/// Why a directory that is no repository's top is not written down: what lies in it is too much. Links are not followed,
/// and repositories within it, of which only the commit counts, are not looked into.
fn too_much(tree: &Path, most: (usize, u64)) -> Option<String> {
    let (mut files, mut bytes) = (0, 0_u64);
    let mut open = vec![tree.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                if !is_repository(&entry.path()) {
                    open.push(entry.path());
                }
                continue;
            }
            files += 1;
            bytes = bytes.saturating_add(if found.is_file() { found.len() } else { 0 });
            if files > most.0 {
                return Some(format!(
                    "the directory has more than {} files, and is no git repository",
                    most.0
                ));
            }
            if bytes > most.1 {
                let mib = most.1 >> 20;
                return Some(format!("the directory has more than {mib} MiB, and is no git repository"));
            }
        }
    }
    None
}

/// The branch that is checked out in a directory, as far as its `HEAD` says so.
pub(crate) fn branch(tree: &Path) -> Option<String> {
    let read = || -> io::Result<String> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat2(File::open(tree)?, ".git/HEAD", flags, Mode::empty(), resolve)?;
        let mut text = String::new();
        File::from(file).take(HEAD_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    branch_of_head(&read().ok()?)
}

const HEAD_BYTES: u64 = 1_024;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_is_written_down_in_a_repository_below_one_or_where_somebody_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("packages/api");
        fs::create_dir_all(&below).unwrap();
        assert!(is_written_down(&below, Some(Snapshots::Always)));
        fs::create_dir(dir.path().join(".git")).unwrap();
        assert!(is_written_down(dir.path(), None) && is_written_down(&below, None));
        assert!(!is_written_down(&below, Some(Snapshots::Never)));
    }

    #[test]
    fn too_many_files_or_bytes_are_too_much_and_repositories_within_are_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("vendor");
        fs::create_dir_all(other.join(".git")).unwrap();
        for n in 0..3 {
            fs::write(dir.path().join(n.to_string()), "ten bytes!").unwrap();
            fs::write(other.join(n.to_string()), "ten bytes!").unwrap();
        }
        std::os::unix::fs::symlink("/", dir.path().join("root")).unwrap();
        assert_eq!(too_much(dir.path(), (4, 30)), None);
        assert!(too_much(dir.path(), (3, 30)).unwrap().contains("more than 3 files"));
        assert!(too_much(dir.path(), (4, 29)).unwrap().contains("MiB"));
    }
}
