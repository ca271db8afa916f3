//! Conversations: finding them, opening them once, and what is noted about them.

mod anew;
mod close;

use std::collections::HashSet;

use ostler_domain::{
    ConversationId, Event, FreeNumber, Name, Reason, Refusal, SessionId,
    agent::Agent,
    campaign::Campaign,
    conversation::{Conversation, Entry, Form, Key, Notes},
    event::{ConversationChanged, ConversationOpened},
    id::Fragment,
    query::{ConversationFilter, Listed, Page},
    session::View,
    text::one_line,
};
use ostler_store::RequestReply;

use crate::{Change, Engine, clock::entropy, who::Way};

/// How many candidates an answer names.
const CANDIDATES: usize = 5;

/// What is to be opened, unless it is open.
#[derive(Debug, Clone)]
pub struct NewConversation {
    pub agent: Agent,
    pub key: Key,
    /// The session whose agent asks for it.
    pub spawned_by: Option<SessionId>,
    pub settings: Vec<String>,
}

impl NewConversation {
    pub fn of(agent: Agent, key: Key) -> NewConversation {
        NewConversation { agent, key, spawned_by: None, settings: Vec::new() }
    }
}

/// A conversation that is open now.
#[derive(Debug, Clone)]
pub struct Opened {
    pub conversation: Conversation,
    /// It was not there before.
    pub is_new: bool,
}

impl Engine {
    /// The conversation of an agent with this key; opened, if it is not. However many ask at once, there is one.
    pub async fn open_conversation(
        &self,
        wanted: NewConversation,
        change: Change,
    ) -> Result<Opened, Refusal> {
        let NewConversation { agent, key, .. } = &wanted;
        let key = check_key(agent, key)?;
        let fingerprint = format!("open_conversation {} {key}", agent.id);
        let _naming = self.shared.naming.lock().await;
        let store = &self.shared.store;
        if let Some(there) = store.conversation_keyed(agent.campaign, Some(agent.id), &key).await? {
            return Ok(Opened { conversation: there, is_new: false });
        }
        let id = ConversationId::new(self.shared.clock.now().wall, entropy());
        let opened = self.opening(id, &wanted.agent, key, wanted.spawned_by, &wanted.settings).await?;
        let request = change.done(&fingerprint, id.to_string());
        self.record_nodes(vec![Event::ConversationOpened(Box::new(opened))], request).await?;
        let conversation = self.stored_conversation(id).await?;
        Ok(Opened { conversation, is_new: true })
    }

    /// The event that opens a conversation of an agent. Names are being chosen by nobody else meanwhile.
    pub(crate) async fn opening(
        &self,
        id: ConversationId,
        agent: &Agent,
        key: Key,
        spawned_by: Option<SessionId>,
        settings: &[String],
    ) -> Result<ConversationOpened, Refusal> {
        let notes = Notes::default().changed_by(settings);
        let notes = notes.map_err(|fault| Refusal::invalid(fault.to_string()))?;
        self.check_overrides(&Entry::default(), &notes.entry)?;
        let name = match key.form() {
            Form::Main => agent.name.clone(),
            _ => self.free_name_of_key(agent, &key).await?,
        };
        Ok(ConversationOpened {
            agent: Some(agent.id),
            spawned_by,
            notes,
            ..ConversationOpened::new(id, agent.campaign, key, name)
        })
    }

    /// `api` and `agent:api:slack:dm:u1` make `api-slack-dm-u1`.
    async fn free_name_of_key(&self, agent: &Agent, key: &Key) -> Result<Name, Refusal> {
        let rest = match key.agent() {
            Some(named) => key.as_str().get("agent:".len() + named.len()..).unwrap_or_default(),
            None => key.as_str(),
        };
        let base = Name::slug(rest).map(|slug| format!("{}-{slug}", agent.name));
        let base: Name = base.and_then(|base| base.parse().ok()).unwrap_or_else(|| agent.name.numbered(2));
        let made = |number: u32| if number == 1 { base.clone() } else { base.numbered(number) };
        let mut search = FreeNumber::default();
        while let Some(number) = search.question() {
            let taken = self.shared.store.conversations_named(made(number).as_str()).await?;
            let is_open = |other: &Conversation| other.campaign == agent.campaign && other.closed.is_none();
            search.answer(number, taken.iter().any(is_open));
        }
        Ok(made(search.found()))
    }

    pub(crate) async fn stored_conversation(&self, id: ConversationId) -> Result<Conversation, Refusal> {
        let found = self.shared.store.conversation(id).await?;
        found.ok_or_else(|| unknown(&id.to_string()))
    }

    /// The conversation of an id or a part of one, a name, an agent (its `main`), or a session of it.
    pub async fn conversation(&self, who: &str) -> Result<Conversation, Refusal> {
        if let Some(found) = self.find_conversation(who).await? {
            if who == found.name.as_str() {
                self.check_sole(who, found.campaign, Way::Conversation).await?;
            }
            return Ok(found);
        }
        match self.session(who).await {
            Ok(view) => self.stored_conversation(view.conversation).await,
            Err(refusal) if refusal.reason == Reason::SessionUnknown => Err(unknown(who)),
            Err(refusal) => Err(refusal),
        }
    }

    /// The conversation of a part of its id.
    pub(crate) async fn conversation_of_part(&self, who: &str) -> Result<Option<Conversation>, Refusal> {
        let is_another_s = !who.starts_with(ConversationId::PREFIX) && who.contains('_');
        let Some(fragment) = Fragment::parse(who, ConversationId::PREFIX).filter(|_| !is_another_s) else {
            return Ok(None);
        };
        match self.shared.store.find_conversations(&fragment).await?.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => Err(ambiguous(who, several)),
        }
    }

    /// The conversation of an id or a part of one, or of a name: an open one, else the last one that had it. A name that
    /// several have means none of them in particular.
    pub(crate) async fn find_conversation(&self, who: &str) -> Result<Option<Conversation>, Refusal> {
        let store = &self.shared.store;
        if let Ok(id) = who.parse::<ConversationId>() {
            return Ok(store.conversation(id).await?);
        }
        let addressed = self.without_role(who).await;
        let who = addressed.as_deref().unwrap_or(who);
        let (campaign, name) = match who.split_once('/') {
            Some((campaign, name)) => (Some(self.campaign(campaign).await?.id), name),
            None => (None, who),
        };
        let mut named = store.conversations_named(name).await?;
        named.retain(|found| campaign.is_none_or(|campaign| found.campaign == campaign));
        let campaigns = store.campaigns().await?;
        keep_those_meant(&mut named, &campaigns);
        match named.as_slice() {
            [] => self.conversation_of_part(who).await,
            [one] => Ok(Some(one.clone())),
            several => Err(in_several(who, several, &campaigns)),
        }
    }

    pub async fn conversations(
        &self,
        filter: &ConversationFilter,
        page: Page,
    ) -> Result<Listed<Conversation>, Refusal> {
        Ok(self.shared.store.conversations(filter, page).await?)
    }

    /// The newest session of a conversation.
    pub(crate) async fn last_session(&self, id: ConversationId) -> Result<Option<View>, Refusal> {
        let mut last = self.shared.store.sessions_of_conversation(id, 1).await?.pop();
        if let Some(view) = &mut last {
            self.overlay(view);
        }
        Ok(last)
    }

    /// Changes what is noted about a conversation: all settings, or none.
    pub async fn set_conversation(
        &self,
        who: &str,
        settings: &[String],
        change: Change,
    ) -> Result<Conversation, Refusal> {
        let fingerprint = format!("set_conversation {who} {}", settings.join("\n"));
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.conversation(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let mut conversation = self.conversation(who).await?;
        let before = conversation.notes.entry.clone();
        conversation.notes = conversation.notes.changed_by(settings).map_err(|fault| {
            Refusal::invalid(fault.to_string()).hint(
                format!("ostler conversation show {}", conversation.id.short()),
                "shows what is noted about it",
            )
        })?;
        self.check_overrides(&before, &conversation.notes.entry)?;
        let changed = ConversationChanged {
            id: conversation.id,
            settings: settings.to_vec(),
            notes: conversation.notes.clone(),
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, conversation.id.to_string());
        self.record_nodes(vec![Event::ConversationChanged(Box::new(changed))], request).await?;
        Ok(conversation)
    }

    /// What somebody sets must mean something here; what another program's store says of its own is kept as it is.
    fn check_overrides(&self, before: &Entry, after: &Entry) -> Result<(), Refusal> {
        let is_set = |was: &Option<String>, is: &Option<String>| is.is_some() && was != is;
        match &after.provider_override {
            Some(provider) if is_set(&before.provider_override, &after.provider_override) => {
                self.shared.provider(provider)?;
            }
            _ => {}
        }
        if !is_set(&before.auth_profile_override, &after.auth_profile_override) {
            return Ok(());
        }
        let account = after.auth_profile_override.as_deref().map(str::parse::<Name>).transpose();
        let account = account.map_err(|_| Refusal::invalid("that is no name of a profile"))?;
        self.check_account(after.provider_override.as_deref(), account.as_ref())
    }

    /// Makes events of no session durable, with the answer to whoever asked for them.
    pub(crate) async fn record_nodes(
        &self,
        events: Vec<Event>,
        request: Option<RequestReply>,
    ) -> Result<(), Refusal> {
        let now = self.shared.clock.now().wall;
        let commit = ostler_store::Commit {
            urgency: ostler_store::Urgency::Control,
            node_events: events.into_iter().map(|event| (now, event)).collect(),
            session: None,
            request,
        };
        self.shared.store.commit(commit).await.map(drop).map_err(Refusal::from)
    }
}

/// The key as it is kept; refused where it names another agent, or is one that nobody chooses.
pub(crate) fn check_key(agent: &Agent, key: &Key) -> Result<Key, Refusal> {
    if key.form() == Form::Adhoc {
        return Err(Refusal::invalid(
            "keys that begin with adhoc: are given to conversations that nobody named",
        ));
    }
    if key.folded().starts_with("import:") {
        return Err(Refusal::invalid(
            "keys that begin with import: are given to conversations that were brought in from elsewhere",
        ));
    }
    match key.agent() {
        Some(named) if !named.eq_ignore_ascii_case(agent.name.as_str()) => Err(Refusal::invalid(format!(
            "the key {} is one of agent {}, not of {}",
            one_line(key.as_str(), 80),
            one_line(named, 64),
            agent.name
        ))
        .hint(format!("ostler agent add {named}"), "registers that agent, if there is none")),
        _ => Ok(key.clone().of_agent(&agent.name)),
    }
}

fn unknown(who: &str) -> Refusal {
    Refusal::new(Reason::ConversationUnknown, format!("there is no conversation \"{}\"", one_line(who, 64)))
        .hint("ostler conversation ls -a", "lists all there are")
}

/// Of the conversations of a name, newest first, those that it may mean: open ones, if there are such, and of those that had
/// one key after each other the last.
pub(crate) fn keep_those_meant(named: &mut Vec<Conversation>, campaigns: &[Campaign]) {
    keep_if_any(named, |found| found.closed.is_none());
    keep_if_any(named, |found| campaigns.iter().any(|one| one.id == found.campaign));
    let mut seen = HashSet::new();
    named.retain(|found| seen.insert((found.campaign, found.agent, found.key.folded())));
}

fn keep_if_any(named: &mut Vec<Conversation>, is_meant: impl Fn(&Conversation) -> bool) {
    if named.iter().any(&is_meant) {
        named.retain(is_meant);
    }
}

/// A name that several have, and how each of them is called without doubt.
fn in_several(who: &str, several: &[Conversation], campaigns: &[Campaign]) -> Refusal {
    several.iter().take(CANDIDATES).fold(ambiguous(who, several), |refusal, found| {
        let campaign = campaigns.iter().find(|campaign| campaign.id == found.campaign);
        let is_alone = several.iter().filter(|other| other.campaign == found.campaign).count() == 1;
        let state = found.closed.map_or("open", |_| "closed");
        match campaign {
            Some(campaign) if is_alone => refusal.hint(
                format!("ostler conversation show {}/{}", campaign.name, found.name),
                format!("{state}, in {}", campaign.name),
            ),
            _ => refusal.hint(
                format!("ostler conversation show {}", found.id.short()),
                format!("{state}, last spoken to {}", found.active.rfc3339()),
            ),
        }
    })
}

fn ambiguous(who: &str, several: &[Conversation]) -> Refusal {
    let shown: Vec<_> =
        several.iter().take(CANDIDATES).map(|found| format!("{} {}", found.id.short(), found.name)).collect();
    Refusal::new(Reason::Ambiguous, format!("\"{}\" fits {} conversations", one_line(who, 64), several.len()))
        .because(shown.join(" · "))
}
