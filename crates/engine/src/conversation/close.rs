//! The end of a conversation: reset, archived or removed. All of it stays readable; what becomes of the files is for
//! the rules of retention to say.

use std::time::Duration;

use ostler_domain::{
    ConversationId, Event, Reason, Refusal,
    conversation::{CloseReason, Conversation, Key},
    event::{ConversationClosed, ConversationOpened, ConversationReopened},
    session::{Request, StopRule},
};

use crate::{Change, Engine, clock::entropy};

/// How long a session may take to end when its conversation is closed: longer than the whole ladder.
const GONE_WITHIN: Duration = Duration::from_secs(30);

impl Engine {
    /// Closes a conversation and opens a fresh one under its key, with its settings. `keep`: with its metadata, too.
    pub async fn reset_conversation(
        &self,
        who: &str,
        keep: bool,
        change: Change,
    ) -> Result<Conversation, Refusal> {
        let fingerprint = format!("reset_conversation {who} {keep}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.conversation(&done).await;
        }
        self.reset_as(who, keep, change, &fingerprint, |id| id.to_string()).await
    }

    /// The same, with the answer to whatever request led to it.
    pub(crate) async fn reset_as(
        &self,
        who: &str,
        keep: bool,
        change: Change,
        fingerprint: &str,
        reply: impl FnOnce(ConversationId) -> String,
    ) -> Result<Conversation, Refusal> {
        let old = self.open_one(who).await?;
        self.end_session_of(old.id, &change).await?;
        let _naming = self.shared.naming.lock().await;
        // Somebody else may have closed it meanwhile.
        let old = self.open_one(&old.id.to_string()).await?;
        let id = ConversationId::new(self.shared.clock.now().wall, entropy());
        let closed = ConversationClosed { id: old.id, why: CloseReason::Reset, by: change.by.clone() };
        let opened = ConversationOpened {
            agent: old.agent,
            spawned_by: old.spawned_by,
            replaces: Some(old.id),
            notes: old.notes.kept_by_reset(keep),
            ..ConversationOpened::new(id, old.campaign, old.key, old.name)
        };
        let events = vec![Event::ConversationClosed(closed), Event::ConversationOpened(Box::new(opened))];
        self.record_nodes(events, change.done(fingerprint, reply(id))).await?;
        self.stored_conversation(id).await
    }

    /// Closes a conversation for good; nothing is deleted by this.
    pub async fn close_conversation(
        &self,
        who: &str,
        why: CloseReason,
        change: Change,
    ) -> Result<Conversation, Refusal> {
        let fingerprint = format!("close_conversation {who} {}", why.as_str());
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.conversation(&done).await;
        }
        let old = self.conversation(who).await?;
        // What is archived may still be removed.
        let is_so = old.closed.is_some_and(|closed| closed.why == why || why == CloseReason::Archived);
        if is_so {
            return Ok(old);
        }
        self.end_session_of(old.id, &change).await?;
        let closed = ConversationClosed { id: old.id, why, by: change.by.clone() };
        let request = change.done(&fingerprint, old.id.to_string());
        self.record_nodes(vec![Event::ConversationClosed(closed)], request).await?;
        self.stored_conversation(old.id).await
    }

    /// Takes the closing of a conversation back, unless another one has its key by now.
    pub async fn reopen_conversation(&self, who: &str, change: Change) -> Result<Conversation, Refusal> {
        let old = self.conversation(who).await?;
        if old.closed.is_none() {
            return Ok(old);
        }
        let naming = self.shared.naming.lock().await;
        let store = &self.shared.store;
        if let Some(other) = store.conversation_keyed(old.campaign, old.agent, &old.key).await? {
            return Err(Refusal::new(
                Reason::NameTaken,
                format!("another conversation has the key {} by now", old.key),
            )
            .because(format!("{} ({})", other.name, other.id.short()))
            .hint(format!("ostler conversation archive {}", other.id.short()), "makes the key free again"));
        }
        let reopened = ConversationReopened { id: old.id, by: change.by.clone() };
        self.record_nodes(vec![Event::ConversationReopened(reopened)], None).await?;
        drop(naming);
        if let Err(refusal) = self.call_off(old.id, &change).await {
            tracing::warn!(conversation = %old.id, %refusal, "its deletion is called off when rules are next followed");
        }
        self.stored_conversation(old.id).await
    }

    /// A conversation that is still gone on with.
    pub(crate) async fn open_one(&self, who: &str) -> Result<Conversation, Refusal> {
        let found = self.conversation(who).await?;
        match found.closed {
            None => Ok(found),
            Some(closed) => Err(self.closed_refusal(&found, closed.why).await),
        }
    }

    /// Ends the session of a conversation, if one lives, and waits for its end.
    async fn end_session_of(&self, id: ConversationId, change: &Change) -> Result<(), Refusal> {
        let mut published = self.shared.store.published();
        let ended = async {
            let mut is_asked = false;
            loop {
                published.borrow_and_update();
                let Some(view) = self.last_session(id).await?.filter(|view| view.outcome.is_none()) else {
                    return Ok(());
                };
                if !is_asked && let Some(handle) = self.shared.wake(view.id).await? {
                    handle.request(Request::Stop(StopRule::Reset), change.by.clone(), None).await?;
                    is_asked = true;
                }
                if published.changed().await.is_err() {
                    return Err(Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"));
                }
            }
        };
        tokio::time::timeout(GONE_WITHIN, ended).await.unwrap_or_else(|_| {
            Err(Refusal::new(Reason::TimedOut, "the conversation's session is still stopping")
                .hint(format!("ostler kill {}", id.short()), "ends it at once; then ask again"))
        })
    }
}

impl Engine {
    /// Why a closed conversation is not gone on with, and what is done instead.
    pub(crate) async fn closed_refusal(&self, found: &Conversation, why: CloseReason) -> Refusal {
        let word = match why {
            CloseReason::Reset => "was reset",
            CloseReason::Archived => "is archived",
            CloseReason::Removed => "was removed",
        };
        let id = found.id.short();
        let refusal = Refusal::new(Reason::WrongState, format!("the conversation {id} {word}"));
        let store = &self.shared.store;
        let fresh = store.conversation_keyed(found.campaign, found.agent, &found.key).await;
        if let Ok(Some(fresh)) = fresh {
            let send = format!("ostler send {} \"…\"", fresh.id.short());
            return refusal.hint(send, "says it to the fresh one in its place");
        }
        let reopen = format!("ostler conversation reopen {id}");
        let refusal = refusal.hint(reopen, "takes that back, and it can be gone on with");
        // The first conversation of an agent has its name.
        let is_agent_s = found.agent.is_some() && found.key == Key::main();
        match store.campaign(found.campaign).await {
            Ok(Some(row)) if is_agent_s => {
                let run = format!("ostler run -C {} --agent {} \"…\"", row.campaign.name, found.name);
                refusal.hint(run, "begins a fresh one")
            }
            _ => refusal,
        }
    }
}
