//! What an agent may have of the world outside its session: helpers of its own, words for those it may speak to, and its own
//! past. Whatever else it asks for is answered as if it did not exist.

use ostler_domain::{
    Mode, Name, Policy, Reason, Refusal, RequestId, SessionId, Time,
    ask::{Ask, Found, HELPER_DEPTH, HELPERS, Spawn},
    budget::{Budget, WhenUsedUp},
    call::{Reply, denied},
    conversation::Key,
    event::By,
    limits::PAGE_MOST,
    query::{EventFilter, Page, Scope, SessionFilter},
    session::{Created, View},
};

use crate::{Addressee, Change, Engine, NewSession, Words, mission::not_there};

/// What is told of the past at most.
const FOUND: usize = 12;
/// Pages of hits that are looked through for it.
const PAGES: usize = 20;

impl Engine {
    /// Does what a session's agent asks for, within its rights.
    pub(crate) async fn serve(&self, asker: &Created, at: u64, ask: Ask) -> Reply {
        let change = Change {
            by: By::session(asker.id),
            pid: None,
            request: Some(request_of(asker.id, at)),
            keys: self.shared.keys.brought(asker.id),
        };
        let served = match ask {
            Ask::Spawn(spawn) => self.spawn_helper(asker, spawn, change).await,
            Ask::Send { to, text } => self.send_to_peer(asker, &to, &text, change).await,
            Ask::Assign { agents } => self.assign(asker, &agents, change).await,
            Ask::Search { text } => self.search_past(asker, &text).await,
            Ask::Ticket { who } => self.read_own_ticket(asker, who.as_deref()).await,
            Ask::Show { who } => self.read_other(asker, &who).await,
        };
        served.unwrap_or_else(Reply::Refused)
    }

    async fn spawn_helper(&self, asker: &Created, spawn: Spawn, change: Change) -> Result<Reply, Refusal> {
        let store = &self.shared.store;
        let most = asker.policy.limits.helpers.unwrap_or(HELPERS);
        let live =
            SessionFilter { scope: Scope::NotEnded, spawned_by: Some(asker.id), ..SessionFilter::default() };
        // It may be the one that is asked for a second time.
        let asked_before = match change.request {
            Some(id) => store.request(id).await?.is_some(),
            None => false,
        };
        let helpers = store.list_sessions(&live, Page::of(most.max(1), None)).await?.rows.len();
        if !asked_before && helpers >= most as usize {
            return Err(Refusal::new(Reason::WrongState, format!("{helpers} helpers are at work already"))
                .because(format!("limits.helpers of the campaign is {most}")));
        }
        if self.depth_of(asker.id).await? >= HELPER_DEPTH {
            return Err(Refusal::new(
                Reason::PermissionDenied,
                format!("helpers have helpers to a depth of {HELPER_DEPTH}"),
            ));
        }
        if let Some(provider) = &spawn.provider {
            self.check_may_choose(asker, provider).await?;
        }
        let wanted = NewSession {
            campaign: asker.campaign.to_string(),
            provider: spawn.provider.clone().unwrap_or_else(|| asker.config.provider.clone()),
            model: spawn
                .model
                .clone()
                .or_else(|| asker.config.model.clone().filter(|_| spawn.provider.is_none())),
            prompt: Some(spawn.task.clone()),
            // What it gets of that is decided where it is created: nothing is given twice.
            budget: spawn.budget.map(|amount| Budget::new(amount, WhenUsedUp::Stop)),
            when_used_up: WhenUsedUp::Stop,
            approve: asker.config.approve,
            ends_with_turn: true,
            priority: asker.config.priority,
            ticket: asker.config.named_ticket(),
            spawned_by: Some(asker.id),
            // Nobody has a helper write what it may not write itself.
            leases: asker.config.leases.clone(),
            auth_profile: asker.config.auth_profile.clone().filter(|_| spawn.provider.is_none()),
            helper: Some(self.helper_key(asker, &spawn)),
            ..NewSession::default()
        };
        let view = self.create_session(wanted, change).await?;
        let budget = view.budget.map(|budget| budget.amount());
        Ok(Reply::Spawned { session: view.id, name: view.name, budget })
    }

    /// `agent:<agent>:subagent:<worker>:<task>`.
    fn helper_key(&self, asker: &Created, spawn: &Spawn) -> Key {
        let agent = asker.agent.as_ref().map_or(&asker.name, |agent| &agent.name);
        let task = Name::slug(&spawn.task).map_or_else(|| "task".to_owned(), |slug| slug.to_string());
        Key::subagent(agent, &spawn.worker, &task)
    }

    /// How many stand above it: whom it helps, whom that one helps, and so on.
    async fn depth_of(&self, session: SessionId) -> Result<u32, Refusal> {
        let mut depth = 0;
        let mut at = self.shared.store.session(session).await?;
        while let Some(above) = at.and_then(|view| view.spawned_by) {
            depth += 1;
            if depth > HELPER_DEPTH {
                break;
            }
            at = self.shared.store.session(above).await?;
        }
        Ok(depth)
    }

    /// Says something to a helper, to whoever it helps, or to an agent that the campaign's policy names. Everybody else is
    /// answered for as if there were nobody.
    async fn send_to_peer(
        &self,
        asker: &Created,
        to: &str,
        text: &str,
        change: Change,
    ) -> Result<Reply, Refusal> {
        let campaign = self.campaign(&asker.campaign.to_string()).await.map_err(|_| denied())?;
        let whom = self.peer(asker, &campaign.policy, to).await?.ok_or_else(denied)?;
        let to = Addressee { who: whom, key: None };
        let text = format!("[from {}] {text}", asker.name);
        let words = Words { text, mode: Some(Mode::Followup), ..Words::default() };
        // What decides there is the operator's to know and to change.
        let sent = self.send(&to, &words, change).await.map_err(|refusal| match refusal.reason {
            Reason::PermissionDenied => {
                Refusal::new(Reason::PermissionDenied, "nothing may be said to it now")
            }
            _ => refusal,
        });
        let heard = sent?.heard.ok_or_else(|| Refusal::invalid("nothing was said"))?;
        Ok(Reply::Sent { message: heard.message })
    }

    /// Who is meant, if it may be spoken to.
    async fn peer(&self, asker: &Created, policy: &Policy, to: &str) -> Result<Option<String>, Refusal> {
        if let Some(member) = asker.config.mission
            && let Some(mate) = self.team_mate(member, to).await?
        {
            return Ok(Some(mate.to_string()));
        }
        if let Some(helper) = self.helper_called(asker, to).await? {
            return Ok(Some(helper.id.to_string()));
        }
        // A name means one of its own campaign, whoever else has it elsewhere.
        let found = match self.spoken_to(&format!("{}/{to}", asker.campaign)).await {
            Ok(view) => Some(view),
            Err(_) => self.spoken_to(to).await.ok(),
        };
        let is_team = |view: &View| {
            let own = asker.config.mission.map(|own| own.mission);
            own.is_some() && view.mission.map(|other| other.mission) == own
        };
        let is_family = |view: &View| {
            let shares_parent = asker.spawned_by.is_some() && view.spawned_by == asker.spawned_by;
            view.spawned_by == Some(asker.id) || asker.spawned_by == Some(view.id) || shares_parent
        };
        if let Some(view) = found.filter(|view| view.campaign == asker.campaign && view.id != asker.id) {
            let name = view.agent.as_ref().map_or(&view.name, |agent| &agent.name);
            // Nobody wakes a member whose work is over: it would work on, and for nobody.
            if is_team(&view) && view.outcome.is_some() {
                return Err(not_there(&view.name, "over"));
            }
            let may = is_team(&view) || is_family(&view) || policy.is_peer(name);
            return Ok(may.then(|| view.id.to_string()));
        }
        // A registered agent that has not said anything yet.
        let agent = self.shared.store.agent_named(asker.campaign, to).await?;
        let agent = agent.filter(|agent| policy.is_peer(&agent.name));
        Ok(agent.map(|agent| agent.id.to_string()))
    }

    /// The last helper that was asked for under this name, by the asker or by those whose work it goes on with.
    async fn helper_called(&self, asker: &Created, worker: &str) -> Result<Option<View>, Refusal> {
        let store = &self.shared.store;
        let chain = SessionFilter { chains: vec![asker.chain], ..SessionFilter::default() };
        for before in store.list_sessions(&chain, Page::of(PAGE_MOST, None)).await?.rows {
            let helpers = SessionFilter { spawned_by: Some(before.id), ..SessionFilter::default() };
            for helper in store.list_sessions(&helpers, Page::of(PAGE_MOST, None)).await?.rows {
                let conversation = store.conversation(helper.conversation).await?;
                if conversation.is_some_and(|conversation| conversation.key.is_of_worker(worker)) {
                    return Ok(Some(helper));
                }
            }
        }
        Ok(None)
    }

    /// The ticket that it works on. Others, and those that do not exist, are answered for alike.
    async fn read_own_ticket(&self, asker: &Created, who: Option<&str>) -> Result<Reply, Refusal> {
        let own = match asker.config.ticket_id {
            Some(id) => self.shared.store.whole_ticket(id).await?,
            None => None,
        };
        let Some(own) = own else {
            return Err(match who {
                Some(_) => denied(),
                None => Refusal::new(Reason::TicketUnknown, "this session works on no ticket"),
            });
        };
        let ticket = &own.ticket;
        let names = [ticket.id.to_string(), ticket.id.short(), ticket.shown()];
        match who {
            Some(who) if !names.iter().any(|name| name == who) => Err(denied()),
            _ => Ok(Reply::Ticket(Box::new(own.told()))),
        }
    }

    /// Whether the campaign lets the asker's agent read what others of it said and did, as it is set now.
    async fn may_read_others(&self, asker: &Created) -> bool {
        let agent = asker.agent.as_ref().map(|agent| &agent.name);
        self.shared.policy_of(asker.campaign).await.is_some_and(|policy| policy.is_reader(agent))
    }

    /// What is recorded of another session of the campaign. One that it may not read, one of another campaign, and one that
    /// does not exist are answered for alike.
    async fn read_other(&self, asker: &Created, who: &str) -> Result<Reply, Refusal> {
        if !self.may_read_others(asker).await {
            return Err(denied());
        }
        let found = match self.session(&format!("{}/{who}", asker.campaign)).await {
            Ok(view) => Some(view),
            Err(_) => self.session(who).await.ok(),
        };
        let view = found.filter(|view| view.campaign == asker.campaign).ok_or_else(denied)?;
        Ok(Reply::Session(Box::new(View { process: None, ..view })))
    }

    /// Looks through what its own conversation and its own chain have said and done, and nothing else; or through all that
    /// is recorded in its campaign, where that is granted.
    async fn search_past(&self, asker: &Created, text: &str) -> Result<Reply, Refusal> {
        let searched = match self.may_read_others(asker).await {
            true => vec![SessionFilter { campaigns: vec![asker.campaign], ..SessionFilter::default() }],
            false => vec![
                SessionFilter { conversation: Some(asker.conversation), ..SessionFilter::default() },
                SessionFilter { chains: vec![asker.chain], ..SessionFilter::default() },
                SessionFilter { spawned_by: Some(asker.id), ..SessionFilter::default() },
            ],
        };
        let mut hits = Vec::new();
        for sessions in searched {
            let filter = EventFilter { sessions: Some(Box::new(sessions)), ..EventFilter::default() };
            let mut page = Page::of(PAGE_MOST, None);
            // Others' words are looked at too, and passed over: it is not to take for ever.
            for _ in 0..PAGES {
                let found = self.search(text, &filter, page).await?;
                hits.extend(found.rows);
                match found.next_cursor {
                    Some(next) if hits.len() < FOUND => page.cursor = Some(next),
                    _ => break,
                }
            }
        }
        hits.sort_by_key(|(event, _)| std::cmp::Reverse(event.seq));
        hits.dedup_by_key(|(event, _)| event.seq);
        hits.truncate(FOUND);
        let found = hits.into_iter().map(|(recorded, snippet)| Found {
            session: recorded.session.map(|id| id.short()).unwrap_or_default(),
            kind: recorded.event.kind().name().to_owned(),
            time: recorded.time.rfc3339(),
            text: snippet,
        });
        Ok(Reply::Found(found.collect()))
    }
}

/// One id for one ask, whichever daemon serves it.
fn request_of(session: SessionId, at: u64) -> RequestId {
    RequestId::new(Time::from_micros(0), session.bits().rotate_left(23) ^ u128::from(at))
}
