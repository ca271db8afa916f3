//! How far a mission has come, and who does what in it.

use std::collections::BTreeMap;

use super::{AssignmentStatus, State};
use crate::SessionId;

/// How many assignments stand how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoleCount {
    pub total: u32,
    /// Those that may start, too.
    pub pending: u32,
    /// Those that are paused, too.
    pub running: u32,
    pub completed: u32,
    pub failed: u32,
    /// Skipped or cancelled.
    pub left_out: u32,
}

impl RoleCount {
    fn add(&mut self, status: AssignmentStatus) {
        self.total += 1;
        let count = match status {
            AssignmentStatus::Pending | AssignmentStatus::Ready => &mut self.pending,
            AssignmentStatus::Running | AssignmentStatus::Paused => &mut self.running,
            AssignmentStatus::Completed => &mut self.completed,
            AssignmentStatus::Failed => &mut self.failed,
            AssignmentStatus::Skipped | AssignmentStatus::Cancelled => &mut self.left_out,
        };
        *count += 1;
    }
}

/// How far a mission has come. What was removed is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    pub all: RoleCount,
    /// By role, in the order in which roles first appear.
    pub roles: Vec<(String, RoleCount)>,
}

impl Progress {
    /// Of a hundred, how many are over.
    pub fn percent(&self) -> u32 {
        let over = self.all.completed + self.all.failed + self.all.left_out;
        (over * 100).checked_div(self.all.total).unwrap_or(100)
    }
}

impl State {
    pub fn progress(&self) -> Progress {
        self.progress_beside(|_| false)
    }

    /// The same where it is known whose sessions wait for a place.
    pub fn progress_beside(&self, is_waiting: impl Fn(SessionId) -> bool) -> Progress {
        let mut progress = Progress::default();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, slot) in self.slots.iter().enumerate().filter(|(_, slot)| !slot.removed) {
            let (role, status) = (slot.assignment.role.as_str(), self.status_beside(place, &is_waiting));
            progress.all.add(status);
            let at = *places.entry(role).or_insert_with(|| {
                progress.roles.push((role.to_owned(), RoleCount::default()));
                progress.roles.len() - 1
            });
            progress.roles[at].1.add(status);
        }
        progress
    }
}
