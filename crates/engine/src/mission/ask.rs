//! Reaching a mission's actor.

use std::pin::Pin;

use ostler_domain::{
    MissionId, Reason, Refusal,
    limits::ACTOR_INBOX,
    mission::{Request, State},
};
use ostler_store::RequestReply;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Command, Known, actor::Actor};
use crate::{Change, Engine};

impl Engine {
    /// The actor of a mission; started where there is none. One that is over has one for as long as it is asked something.
    pub(super) async fn mission_actor(&self, id: MissionId) -> Result<mpsc::Sender<Command>, Refusal> {
        if let Some(actor) = self.shared.missions.get(id) {
            return Ok(actor);
        }
        // What is published later is seen by the actor's watch; what is before, by what is loaded.
        let watch = Actor::watch(self);
        let state = self.loaded_mission(id).await?;
        let (commands, inbox) = mpsc::channel(ACTOR_INBOX);
        let (shown, seen) = watch::channel(state.clone());
        match self.shared.missions.register(id, Known { commands: commands.clone(), state: seen }) {
            Err(there) => Ok(there),
            Ok(()) => {
                let actor = Actor::new(self.clone(), state, shown, watch, (commands.downgrade(), inbox));
                let (shutdown, engine) = (self.shared.shutdown.clone(), self.clone());
                // Between two tries nothing of a mission lives that would miss the daemon.
                let relies = self.shared.relied_on();
                self.shared.tasks.spawn(async move {
                    let _relies = relies;
                    tokio::select! {
                        () = actor.run() => {}
                        () = shutdown.cancelled() => {}
                    }
                    engine.shared.missions.forget(id);
                });
                Ok(commands)
            }
        }
    }

    /// A mission as its actor has it, whenever that changes.
    // Boxed: an actor asks for it too, in what it says to its members.
    pub(super) fn shown_mission(
        &self,
        id: MissionId,
    ) -> Pin<Box<dyn Future<Output = Result<watch::Receiver<State>, Refusal>> + Send + '_>> {
        Box::pin(async move {
            self.mission_actor(id).await?;
            let gone = || Refusal::new(Reason::ShuttingDown, "the daemon is shutting down");
            self.shared.missions.shown(id).ok_or_else(gone)
        })
    }

    pub(super) async fn ask_mission_of(
        &self,
        id: MissionId,
        request: Request,
        change: &Change,
        done: Option<RequestReply>,
    ) -> Result<State, Refusal> {
        let gone = || Refusal::new(Reason::ShuttingDown, "the daemon is shutting down");
        let actor = self.mission_actor(id).await?;
        let (reply, answer) = oneshot::channel();
        let (by, keys) = (change.by.clone(), change.keys.clone());
        let asked = Command::Request { request, by, keys, done, reply };
        actor.send(asked).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
