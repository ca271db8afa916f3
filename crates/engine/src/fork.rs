//! A conversation that begins as a copy of another one. The copy has a home of its own, so that nobody ever writes to what
//! the other one remembers.

use ostler_domain::{
    ConversationId, Event, Name, Refusal, SessionId,
    conversation::Key,
    event::ConversationOpened,
    session::{Config, State, View},
};
use ostler_store::CommitError;

use crate::{
    Change, Engine, campaign::check_same, clock::entropy, confine, create::created, place::Place,
    shared::Shared, upstream,
};

impl Engine {
    /// Begins a new conversation with what another one knows. Its first session waits for messages.
    pub async fn fork(&self, who: &str, name: Option<Name>, change: Change) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        let fingerprint = format!("fork {} {name:?}", view.id);
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        let loaded = self.shared.store.load_session(view.id).await?;
        let old = loaded.map(|loaded| loaded.state);
        let old = old.ok_or_else(|| Refusal::internal(format!("session {} cannot be read", view.id)))?;
        let before = old.created();
        let campaign = self.campaign_to_go_on_in(before).await?;
        check_same(&campaign)?;
        let provider = self.shared.provider(&view.provider)?;
        let account = before.config.auth_profile.as_ref();
        let settings = self.shared.options.providers.of_account(&view.provider, account)?;
        let home = self.shared.options.home_dir.as_deref();
        self.shared.programs.find(provider.as_ref(), &settings, home).await?;
        let said = upstream::check_key(provider.as_ref(), &settings, &change.keys).await?;
        let has_model = self.shared.has_model(provider.as_ref(), &settings, &change.keys);
        let told = &before.config.environment;
        self.shared.check_login(provider.as_ref(), &settings, has_model, told, &campaign.policy)?;
        self.shared.check_campaign_budget(&campaign, before.config.billing).await?;
        self.shared.check_confinable().await?;
        let now = self.shared.clock.now().wall;
        let (id, conversation) = (SessionId::new(now, entropy()), ConversationId::new(now, entropy()));
        self.shared.copy_home(&old, conversation).await?;
        let begin = self.shared.begin_fork(&old, conversation).await?;
        let _naming = self.shared.naming.lock().await;
        let name = self.free_name(campaign.id, name.as_ref(), |n| before.name.numbered(n + 1)).await?;
        let opened = Event::ConversationOpened(Box::new(ConversationOpened {
            agent: before.agent.as_ref().map(|agent| agent.id),
            forked_from: Some(before.conversation),
            notes: self.stored_conversation(before.conversation).await?.notes.kept_by_reset(),
            ..ConversationOpened::new(conversation, campaign.id, Key::adhoc(id), name.clone())
        }));
        let place = Place { agent: before.agent.clone(), ..Place::first(id, conversation, name, begin) };
        let model = old.next_model().map(str::to_owned);
        let config = Config {
            model,
            ends_with_turn: false,
            budget: old.budget().copied(),
            approval_us: self.shared.options.approval_us(),
            working_dir: campaign.root.path.clone(),
            deadline: None,
            ..before.config.clone()
        };
        let created = created(&campaign, config, self.shared.sandbox(), place);
        let done = change.done(&fingerprint, id.to_string());
        match self.record_session(created, Vec::new(), vec![opened], Vec::new(), &change, done).await {
            Err(CommitError::RequestDone { reply, .. }) => self.session(&reply).await,
            Err(error) => Err(error.into()),
            Ok(view) => {
                self.shared.bring_keys(id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
                self.shared.keys.keep_said(id, said);
                self.shared.wake(id).await?;
                Ok(view)
            }
        }
    }
}

impl Shared {
    /// Copies the home of a conversation, as it is on disk at this moment.
    async fn copy_home(&self, old: &State, copy: ConversationId) -> Result<(), Refusal> {
        let homes = self.options.state_dir.join("homes");
        let (from, to) = (homes.join(old.created().conversation.to_string()), homes.join(copy.to_string()));
        let copied = tokio::task::spawn_blocking(move || {
            confine::copy_home(&from, &to).inspect_err(|_| {
                // Half a home is nobody's.
                let _ = std::fs::remove_dir_all(&to);
            })
        });
        let copied = copied.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        copied.map_err(|error| {
            Refusal::internal(format!("the home of {} cannot be copied", old.created().name))
                .because(error.to_string())
        })
    }
}
