//! What the agent asks for outside of its session: done beside the actor, which goes on meanwhile.

use ostler_domain::{
    Reason,
    ask::Ask,
    call::{CallFault, Reply},
    session::Input,
};

use super::{Command, actor::Actor};
use crate::Engine;

impl Actor {
    /// Has it done, and hears what came of it. Asked again after a daemon died meanwhile, it is done once all the same.
    pub(super) fn serve(&self, at: u64, ask: Ask) {
        let (engine, handle) = (Engine { shared: self.shared.clone() }, self.handle());
        let created = self.state.created().clone();
        let shutdown = self.shared.shutdown.clone();
        self.shared.tasks.spawn(async move {
            let reply = tokio::select! {
                reply = engine.serve(&created, at, ask.clone()) => reply,
                // The next daemon finds it in the record.
                () = shutdown.cancelled() => return,
            };
            // Of a session that has ended nobody waits for it.
            let _ = handle.commands.send(Command::Served { at, ask, reply }).await;
        });
    }

    pub(super) async fn served(&mut self, at: u64, ask: &Ask, reply: Reply) {
        let is_denied =
            matches!(&reply, Reply::Refused(refusal) if refusal.reason == Reason::PermissionDenied);
        let input = match ask.is_change() {
            true => Input::Served { at, reply },
            // Looking at what is not its own is written down, like every other call that is none.
            false if is_denied => Input::Call { at, call: Err(CallFault::Unknown(ask.words())) },
            false => return self.answer(at, reply).await,
        };
        let context = self.shared.context();
        self.decided(input, &context).await;
    }
}
