//! What the agent asks for outside of its session: done beside the actor, which goes on meanwhile.

use ostler_domain::{ask::Ask, call::Reply, session::Input};

use super::{Command, actor::Actor};
use crate::Engine;

impl Actor {
    /// Has it done, and hears what came of it. Asked again after a daemon died meanwhile, it is done once all the same.
    pub(super) fn serve(&self, at: u64, ask: Ask) {
        let (engine, handle) = (Engine { shared: self.shared.clone() }, self.handle());
        let created = self.state.created().clone();
        let shutdown = self.shared.shutdown.clone();
        self.shared.tasks.spawn(async move {
            let is_change = ask.is_change();
            let reply = tokio::select! {
                reply = engine.serve(&created, at, ask) => reply,
                // The next daemon finds it in the record.
                () = shutdown.cancelled() => return,
            };
            // Of a session that has ended nobody waits for it.
            let _ = handle.commands.send(Command::Served { at, is_change, reply }).await;
        });
    }

    pub(super) async fn served(&mut self, at: u64, is_change: bool, reply: Reply) {
        if !is_change {
            return self.answer(at, reply).await;
        }
        let context = self.shared.context();
        self.decided(Input::Served { at, reply }, &context).await;
    }
}
