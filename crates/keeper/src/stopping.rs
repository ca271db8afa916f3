//! Ending the agent because someone asked for it: the ladder's rungs and what they do.

use std::time::{Duration, Instant};

use ostler_tape::frame::{Rung, RungAction};
use ostler_tape::{AskedStop, KeeperNote};
use rustix::process::Signal;

use crate::keeper::Keeper;
use crate::ladder::Ladder;
use crate::log::log;
use crate::memory::{HeldBy, MemoryWatch};

/// Between two looks for what a kill has left, which may have forked meanwhile.
pub(crate) const KILL_ROUND: Duration = Duration::from_millis(10);

impl Keeper {
    /// Starts down a ladder; a later one takes over at once.
    pub(crate) fn stop(&mut self, asked: AskedStop, rungs: Vec<Rung>, now: Instant) {
        if !self.has_agent() {
            return;
        }
        log!("stop asked by {} ({})", asked.by, asked.rule);
        let note = KeeperNote::StopAsked { by: asked.by.clone(), rule: asked.rule.clone() };
        self.recorder.note(&note);
        self.ladder = Some(Ladder::new(asked, rungs, now));
    }

    /// From now on nobody else does.
    pub(crate) fn watch_memory(&mut self) {
        let confinement = self.document.confinement.as_ref();
        let limit_bytes = confinement.and_then(|confinement| confinement.limits.memory_bytes);
        self.memory = limit_bytes.map(|bytes| MemoryWatch::new(bytes, HeldBy::Keeper, Instant::now()));
    }

    /// A session that has taken more memory than it may is not asked to give some back: it has none to do so with.
    pub(crate) fn check_memory(&mut self, now: Instant) {
        if !self.has_agent() {
            return;
        }
        let Some(watch) = &mut self.memory else { return };
        let Some(bytes) = watch.excess(&self.tree, now) else { return };
        let limit_bytes = watch.limit_bytes();
        self.took_too_much = Some(watch.seen(Some(bytes), 0));
        self.memory = None;
        self.recorder.note(&KeeperNote::MemoryLimit { bytes, limit_bytes });
        let asked = AskedStop { by: "keeper".to_owned(), rule: "memory limit".to_owned() };
        self.stop(asked, vec![Rung { action: RungAction::Kill, wait_ms: 0 }], now);
    }

    pub(crate) fn take_rung(&mut self, action: RungAction, now: Instant) {
        self.recorder.note(&KeeperNote::Rung { action: action.to_string() });
        match action {
            RungAction::CloseInput => {
                self.feed.close();
                self.write_input();
                self.thaw();
            }
            RungAction::Signal(number) => match Signal::from_named_raw(number) {
                Some(signal) => {
                    let frozen = self.tree.frozen().is_some();
                    if let Err(error) = self.tree.signal_agent(signal) {
                        log!("signal {number} failed: {error}");
                    }
                    if frozen {
                        self.recorder.note(&KeeperNote::Thawed {});
                    }
                }
                None => log!("there is no signal {number}"),
            },
            RungAction::Kill => self.kill_tree(now),
        }
    }

    /// Kills until nothing is left. An agent that is only just being started is in no tree yet, so as long as its
    /// end was not heard of, an empty tree is not the end either.
    pub(crate) fn kill_tree(&mut self, now: Instant) {
        let is_empty = self.tree.kill_round();
        self.kill_again_at = (!is_empty || self.has_agent()).then_some(now + KILL_ROUND);
    }

    pub(crate) fn thaw(&mut self) {
        if self.tree.frozen().is_none() {
            return;
        }
        if let Err(error) = self.tree.thaw() {
            log!("the agent could not be thawed: {error}");
        }
        self.recorder.note(&KeeperNote::Thawed {});
    }
}
