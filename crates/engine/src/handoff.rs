//! Handing work on: the session that has it ends, and another one goes on with a pack of what is known.

use std::time::Duration;

use ostler_domain::{
    Event, Kind, Reason, Refusal, SessionId,
    agent::Agent,
    campaign::Campaign,
    event::By,
    handoff::{HandoffRequested, Pack, To, Wish},
    query::EventFilter,
    session::{Request, State, View},
};
use ostler_store::RequestReply;

use crate::{
    Change, Engine, NewSession,
    restart::{GONE_WITHIN, no_successor},
};

/// Events of a session that a pack is made from, the newest.
const EVENTS: u32 = 5_000;

/// The kinds among them that say something about its work.
const TELLING: &[Kind] = &[
    Kind::MessageAccepted,
    Kind::AgentCompletion,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::StepStarted,
    Kind::StepEnded,
    Kind::DoneReported,
];

/// What a new session takes over.
#[derive(Clone, Debug)]
pub struct Handed {
    pub(crate) old: Box<State>,
    pub(crate) pack: Box<Pack>,
}

fn again(id: SessionId) -> String {
    format!("ostler handoff {}", id.short())
}

/// Whoever goes on, as far as that is known before the work is packed: by whom it is run and as what.
fn heir(old: &State, campaign: &Campaign, to: &To) -> NewSession {
    let before = old.created();
    let is_same = to.agent.is_none() && to.provider.as_ref().is_none_or(|to| *to == before.config.provider);
    let own_agent = before.agent.as_ref().map(|agent| agent.id.to_string());
    let kept = old.next_model().filter(|_| is_same).map(str::to_owned);
    NewSession {
        campaign: campaign.id.to_string(),
        provider: match (&to.provider, &to.agent) {
            (Some(provider), _) => provider.clone(),
            // What an agent's sessions are started with is its own to say.
            (None, Some(_)) => String::new(),
            (None, None) => before.config.provider.clone(),
        },
        model: to.model.clone().or(kept),
        agent: to.agent.as_ref().map(ToString::to_string).or(own_agent),
        environment: before.config.environment.clone(),
        auth_profile: before.config.auth_profile.clone().filter(|_| is_same),
        provider_config: if is_same { before.config.provider_config.clone() } else { Default::default() },
        ..NewSession::default()
    }
}

impl Engine {
    /// Ends a session and has another one go on with its work; an ended one's is gone on with at once.
    pub async fn hand_off(&self, who: &str, to: &str, wish: Wish, change: Change) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        let fingerprint = format!("hand_off {} {to} {wish:?}", view.id);
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        if let Some(fault) = wish.fault() {
            return Err(Refusal::invalid(fault));
        }
        let old = self.state_of(view.id).await?;
        let campaign = self.campaign_to_go_on_in(old.created(), again(view.id)).await?;
        let to = self.receiver(&campaign, to).await?;
        // A person is told at once that whoever is meant cannot go on; nothing is ended for it.
        let brought = self.shared.keys.brought(view.id);
        let with_all = change.clone().with_keys(change.keys.clone().and(brought));
        let mut heir = heir(&old, &campaign, &to);
        self.check_could_start(&mut heir, &campaign, &with_all).await?;
        let wish = Wish { to, ..wish };
        if view.outcome.is_some() {
            self.check_sole_writer(&view).await?;
            let done = |id: SessionId| change.done(&fingerprint, id.to_string());
            return self.hand_on(old, wish, &change.by, &change, done).await;
        }
        self.check_may_go_on(&view, &change).await?;
        // The end of the old session hands them to whoever goes on.
        self.shared.bring_keys(view.id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
        self.shared.bring_keys(view.id, &heir.provider, heir.auth_profile.as_ref(), &change.keys)?;
        let mut published = self.shared.store.published();
        if let Some(handle) = self.shared.wake(view.id).await? {
            handle.request(Request::Handoff(Box::new(wish)), change.by.clone(), None).await?;
        }
        // The end of the old session has the new one made; it is found by what it continues.
        let child = async {
            loop {
                published.borrow_and_update();
                if let Some(child) = self.shared.store.continued_by(view.id).await? {
                    return Ok(child);
                }
                if published.changed().await.is_err() {
                    return Err(Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"));
                }
            }
        };
        match tokio::time::timeout(GONE_WITHIN + Duration::from_secs(10), child).await {
            Ok(child) => child,
            Err(_) => Err(no_successor(&self.session(&view.id.to_string()).await?)),
        }
    }

    /// Whom the words mean: a registered agent of the campaign, or a provider.
    async fn receiver(&self, campaign: &Campaign, to: &str) -> Result<To, Refusal> {
        if to.is_empty() {
            return Ok(To::default());
        }
        let named = to.strip_prefix("agent:").unwrap_or(to);
        let agent: Option<Agent> = self.shared.store.agent_named(campaign.id, named).await?;
        let to = To::parse(to, |_| agent.is_some()).map_err(Refusal::invalid)?;
        match (&to.agent, agent) {
            (Some(named), None) => Err(Refusal::new(
                Reason::AgentUnknown,
                format!("there is no agent {named} in {}", campaign.name),
            )
            .hint(format!("ostler agent ls -C {}", campaign.name), "lists those there are")),
            _ => Ok(to),
        }
    }

    pub(crate) async fn state_of(&self, id: SessionId) -> Result<State, Refusal> {
        let loaded = self.shared.store.load_session(id).await?;
        let state = loaded.map(|loaded| loaded.state);
        state.ok_or_else(|| Refusal::internal(format!("session {id} cannot be read")))
    }

    /// Goes on with a session's work in another one, as its end promised. If whoever was to have it cannot, the same
    /// provider goes on and is told: the work is not lost for that.
    pub(crate) async fn keep_handoff(
        &self,
        old: State,
        requested: HandoffRequested,
        change: &Change,
    ) -> Result<View, Refusal> {
        let HandoffRequested { mut wish, by } = requested;
        let campaign = self.campaign_to_go_on_in(old.created(), again(old.created().id)).await?;
        // An agent names whom it means; who that is, is known here.
        let asked = wish.to.words();
        if let Ok(to) = self.receiver(&campaign, &asked).await {
            wish.to = to;
        }
        let is_own_wish = by == By::session(old.created().id);
        let is_granted = match is_own_wish {
            true => self.check_peer(&old, &campaign, &wish.to).await,
            false => Ok(()),
        };
        let first = match is_granted {
            Ok(()) => self.hand_on(old.clone(), wish.clone(), &by, change, |_| None).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = match first {
            Err(refusal) if !wish.to.is_same() && refusal.reason != Reason::WrongState => refusal,
            done => return done,
        };
        // An agent does not learn whether there is somebody whom it may not speak to.
        let is_nobody = matches!(
            refusal.reason,
            Reason::PermissionDenied | Reason::AgentUnknown | Reason::ProviderUnknown
        );
        let why = match is_own_wish && is_nobody {
            true => "nobody of that name takes its work",
            false => refusal.message.as_str(),
        };
        let instead = format!("It was to go to {}: {why}.", asked);
        tracing::warn!(session = %old.created().id, %refusal, "the work stays with the same provider");
        let note = if wish.note.is_empty() { instead } else { format!("{}\n{instead}", wish.note) };
        self.hand_on(old, Wish { to: To::default(), note, ..wish }, &by, change, |_| None).await
    }

    /// An agent hands its work to itself, to those of its campaign whom it may speak to, or to a provider that its campaign
    /// works with. A person may name anybody.
    async fn check_peer(&self, old: &State, campaign: &Campaign, to: &To) -> Result<(), Refusal> {
        let before = old.created();
        if let Some(provider) = &to.provider {
            self.check_may_choose(before, provider).await?;
        }
        let own = before.agent.as_ref().map(|agent| &agent.name);
        let Some(agent) = to.agent.as_ref().filter(|to| own != Some(to)) else { return Ok(()) };
        if campaign.policy.is_peer(agent) {
            return Ok(());
        }
        let grant = format!("ostler campaign set {} peers+={agent}", campaign.name);
        let target = format!("handoff to {agent} by session {}", before.id.short());
        self.denied(target, "peers", &grant).await?;
        Err(Refusal::new(
            Reason::PermissionDenied,
            format!("the peers of {} do not name {agent}", campaign.name),
        )
        .hint(grant, "lets the campaign's agents speak to it, and hand it work"))
    }

    /// `by`: who wanted it, whoever does it now.
    async fn hand_on(
        &self,
        old: State,
        wish: Wish,
        by: &By,
        change: &Change,
        done: impl FnOnce(SessionId) -> Option<RequestReply>,
    ) -> Result<View, Refusal> {
        let before = old.created().clone();
        let campaign = self.campaign_to_go_on_in(&before, again(before.id)).await?;
        let to = wish.to.clone();
        let view = old.view();
        let mission = self.membership_after(&view, &change.by).await?;
        let made = self.made(&view).await;
        let pack = old.pack(wish, &self.telling(before.id).await?, made);
        let budget = old.budget_left(None, &self.shared.context().prices)?;
        let brought = self.shared.keys.brought(before.id);
        let change = change.clone().with_keys(change.keys.clone().and(brought));
        let wanted = NewSession {
            prompt: Some(pack.prompt()),
            budget,
            when_used_up: before.config.when_used_up,
            timeout: before.config.timeout(),
            restart: before.config.restart,
            approve: before.config.approve,
            ends_with_turn: before.config.ends_with_turn,
            ticket: before.config.named_ticket(),
            mission,
            leases: before.config.leases.clone(),
            watchdogs: Some(before.config.watchdogs),
            priority: before.config.priority,
            bounded_by: before.bound_handed_on(by),
            ..heir(&old, &campaign, &to)
        };
        let handed = Some(Handed { old: Box::new(old), pack: Box::new(pack) });
        let wanted = NewSession { handed, ..wanted };
        self.create(wanted, &change, done).await
    }

    /// What a session's events say about its work, in their order.
    async fn telling(&self, session: SessionId) -> Result<Vec<Event>, Refusal> {
        let filter =
            EventFilter { session: Some(session), kinds: TELLING.to_vec(), ..EventFilter::default() };
        let mut rows = self.shared.store.events_before(None, &filter, EVENTS).await?.rows;
        rows.reverse();
        Ok(rows.into_iter().map(|recorded| recorded.event).collect())
    }
}
