//! The commands that a mission runs for itself: its checks, and the merge with its gate. Whether one runs is known here
//! alone: none outlives the daemon.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use ostler_domain::{
    MissionId,
    event::By,
    limits::{CHECK_WITHIN, MISSION_TEXT_BYTES},
    mission::{Errand, Input},
};
use tokio::{sync::watch, time::timeout};

use super::{actor::Actor, shared_dir};
use crate::{
    Change, Engine, WantedCommand,
    attended::{Attended, Course, Wish, Wishes, Work, until_nothing_is_left},
    git::inside::{Ended, NotDone},
};

/// How long whoever pauses a mission waits to see an errand stand still.
const STILL_WITHIN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Errands {
    there: HashMap<Errand, Handle>,
}

/// An errand that runs, or waits to.
struct Handle {
    wish: watch::Sender<Wish>,
    at_work: watch::Receiver<bool>,
}

impl Errands {
    /// What was told of an errand that has ended.
    pub(super) fn heard(&mut self, input: &Input) {
        let errand = match input {
            Input::Checked { assignment, attempt, .. } => {
                Errand::Check { assignment: *assignment, attempt: *attempt }
            }
            Input::MergeTried { attempt, .. } => Errand::Merge { attempt: *attempt },
            _ => return,
        };
        self.there.remove(&errand);
    }
}

/// What an errand needs to be run.
pub(super) struct Orders {
    pub(super) engine: Engine,
    by: By,
    lock: PathBuf,
    wishes: Wishes,
    at_work: watch::Sender<bool>,
}

impl Actor {
    /// Has an errand run, unless it does; one that is frozen goes on.
    pub(super) fn run_errand<F>(&mut self, errand: Errand, by: By, work: impl FnOnce(Orders) -> F)
    where
        F: Future<Output = Input> + Send + 'static,
    {
        if let Some(handle) = self.errands.there.get(&errand) {
            // One that is to end does not begin again.
            handle.wish.send_if_modified(|wish| {
                let is_frozen = *wish == Wish::Freeze;
                *wish = if is_frozen { Wish::Run } else { *wish };
                is_frozen
            });
            return;
        }
        let (wish, own) = watch::channel(Wish::Run);
        let (at_work, is_at_work) = watch::channel(false);
        self.errands.there.insert(errand, Handle { wish, at_work: is_at_work });
        let engine = self.engine.clone();
        let wishes = Wishes::new(own, engine.shared.halt.subscribe());
        let lock = engine.lock_of(self.state.id(), errand);
        let work = work(Orders { engine, by, lock, wishes, at_work });
        self.beside(async move { Some(work.await) });
    }

    /// Freezes an errand, and waits to see it stand still: who was told that the mission is paused can rely on it.
    pub(super) async fn freeze_errand(&mut self, errand: Errand) {
        let Some(handle) = self.errands.there.get_mut(&errand) else { return };
        handle.wish.send_replace(Wish::Freeze);
        let still = handle.at_work.wait_for(|at_work| !at_work);
        if timeout(STILL_WITHIN, still).await.is_err() {
            tracing::warn!(mission = %self.state.id(), ?errand, "it is not frozen yet");
        }
    }

    /// Ends an errand; what it comes to is told when nothing of it is left.
    pub(super) fn end_errand(&mut self, errand: Errand) {
        if let Some(handle) = self.errands.there.get(&errand) {
            handle.wish.send_replace(Wish::End);
            return;
        }
        let lock = self.engine.lock_of(self.state.id(), errand);
        self.beside(async move {
            if let Err(error) = until_nothing_is_left(&lock).await {
                tracing::warn!(?errand, %error, "whether anything of it is left cannot be seen");
            }
            let why = ENDED.to_owned();
            Some(match errand {
                Errand::Check { assignment, attempt } => {
                    Input::Checked { assignment, attempt, passed: false, output: why }
                }
                Errand::Merge { attempt } => Input::MergeTried { attempt, tried: Err(why) },
            })
        });
    }
}

/// What is said of an errand that was ended.
const ENDED: &str = "it was ended";

impl Orders {
    /// Runs the errand's command when it may begin, as often as a halt ends it.
    pub(super) async fn run(self, wanted: WantedCommand) -> Result<Ended, String> {
        let Orders { engine, by, lock, mut wishes, at_work } = self;
        let mut work = Work::new(&engine.shared.at_work, &at_work);
        loop {
            // Before the wish is looked at: whoever wishes otherwise from now on sees that there is something to wait for.
            work.is(true);
            match wishes.now() {
                Wish::Run => {}
                Wish::End => {
                    until_nothing_is_left(&lock).await.map_err(|error| error.to_string())?;
                    return Err(ENDED.to_owned());
                }
                Wish::Freeze | Wish::Halt => {
                    work.is(false);
                    wishes.change().await;
                    continue;
                }
            }
            let document = engine.prepare_command(wanted.clone(), Change::by(by.clone())).await;
            let document = document.map_err(|refusal| refusal.told())?;
            let command = Attended {
                document: &document,
                lock: &lock,
                to_its_end: false,
                limit: CHECK_WITHIN,
                most: MISSION_TEXT_BYTES,
            };
            match engine.shared.attend(command, &mut wishes, &mut work).await {
                Ok(Course::ByItself(ended)) => return Ok(ended),
                Ok(Course::Cut(Wish::End)) => return Err(ENDED.to_owned()),
                Ok(Course::Cut(_)) => {}
                Err(NotDone::TooLong(limit)) => {
                    return Err(format!("it took longer than {} s", limit.as_secs()));
                }
                Err(NotDone::Failed(why)) => return Err(why),
            }
        }
    }
}

impl Engine {
    /// The lock that an errand of a mission holds while anything of it lives.
    pub(super) fn lock_of(&self, mission: MissionId, errand: Errand) -> PathBuf {
        let name = match errand {
            Errand::Check { assignment, .. } => format!("check.{assignment}.lock"),
            Errand::Merge { .. } => "merge.lock".to_owned(),
        };
        shared_dir::of(&self.shared.options.state_dir, mission).join(name)
    }
}
