//! Whom something that lives still needs: the sessions that it goes on with, and those that it was started by.

use std::collections::HashSet;

use ostler_domain::{
    ConversationId, Refusal, SessionId,
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter},
    session::View,
};
use ostler_store::{Candidate, Store};

#[derive(Debug, Default)]
pub(super) struct Needed {
    chains: HashSet<SessionId>,
    conversations: HashSet<ConversationId>,
}

impl Needed {
    pub(super) async fn now(store: &Store) -> Result<Needed, Refusal> {
        let mut needed = Needed::default();
        let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
        let mut cursor = None;
        loop {
            let page = store.list_sessions(&filter, Page::of(PAGE_MOST, cursor)).await?;
            for view in page.rows {
                needed.add(store, view).await?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(needed);
            }
        }
    }

    /// A session that lives, and whoever it was started by, and so on.
    async fn add(&mut self, store: &Store, live: View) -> Result<(), Refusal> {
        let mut next = Some(live);
        while let Some(view) = next {
            self.conversations.insert(view.conversation);
            // Known chains have been gone up already.
            let parent = self.chains.insert(view.chain).then_some(view.spawned_by).flatten();
            next = match parent {
                Some(parent) => store.session(parent).await?,
                None => None,
            };
        }
        Ok(())
    }

    pub(super) fn has(&self, candidate: &Candidate) -> bool {
        self.chains.contains(&candidate.chain) || self.conversations.contains(&candidate.conversation)
    }
}
