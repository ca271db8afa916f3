//! Sessions that have ended and are to go on in another one by themselves. What is promised is kept: where something is in the
//! way, that is recorded and shown, and it is tried again until there is a new session, or a person wants none.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_domain::{
    Event, Reason, Refusal, SessionId,
    event::{By, LostLeft, RestartRefused},
    session::{Restart, View, back_off},
};

use crate::{Engine, restart, shared::Shared};

/// Those for whom somebody waits already.
#[derive(Default)]
pub(crate) struct Promises(Mutex<HashSet<SessionId>>);

impl Promises {
    fn with<T>(&self, look: impl FnOnce(&mut HashSet<SessionId>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What came of a try.
enum Tried {
    /// There is a new session, or none is wanted any more.
    Settled,
    /// Something is in the way; it is recorded.
    Refused,
}

/// Has a session go on in a new one, after a while.
pub(crate) fn keep(shared: &Arc<Shared>, id: SessionId, after: Duration) {
    if !shared.promises.with(|kept| kept.insert(id)) {
        return;
    }
    let shared = shared.clone();
    shared.tasks.clone().spawn(async move {
        tokio::select! {
            () = until_settled(&shared, id, after) => {}
            // The next daemon finds it in the store.
            () = shared.shutdown.cancelled() => {}
        }
        shared.promises.with(|kept| kept.remove(&id));
    });
}

/// The promises of daemons before us.
pub(crate) async fn keep_all(shared: &Arc<Shared>) -> Result<(), Refusal> {
    let now = shared.clock.now();
    for view in shared.store.pending_restarts().await? {
        if let Some(Restart::At(deadline)) = &view.restart {
            keep(shared, view.id, deadline.remaining(&now));
        }
    }
    Ok(())
}

async fn until_settled(shared: &Arc<Shared>, id: SessionId, after: Duration) {
    let mut halt = shared.halt.subscribe();
    tokio::time::sleep(after).await;
    for tries in 1.. {
        halt.mark_unchanged();
        match try_once(shared, id).await {
            Ok(Tried::Settled) => return,
            Ok(Tried::Refused) => {}
            Err(refusal) => {
                tracing::warn!(session = %id, %refusal, "what keeps it from going on is not recorded")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(back_off(tries)) => {}
            // Nobody whom a halt kept waits longer than for its release.
            _ = halt.changed() => {}
        }
    }
}

async fn try_once(shared: &Arc<Shared>, id: SessionId) -> Result<Tried, Refusal> {
    if !shared.store.is_to_go_on(id).await? {
        return Ok(Tried::Settled);
    }
    let Err(refusal) = restart::go_on(shared, id).await else { return Ok(Tried::Settled) };
    if refusal.reason == Reason::ShuttingDown {
        return Ok(Tried::Settled);
    }
    let Some(view) = shared.store.session(id).await? else { return Ok(Tried::Settled) };
    if is_closed(shared, &view).await? {
        let left = LostLeft { sessions: vec![id], by: By::ostler() };
        Engine { shared: shared.clone() }.record_nodes(vec![Event::LostLeft(left)], None).await?;
        return Ok(Tried::Settled);
    }
    if is_news(&view, &refusal) {
        tracing::warn!(session = %id, %refusal, "the session cannot go on");
        let refused = refused(id, refusal);
        Engine { shared: shared.clone() }.record_nodes(vec![Event::RestartRefused(refused)], None).await?;
    }
    // Its mission looks after what becomes of its members, and gives up where they cannot go on.
    let is_halted = shared.halt.borrow().is_some();
    Ok(if view.mission.is_some() && !is_halted { Tried::Settled } else { Tried::Refused })
}

/// Nobody goes on in a conversation that was reset, archived or removed.
async fn is_closed(shared: &Arc<Shared>, view: &View) -> Result<bool, Refusal> {
    let conversation = shared.store.conversation(view.conversation).await?;
    Ok(conversation.is_none_or(|conversation| conversation.closed.is_some()))
}

/// Whether something else is in the way than what is shown. A reason is told apart by its words: they name what it is about.
fn is_news(view: &View, refusal: &Refusal) -> bool {
    view.restart_refused
        .as_ref()
        .is_none_or(|known| known.reason != refusal.reason.as_str() || known.why != refusal.told())
}

fn refused(session: SessionId, refusal: Refusal) -> RestartRefused {
    let (reason, why) = (refusal.reason.as_str().to_owned(), refusal.told());
    RestartRefused { session, reason, why, cures: refusal.hints }
}
