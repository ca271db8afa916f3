//! The memory limit of a session whose cgroup cannot hold it to one: the keeper adds up, and ends what takes more.
//!
//! Only what processes have for themselves is counted. Shared pages would count once for each process, and programs
//! and files are the kernel's to take back.

use std::time::Instant;

use ostler_domain::limits::MEMORY_LOOK;

use crate::tree::Tree;

#[derive(Debug)]
pub(crate) struct MemoryWatch {
    limit_bytes: u64,
    look_at: Instant,
}

impl MemoryWatch {
    pub(crate) fn new(limit_bytes: u64, now: Instant) -> MemoryWatch {
        MemoryWatch { limit_bytes, look_at: now + MEMORY_LOOK }
    }

    pub(crate) fn wake_at(&self) -> Instant {
        self.look_at
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What the tree has, if it is time to look and that is too much.
    pub(crate) fn excess(&mut self, tree: &Tree, now: Instant) -> Option<u64> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now + MEMORY_LOOK;
        let bytes = tree.memory_bytes();
        (bytes > self.limit_bytes).then_some(bytes)
    }
}
