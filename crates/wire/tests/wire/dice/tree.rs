//! Dice for what becomes of files.

use std::time::Duration;

use ostler_domain::{
    chain::{Chain, Sum},
    event::SeenCommit,
    price::Dollars,
    snapshot::{Blamed, Cause, Changed, Difference, FileChange, FileStatus, Rewinding, Snapshot, Tree},
    worktree::{Condition, Kept, RemovedWorktree, Standing, Worktree},
};

use super::Dice;

impl Dice {
    fn snapshot(&mut self) -> Snapshot {
        Snapshot {
            session: self.session_id(),
            campaign: self.campaign_id(),
            turn: self.small(),
            cause: self.of(Cause::ALL),
            time: self.time(),
            commit: self.maybe(Self::text),
            changed: Changed { files: self.number(), added: self.number(), removed: self.number() },
            why: self.maybe(Self::text),
        }
    }

    fn file_change(&mut self) -> FileChange {
        FileChange {
            path: self.text(),
            status: self.of(FileStatus::ALL),
            added: self.maybe(Self::number),
            removed: self.maybe(Self::number),
        }
    }

    pub(crate) fn tree(&mut self) -> Tree {
        Tree {
            snapshots: vec![self.snapshot(), self.snapshot()],
            branch: self.maybe(Self::text),
            head: self.maybe(Self::text),
            commits: vec![SeenCommit { hash: self.text(), subject: self.text() }],
            worktree: self.maybe(Self::kept),
        }
    }

    pub(crate) fn worktree(&mut self) -> Worktree {
        Worktree {
            path: self.text(),
            branch: self.text(),
            base: self.text(),
            from: self.maybe(Self::text),
            told: self.maybe(Self::text),
        }
    }

    pub(crate) fn kept(&mut self) -> Kept {
        Kept {
            worktree: self.worktree(),
            campaign: self.campaign_id(),
            campaign_name: self.text(),
            session: self.session_id(),
            session_name: self.text(),
            made: self.maybe(Self::time),
            removed: self.maybe(Self::time),
            standing: self.of(Standing::ALL),
            condition: Condition {
                head: self.maybe(Self::text),
                branch: self.maybe(Self::text),
                commits: self.number(),
                unmerged: self.number(),
                uncommitted: self.number(),
                // Told in `why`.
                left: None,
                busy: self.maybe(Self::text),
                ignored: vec![self.text()],
                bytes: self.number(),
            },
            why: self.maybe(Self::text),
        }
    }

    pub(crate) fn removed_worktree(&mut self) -> RemovedWorktree {
        RemovedWorktree { kept: self.kept(), branch_deleted: self.yes(), snapshot: self.maybe(Self::text) }
    }

    pub(crate) fn difference(&mut self) -> Difference {
        Difference {
            from: self.snapshot(),
            to: self.snapshot(),
            files: vec![self.file_change()],
            patch: self.text().into_bytes(),
            is_cut: self.yes(),
        }
    }

    pub(crate) fn rewinding(&mut self) -> Rewinding {
        Rewinding {
            to: self.snapshot(),
            before: self.text(),
            files: vec![self.file_change()],
            is_done: self.yes(),
        }
    }

    pub(crate) fn blamed(&mut self) -> Blamed {
        Blamed {
            path: self.text(),
            line: self.small(),
            text: self.text(),
            snapshot: self.snapshot(),
            prompt: self.maybe(Self::text),
            cost: self.maybe(|dice| Dollars(dice.number())),
        }
    }
}

impl Dice {
    pub(crate) fn chain(&mut self) -> Chain {
        Chain {
            sessions: vec![self.view()],
            helpers: vec![self.view(), self.view()],
            session_count: self.number(),
            helper_count: self.number(),
            sum: Sum { usage: self.usage(), cost: self.cost(), time: Duration::from_micros(self.micros()) },
        }
    }
}
