//! WHO: from what a person typed to the session that is meant.

use std::collections::HashSet;

use ostler_domain::{
    ApprovalId, CampaignId, ConversationId, Reason, Refusal, SessionId,
    agent::Agent,
    campaign::Campaign,
    conversation::Form,
    id::Fragment,
    query::{Page, Scope, SessionFilter},
    session::{Status, View},
    text::one_line,
};
use ostler_store::ApprovalRow;

use crate::{Engine, conversation::keep_those_meant};

/// How many candidates an answer names.
const CANDIDATES: usize = 5;
/// How many sessions of one name are looked at, the newest ones: slugs of prompts repeat without end.
const LOOKED_AT: u32 = 50;

/// What somebody wants of whom they name: what they are told to type instead of a name that several have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Show,
    Conversation,
    Send,
}

impl Engine {
    /// The session of an id, a part of one, a name, an agent, a conversation or a provider's id. A name, an agent or a
    /// conversation means its session that has not ended, else its last one.
    pub async fn session(&self, who: &str) -> Result<View, Refusal> {
        self.session_near(who, None).await
    }

    /// The same. Of several campaigns that have a name, the one that this path lies in is meant.
    pub async fn session_near(&self, who: &str, path: Option<&str>) -> Result<View, Refusal> {
        let mut view = self.meant_session(who, path).await?;
        self.overlay(&mut view);
        Ok(view)
    }

    /// The session for which is what is said to somebody. To an agent nobody speaks in one of its chats elsewhere without
    /// naming its key: whoever is on the other side would hear the answer.
    pub(crate) async fn spoken_to(&self, who: &str) -> Result<View, Refusal> {
        let mut view = match self.stored_session(who, None).await {
            Ok(view) if view.outcome.is_none() => view,
            Err(refusal) if refusal.reason != Reason::SessionUnknown => return Err(refusal),
            ended => {
                let mut live = match self.agent_called(who, None).await? {
                    Some(agent) => self.live_of(&agent).await?,
                    None => Vec::new(),
                };
                let mut kept = Vec::new();
                for view in live.drain(..) {
                    let conversation = self.stored_conversation(view.conversation).await?;
                    if !matches!(conversation.key.form(), Form::Chat { .. }) {
                        kept.push(view);
                    }
                }
                match kept.as_slice() {
                    [] => ended?,
                    [one] => one.clone(),
                    several => return Err(self.in_several(who, several).await?),
                }
            }
        };
        self.overlay(&mut view);
        Ok(view)
    }

    /// An agent's conversations other than its first are called otherwise than it is.
    async fn meant_session(&self, who: &str, path: Option<&str>) -> Result<View, Refusal> {
        let ended = match self.stored_session(who, path).await {
            Ok(view) if view.outcome.is_none() => return Ok(view),
            Err(refusal) if refusal.reason != Reason::SessionUnknown => return Err(refusal),
            ended => ended,
        };
        let Some(agent) = self.agent_called(who, path).await? else { return ended };
        match self.live_of(&agent).await?.as_slice() {
            [one] => Ok(one.clone()),
            [] if ended.is_ok() => ended,
            [] => self.last_of(&agent).await?.map_or(ended, Ok),
            several => Err(self.in_several(who, several).await?),
        }
    }

    /// The one registered agent that a name means: in its campaign, in the one that this path lies in, or anywhere.
    async fn agent_called(&self, who: &str, path: Option<&str>) -> Result<Option<Agent>, Refusal> {
        let addressed = self.without_role(who).await;
        let who = addressed.as_deref().unwrap_or(who);
        let (campaign, name) = match who.rsplit_once('/') {
            Some((campaign, name)) => (Some(self.campaign(campaign).await?.id), name),
            None => (None, who),
        };
        let mut agents = self.shared.store.agents_named(name).await?;
        agents.retain(|agent| campaign.is_none_or(|campaign| agent.campaign == campaign));
        if let (None, Some(path)) = (campaign, path)
            && let Ok(near) = self.campaign(path).await
            && agents.iter().any(|agent| agent.campaign == near.id)
        {
            agents.retain(|agent| agent.campaign == near.id);
        }
        Ok(if agents.len() == 1 { agents.pop() } else { None })
    }

    /// What an agent works on now, in whichever of its conversations.
    async fn live_of(&self, agent: &Agent) -> Result<Vec<View>, Refusal> {
        let live = SessionFilter { scope: Scope::NotEnded, ..of_agent(agent) };
        let mut rows = self.shared.store.list_sessions(&live, Page::of(LOOKED_AT, None)).await?.rows;
        rows.retain(|view| is_of(view, agent));
        Ok(rows)
    }

    async fn last_of(&self, agent: &Agent) -> Result<Option<View>, Refusal> {
        let rows = self.shared.store.list_sessions(&of_agent(agent), Page::of(LOOKED_AT, None)).await?.rows;
        Ok(rows.into_iter().find(|view| is_of(view, agent)))
    }

    async fn stored_session(&self, who: &str, path: Option<&str>) -> Result<View, Refusal> {
        let store = &self.shared.store;
        if let Ok(id) = who.parse::<SessionId>() {
            return store.session(id).await?.ok_or_else(|| unknown(who));
        }
        if let Ok(conversation) = who.parse::<ConversationId>() {
            let filter = SessionFilter { conversation: Some(conversation), ..SessionFilter::default() };
            return self.current_of(filter).await?.ok_or_else(|| unknown(who));
        }
        let addressed = self.without_role(who).await;
        let who = addressed.as_deref().unwrap_or(who);
        let (campaign, name) = match who.rsplit_once('/') {
            Some((campaign, name)) => (Some(self.campaign(campaign).await?.id), name),
            None => (None, who),
        };
        let near = match (campaign, path) {
            (None, Some(path)) => self.campaign(path).await.ok().map(|campaign| campaign.id),
            _ => None,
        };
        let mut named = None;
        if near.is_some() {
            named = self.named(who, name, near).await?;
        }
        if named.is_none() {
            named = self.named(who, name, campaign).await?;
            if let Some(view) = named.as_ref().filter(|_| campaign.is_none()) {
                self.check_sole(who, view.campaign, Way::Show).await?;
            }
        }
        if let (Some(view), Some(fragment)) = (&named, Fragment::parse(who, SessionId::PREFIX)) {
            // A name that is the end of somebody else's id means two.
            let mut fitting = store.find_sessions(&fragment).await?;
            fitting.retain(|other| other.conversation != view.conversation);
            if !fitting.is_empty() {
                fitting.insert(0, view.clone());
                return Err(ambiguous(who, &fitting));
            }
        }
        if let Some(view) = named {
            return Ok(view);
        }
        if let Some(fragment) = Fragment::parse(who, SessionId::PREFIX) {
            match store.find_sessions(&fragment).await?.as_slice() {
                [] => {}
                [one] => return Ok(one.clone()),
                several => return Err(ambiguous(who, several)),
            }
        }
        if let Some(conversation) = self.conversation_of_part(who).await? {
            let filter = SessionFilter { conversation: Some(conversation.id), ..SessionFilter::default() };
            return self.current_of(filter).await?.ok_or_else(|| unknown(who));
        }
        store.sessions_with_provider_id(who, 1).await?.pop().ok_or_else(|| unknown(who))
    }

    /// What the first conversation of an agent is called that somebody names by its whole address: `shop/api` for
    /// `shop/builder/api`. None for anything else.
    pub(crate) async fn without_role(&self, who: &str) -> Option<String> {
        let (campaign, rest) = who.split_once('/')?;
        rest.contains('/').then_some(())?;
        let agent = self.find_agent(who).await.ok()??;
        Some(format!("{campaign}/{}", agent.name))
    }

    /// The session of a name, in one campaign or in all: the one that has not ended, else the last one of the conversation
    /// that has it. A name that has not ended twice, or that several conversations have, means nobody in particular.
    async fn named(
        &self,
        who: &str,
        name: &str,
        campaign: Option<CampaignId>,
    ) -> Result<Option<View>, Refusal> {
        let store = &self.shared.store;
        let filter = SessionFilter {
            name: Some(name.to_owned()),
            campaigns: campaign.into_iter().collect(),
            ..SessionFilter::default()
        };
        let live = SessionFilter { scope: Scope::NotEnded, ..filter.clone() };
        let mut fitting = store.list_sessions(&live, Page::of(LOOKED_AT, None)).await?.rows;
        if fitting.is_empty() {
            fitting = store.list_sessions(&filter, Page::of(LOOKED_AT, None)).await?.rows;
            self.keep_sessions_meant(&mut fitting).await?;
        }
        let mut conversations = HashSet::new();
        fitting.retain(|view| conversations.insert(view.conversation));
        match fitting.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => Err(self.in_several(who, several).await?),
        }
    }

    /// Of ended sessions, newest first, the last ones of those conversations that their name may mean.
    async fn keep_sessions_meant(&self, fitting: &mut Vec<View>) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        fitting.retain(|view| seen.insert(view.conversation));
        if fitting.len() < 2 {
            return Ok(());
        }
        let mut conversations = Vec::new();
        for view in fitting.iter() {
            conversations.extend(self.shared.store.conversation(view.conversation).await?);
        }
        keep_those_meant(&mut conversations, &self.shared.store.campaigns().await?);
        fitting.retain(|view| conversations.iter().any(|meant| meant.id == view.conversation));
        Ok(())
    }

    /// Refuses a name that an agent of another campaign has too: it means nobody in particular, also if that one was never
    /// spoken to. Where it was, and all of that was closed, it is in nobody's way, but for whoever speaks to it.
    pub(crate) async fn check_sole(&self, who: &str, found: CampaignId, way: Way) -> Result<(), Refusal> {
        let store = &self.shared.store;
        let agents = store.agents_named(who).await?;
        if agents.iter().all(|agent| agent.campaign == found) {
            return Ok(());
        }
        let talks = store.conversations_named(who).await?;
        let campaigns = store.campaigns().await?;
        let mut ways = Vec::new();
        let elsewhere = agents.iter().map(|agent| agent.campaign).filter(|other| *other != found);
        for campaign in std::iter::once(found).chain(elsewhere) {
            let here: Vec<_> = talks.iter().filter(|talk| talk.campaign == campaign).collect();
            let is_silent = campaign != found && here.is_empty();
            let is_closed = campaign != found && here.iter().all(|talk| talk.closed.is_some());
            let Some(Campaign { name, .. }) = campaigns.iter().find(|row| row.id == campaign) else {
                continue;
            };
            if is_closed && !is_silent && way != Way::Send {
                continue;
            }
            let command = match way {
                Way::Send => format!("ostler send {name}/{who} \"…\""),
                _ if is_silent => format!("ostler agent show {name}/{who}"),
                Way::Show => format!("ostler show {name}/{who}"),
                Way::Conversation => format!("ostler conversation show {name}/{who}"),
            };
            let effect = if is_silent { "an agent that was never spoken to, in" } else { "the one in" };
            ways.push((command, format!("{effect} {name}"), format!("{name}/{who}")));
        }
        if ways.len() < 2 {
            return Ok(());
        }
        let message = format!("\"{}\" fits somebody in {} campaigns", one_line(who, 64), ways.len());
        let all = ways.iter().take(CANDIDATES).map(|(_, _, address)| address.as_str());
        let refusal = Refusal::new(Reason::Ambiguous, message).because(all.collect::<Vec<_>>().join(" · "));
        let hints = ways.into_iter().take(CANDIDATES);
        Err(hints.fold(refusal, |refusal, (command, effect, _)| refusal.hint(command, effect)))
    }

    /// Says which sessions a name may mean, and how each is called without doubt.
    async fn in_several(&self, who: &str, several: &[View]) -> Result<Refusal, Refusal> {
        let campaigns = self.shared.store.campaigns().await?;
        // Their names are alike, their short ids are not.
        let unhinted = Refusal { hints: Vec::new(), ..ambiguous(who, several) };
        Ok(several.iter().take(CANDIDATES).fold(unhinted, |refusal, view| {
            let campaign = campaigns.iter().find(|campaign| campaign.id == view.campaign);
            let is_alone = several.iter().filter(|other| other.campaign == view.campaign).count() == 1;
            match campaign.filter(|_| is_alone) {
                Some(campaign) => refusal.hint(
                    format!("ostler show {}/{}", campaign.name, view.name),
                    format!("{}, in {}", view.status.as_str(), campaign.name),
                ),
                None => refusal.hint(
                    format!("ostler show {}", view.id.short()),
                    format!("{}, last heard of {}", view.status.as_str(), view.updated_at.rfc3339()),
                ),
            }
        }))
    }

    /// The newest session of a filter, one that has not ended first.
    async fn current_of(&self, filter: SessionFilter) -> Result<Option<View>, Refusal> {
        let store = &self.shared.store;
        let live = SessionFilter { scope: Scope::NotEnded, ..filter.clone() };
        if let Some(view) = store.list_sessions(&live, Page::of(1, None)).await?.rows.pop() {
            return Ok(Some(view));
        }
        Ok(store.list_sessions(&filter, Page::of(1, None)).await?.rows.pop())
    }

    /// Shows a session whose keeper is not connected as what it is. One that waits to start says for what, and what had no
    /// price is shown at the one that it has now.
    pub(crate) fn overlay(&self, view: &mut View) {
        view.cost = view.cost.at(&self.shared.prices.current());
        if let Some(why) = self.shared.line.why(&view.id).filter(|_| view.status == Status::Created) {
            view.evidence = why;
        }
        if view.outcome.is_none()
            && view.imported.is_none()
            && !self.shared.sessions.is_attached(&view.id)
            && view.status != Status::Starting
        {
            view.detached();
            // Whatever it was about before, to this daemon it has been nothing else.
            view.attention_since = view.attention_since.max(self.shared.began);
        }
    }

    /// The approval of an id or a part of one.
    pub async fn approval(&self, who: &str) -> Result<ApprovalRow, Refusal> {
        let unknown = || {
            Refusal::new(Reason::ApprovalUnknown, format!("there is no approval \"{}\"", one_line(who, 64)))
                .hint("ostler ls --needs-me", "lists who waits for you")
        };
        let fragment = Fragment::parse(who, ApprovalId::PREFIX).ok_or_else(unknown)?;
        match self.shared.store.find_approvals(&fragment).await?.as_slice() {
            [] => Err(unknown()),
            [one] => Ok(one.clone()),
            several => {
                let shown: Vec<_> = several
                    .iter()
                    .map(|row| format!("{} {}", row.id.short(), one_line(&row.input, 40)))
                    .collect();
                Err(Refusal::new(Reason::Ambiguous, format!("\"{who}\" fits {} approvals", several.len()))
                    .because(shown.join(" · ")))
            }
        }
    }
}

fn of_agent(agent: &Agent) -> SessionFilter {
    SessionFilter {
        campaigns: vec![agent.campaign],
        agents: vec![agent.name.to_string()],
        ..SessionFilter::default()
    }
}

fn is_of(view: &View, agent: &Agent) -> bool {
    view.agent.as_ref().is_some_and(|own| own.id == agent.id)
}

fn unknown(who: &str) -> Refusal {
    Refusal::new(Reason::SessionUnknown, format!("there is no session \"{}\"", one_line(who, 64)))
        .hint("ostler ls -a", "lists all there are")
}

fn ambiguous(who: &str, several: &[View]) -> Refusal {
    let shown: Vec<_> = several
        .iter()
        .take(CANDIDATES)
        .map(|view| format!("{} {} {}", view.id.short(), view.name, view.status.as_str()))
        .collect();
    let more = if several.len() > CANDIDATES { " · …" } else { "" };
    let count = if several.len() > CANDIDATES {
        format!("more than {CANDIDATES}")
    } else {
        several.len().to_string()
    };
    let refusal = Refusal::new(Reason::Ambiguous, format!("\"{}\" fits {count} sessions", one_line(who, 64)))
        .because(format!("{}{more}", shown.join(" · ")));
    // Whole: their ends are alike.
    several.iter().take(CANDIDATES).fold(refusal, |refusal, view| {
        refusal.hint(format!("ostler show {}", view.id), format!("{}, {}", view.name, view.status.as_str()))
    })
}
