//! Whether what members have written will merge: whose trees are compared, and how git's answer is read.

use super::{AssignmentStatus, State, plan::Worktree};
use crate::AssignmentId;

/// What git said of one tree and others: with whom it merges, or in which files it does not.
pub fn read(said: &str) -> Vec<(AssignmentId, Vec<String>)> {
    let mut all: Vec<(AssignmentId, Vec<String>)> = Vec::new();
    for line in said.lines() {
        if let Some(id) = line.strip_prefix("with ").and_then(|id| id.parse().ok()) {
            all.push((id, Vec::new()));
        } else if let (Some(path), Some((_, paths))) = (line.strip_prefix("in "), all.last_mut()) {
            paths.push(path.to_owned());
        }
    }
    all
}

impl State {
    /// Whether the merge is made of what the assignment at this place does: it is named, or nobody is.
    pub(super) fn is_merge_source(&self, place: usize) -> bool {
        let assignment = &self.slots()[place].assignment;
        let member = &self.plan().agents[assignment.member as usize];
        let is_named = |name| [&assignment.name, &assignment.role, &member.name].contains(&name);
        self.plan()
            .merge
            .as_ref()
            .is_none_or(|merge| merge.from.is_empty() || merge.from.iter().any(is_named))
    }

    /// Whether the work of the assignment at this place is, or will be, on a branch to be merged.
    pub fn is_to_be_merged(&self, place: usize) -> bool {
        let slot = &self.slots()[place];
        let is_lost = slot.end().is_some_and(|end| end.status != AssignmentStatus::Completed);
        self.work(place).worktree != Worktree::None
            && !slot.sessions.is_empty()
            && !slot.removed
            && !is_lost
            && self.is_merge_source(place)
    }

    /// The others whose work will meet that of the assignment at this place.
    pub fn meets(&self, place: usize) -> Vec<usize> {
        let others = (0..self.slots().len()).filter(|other| *other != place);
        others.filter(|other| self.is_to_be_merged(*other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_line_by_line() {
        let (one, other) = ("asg_01ARZ3NDEKTSV4RRFFQ69G5FAV", "asg_01ARZ3NDEKTSV4RRFFQ69G5FAW");
        let said = format!("in nobody\nwith {one}\nwith nonsense\nwith {other}\nin Cargo.lock\nin a b\n");
        let read = read(&said);
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].0.to_string().as_str(), read[0].1.len()), (one, 0));
        assert_eq!(read[1].1, ["Cargo.lock", "a b"]);
    }
}
