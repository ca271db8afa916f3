//! [`Slots`]: the assignments of a mission, found by how they stand.
//!
//! A decision looks at few of ten thousand assignments, and works on a copy. So a copy shares what it does not change,
//! and whoever may settle, start or end is listed. An assignment changes in one place only, which keeps the lists true.

use std::{cmp::Reverse, ops::Index};

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync, VectorSync};

use super::{Slot, state::Step};
use crate::{SessionId, admission::Priority};

/// Who starts first: the most pressing, then what was begun, then what most depends on, then in the plan's order.
type Rank = (Reverse<Priority>, bool, Reverse<u64>, usize);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slots {
    all: VectorSync<Slot>,
    lists: Lists,
    /// Whose attempt each session is, or was.
    of_sessions: RedBlackTreeMapSync<SessionId, usize>,
}

/// Places, by how the assignments there stand.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lists {
    /// Pending, and its needs are over, or one of them came to nothing, or it waits for a person.
    due: RedBlackTreeSetSync<usize>,
    ready: RedBlackTreeSetSync<Rank>,
    /// Ready, though not before a moment.
    later: RedBlackTreeSetSync<usize>,
    active: RedBlackTreeSetSync<usize>,
    over: usize,
    wanted: usize,
    /// Of those that are wanted.
    met: usize,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Slot> + ExactSizeIterator {
        self.all.iter()
    }

    /// The first place from there on whose assignment may become ready, be skipped or be held.
    pub(super) fn due_from(&self, place: usize) -> Option<usize> {
        self.lists.due.range(place..).next().copied()
    }

    /// The places of those that may start, who starts first in front.
    pub(super) fn ready(&self) -> impl Iterator<Item = usize> {
        self.lists.ready.iter().map(|(.., place)| *place)
    }

    /// Those that may start when a moment has come.
    pub(super) fn later(&self) -> impl Iterator<Item = &Slot> {
        self.lists.later.iter().map(|place| &self[*place])
    }

    /// The places of those at work.
    pub(super) fn active(&self) -> impl Iterator<Item = usize> {
        self.lists.active.iter().copied()
    }

    pub(super) fn are_over(&self) -> bool {
        self.lists.over == self.len()
    }

    /// All that are wanted are completed, and there are some.
    pub(super) fn are_met(&self) -> bool {
        self.lists.wanted > 0 && self.lists.met == self.lists.wanted
    }

    pub(super) fn push(&mut self, slot: Slot) {
        self.lists.add(self.all.len(), &slot);
        self.all.push_back_mut(slot);
    }

    pub(super) fn change(&mut self, place: usize, change: impl FnOnce(&mut Slot)) {
        let Some(slot) = self.all.get_mut(place) else { return };
        self.lists.remove(place, slot);
        let (count, last) = (slot.sessions.len(), slot.sessions.last().copied());
        change(slot);
        self.lists.add(place, slot);
        // Sessions come and go at the end of the list.
        for session in slot.sessions.iter().skip(count) {
            self.of_sessions.insert_mut(*session, place);
        }
        if let Some(gone) = last.filter(|_| slot.sessions.len() < count) {
            self.of_sessions.remove_mut(&gone);
        }
    }

    pub(super) fn of_session(&self, session: SessionId) -> Option<usize> {
        self.of_sessions.get(&session).copied()
    }
}

impl Index<usize> for Slots {
    type Output = Slot;

    fn index(&self, place: usize) -> &Slot {
        &self.all[place]
    }
}

impl Lists {
    fn add(&mut self, place: usize, slot: &Slot) {
        match &slot.step {
            Step::Pending if slot.unmet == 0 || slot.broken > 0 || slot.held.is_some() => {
                self.due.insert_mut(place);
            }
            Step::Pending => {}
            Step::Ready { after, .. } => {
                self.ready.insert_mut(rank(place, slot));
                if after.is_some() {
                    self.later.insert_mut(place);
                }
            }
            Step::Running { .. } | Step::Checking { .. } => self.active.insert_mut(place),
            Step::Over(_) => self.over += 1,
        }
        self.wanted += usize::from(!slot.removed);
        self.met += usize::from(!slot.removed && slot.is_met());
    }

    fn remove(&mut self, place: usize, slot: &Slot) {
        match &slot.step {
            Step::Pending => drop(self.due.remove_mut(&place)),
            Step::Ready { .. } => {
                self.ready.remove_mut(&rank(place, slot));
                self.later.remove_mut(&place);
            }
            Step::Running { .. } | Step::Checking { .. } => drop(self.active.remove_mut(&place)),
            Step::Over(_) => self.over -= 1,
        }
        self.wanted -= usize::from(!slot.removed);
        self.met -= usize::from(!slot.removed && slot.is_met());
    }
}

fn rank(place: usize, slot: &Slot) -> Rank {
    (Reverse(slot.priority), slot.attempt == 0, Reverse(slot.height), place)
}
