//! What becomes of campaigns' files: snapshots after each turn, what differs between them, and the way back.
//!
//! Everything that git does is done inside a sandbox ([`inside`]). Snapshots are commits of a repository of Ostler's own,
//! one for each campaign, which no agent can see; the tree is read-only while one is taken.

mod blame;
mod diff;
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

use ostler_domain::{CampaignId, limits::SNAPSHOTS_AT_ONCE, snapshot::branch_of_head};
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
