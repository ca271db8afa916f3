//! What the agent asks for outside of its session: done beside the actor, which goes on meanwhile.

use std::collections::BTreeSet;

use ostler_domain::{
    Reason,
    ask::Ask,
    call::{CallFault, Reply},
    session::Input,
};

use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Command, actor::Actor};
use crate::Engine;

/// What an agent asks for outside of its session. Of changes each waits for the one before it.
pub(super) struct InOrder {
    last: CancellationToken,
    under_way: BTreeSet<u64>,
}

impl Default for InOrder {
    fn default() -> Self {
        let last = CancellationToken::new();
        last.cancel();
        Self { last, under_way: BTreeSet::new() }
    }
}

impl InOrder {
    /// What to wait for, and what to drop when done. Nobody waits for those who only look.
    fn next(&mut self, is_change: bool) -> (CancellationToken, DropGuard) {
        let done = CancellationToken::new();
        let before = self.last.clone();
        if is_change {
            self.last = done.clone();
        }
        (before, done.drop_guard())
    }
}

impl Actor {
    /// Has it done, and hears what came of it. Asked again after a daemon died meanwhile, it is done once all the same.
    /// What it wants changed is changed in its order: who is told something may be the helper that it asked for before.
    pub(super) fn serve(&mut self, at: u64, ask: Ask) {
        if !self.changes.under_way.insert(at) {
            return;
        }
        let (engine, handle) = (Engine { shared: self.shared.clone() }, self.handle());
        let created = self.state.created().clone();
        let shutdown = self.shared.shutdown.clone();
        let (before, done) = self.changes.next(ask.is_change());
        self.shared.tasks.spawn(async move {
            let _done = done;
            let served = async {
                before.cancelled().await;
                engine.serve(&created, at, ask.clone()).await
            };
            let reply = tokio::select! {
                reply = served => reply,
                // The next daemon finds it in the record.
                () = shutdown.cancelled() => return,
            };
            // Nobody waits for what a session has only looked for, and then ended.
            let _ = handle.commands.send(Command::Served { at, ask, reply }).await;
        });
    }

    /// Has done what is left of what it asked for, and says whether all of that is settled.
    pub(super) fn has_been_served(&mut self) -> bool {
        for asked in self.state.asks().to_vec() {
            self.serve(asked.at, asked.ask);
        }
        self.state.asks().is_empty()
    }

    pub(super) async fn served(&mut self, at: u64, ask: &Ask, reply: Reply) {
        self.changes.under_way.remove(&at);
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
