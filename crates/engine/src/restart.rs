//! One session going on in the next: after a crash by policy, after a person's `restart`, or woken by a message.

use std::{sync::Arc, time::Duration};

use ostler_domain::{
    Budget, Reason, Refusal, SessionId,
    chain::Chain,
    conversation::Conversation,
    event::By,
    limits::{FAMILY_SESSIONS, PAGE_MOST},
    message::Said,
    mission::Membership,
    provider::CallerKeys,
    query::{Page, SessionFilter},
    session::{Approve, Begin, Config, Request, State, StopRule, View},
};
use ostler_store::{CommitError, RequestReply};

use crate::{
    Change, Engine,
    clock::entropy,
    create::{created, new_message},
    halt::HaltRefusal,
    lending::Lender,
    place::Place,
    requests::Raised,
    shared::Shared,
};

/// How long a person's `restart` waits for the old process to be gone: longer than the whole ladder.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(30);

/// What an agent is told that was interrupted, after that it was.
const GO_ON: &str = "See what you have done already, and go on where you were stopped.";

impl Engine {
    /// Replaces a session's process: ends it if it lives, and goes on in a new session of the same conversation.
    pub async fn restart(
        &self,
        who: &str,
        model: Option<String>,
        raised: Raised,
        change: Change,
    ) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        let mut fingerprint = match &model {
            None => format!("restart {}", view.id),
            Some(model) => format!("restart {} {model}", view.id),
        };
        if let Some(budget) = raised.of(None) {
            fingerprint = format!("{fingerprint} {}", budget.amount());
        }
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        if view.outcome.is_some() {
            let done = |new: &View| change.done(&fingerprint, new.id.to_string());
            let other = Other { model, raised, ..Other::default() };
            return after(self, &view, other, &change, done).await;
        }
        if raised.of(None).is_some() {
            self.resume(who, raised, None, Change { request: None, ..change.clone() }).await?;
        }
        self.check_may_go_on(&view, &change).await?;
        self.shared.check_program(&view.provider, view.auth_profile.as_ref()).await?;
        self.shared.check_key_of(&view, &change.keys).await?;
        // The end of the old session hands them to the new one.
        self.shared.bring_keys(view.id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
        let mut published = self.shared.store.published();
        if let Some(handle) = self.shared.wake(view.id).await? {
            if let Some(model) = model {
                let request = Request::Model { model, while_it_lives: false };
                handle.request(request, change.by.clone(), None).await?;
            }
            handle.request(Request::Stop(StopRule::Restart), change.by.clone(), None).await?;
        }
        // The end of the old session schedules the new one; it is found by what it continues.
        let wait = async {
            loop {
                published.borrow_and_update();
                if let Some(successor) = self.successor(view.id).await? {
                    return Ok(successor);
                }
                if published.changed().await.is_err() {
                    return Err(Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"));
                }
            }
        };
        match tokio::time::timeout(GONE_WITHIN, wait).await {
            Ok(successor) => successor,
            Err(_) => Err(no_successor(&self.session(&view.id.to_string()).await?)),
        }
    }

    /// Refuses what could not go on, before the session that has it is ended: what cannot go on is not stopped for it.
    pub(crate) async fn check_may_go_on(&self, view: &View, change: &Change) -> Result<(), Refusal> {
        let state = self.state_of(view.id).await?;
        state.budget_left(None, &self.shared.context().prices)?;
        let campaign = self.campaign(&view.campaign.to_string()).await?;
        self.check_workplace(&campaign)?;
        if let Some(halt) = self.halted() {
            return Err(halt.refusal());
        }
        let conversation = self.stored_conversation(view.conversation).await?;
        if let Some(closed) = conversation.closed {
            return Err(self.closed_refusal(&conversation, closed.why).await);
        }
        self.shared.check_campaign_budget(&campaign, state.created().config.billing).await?;
        match view.ticket_id {
            Some(ticket) => self.continue_ticket(ticket, view.id, true, change).await.map(drop),
            None => Ok(()),
        }
    }

    pub(crate) async fn successor(&self, id: SessionId) -> Result<Option<View>, Refusal> {
        Ok(self.shared.store.continued_by(id).await?)
    }

    /// The sessions joined with this one, oldest first.
    pub async fn chain(&self, who: &str) -> Result<Vec<View>, Refusal> {
        let view = self.session(who).await?;
        let filter = SessionFilter { chains: vec![view.chain], ..SessionFilter::default() };
        let mut listed = self.shared.store.list_sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
        listed.reverse();
        listed.iter_mut().for_each(|view| self.overlay(view));
        Ok(listed)
    }

    /// The same with everybody who helped, and what all of them took.
    pub async fn whole_chain(&self, who: &str) -> Result<Chain, Refusal> {
        let view = self.session(who).await?;
        let mut all = self.shared.store.chain_family(view.chain, FAMILY_SESSIONS).await?;
        all.sessions.iter_mut().for_each(|view| self.overlay(view));
        let (now, most) = (self.shared.clock.now().wall, PAGE_MOST as usize);
        let beyond = all.count.saturating_sub(all.sessions.len() as u64);
        let chain = Chain::of(view.chain, all.sessions, now, most);
        Ok(Chain { helper_count: chain.helper_count + beyond, ..chain })
    }
}

fn resume(id: SessionId) -> String {
    format!("ostler resume {}", id.short())
}

/// Nobody goes on with a session after all this time.
pub(crate) fn no_successor(view: &View) -> Refusal {
    let short = view.id.short();
    if view.outcome.is_none() {
        return Refusal::new(Reason::TimedOut, format!("session {short} is still stopping"))
            .hint(format!("ostler kill {short}"), "ends it at once; the new session then starts");
    }
    let refusal =
        Refusal::new(Reason::TimedOut, format!("session {short} ended, and no session goes on with it yet"));
    if let Some(refused) = &view.restart_refused {
        let refusal = refusal.because(refused.why.clone());
        return refused.cures.iter().fold(refusal, |refusal, cure| refusal.hint(&cure.command, &cure.effect));
    }
    refusal
        .hint(format!("ostler resume {short}"), "tries again, and says what is in the way")
        .hint("ostler daemon logs", "has what was tried")
}

/// Goes on with an ended session in a new one, telling it what the old one never heard, and `message`.
pub(crate) async fn after(
    engine: &Engine,
    old: &View,
    other: Other,
    change: &Change,
    done: impl FnOnce(&View) -> Option<RequestReply>,
) -> Result<View, Refusal> {
    if let Some(halt) = engine.halted() {
        return Err(halt.refusal());
    }
    let mission = match other.mission {
        None => engine.membership_after(old, &change.by).await?,
        attempt => attempt,
    };
    let _naming = engine.shared.naming.lock().await;
    if let Some(successor) = engine.successor(old.id).await? {
        let (old, short) = (old.id.short(), successor.id.short());
        let refusal = Refusal::new(Reason::WrongState, format!("session {old} has already gone on"))
            .because(format!("session {short} continues it"));
        // What went on elsewhere hears nobody from here.
        return Err(match successor.imported {
            Some(_) => refusal.hint(resume(successor.id), "goes on with that one"),
            None => refusal.hint(format!("ostler send {short} \"…\""), "says it to that one"),
        });
    }
    let loaded = engine.shared.store.load_session(old.id).await?;
    let state = loaded
        .map(|loaded| loaded.state)
        .ok_or_else(|| Refusal::internal(format!("session {} cannot be read", old.id)))?;
    engine.shared.check_key_of(old, &change.keys).await?;
    engine.check_sole_writer(old).await?;
    let campaign = engine.campaign_to_go_on_in(state.created(), resume(old.id)).await?;
    let before = state.created();
    engine.shared.check_campaign_budget(&campaign, before.config.billing).await?;
    let agent = before.agent.as_ref().map(|agent| agent.id);
    engine.check_agent_budget(agent, before.spawned_by, &campaign, &before.config).await?;
    // A person's word ends a quarantine: the count begins anew.
    let Other { id, message, model, raised, .. } = other;
    let budget = state.budget_left(raised.of(state.budget().copied()), &engine.shared.context().prices)?;
    // What a person allows is theirs to allow; else it is what is left of what was given.
    let is_rest = raised.of(None).is_none();
    let next = Next { id, mission, short_lives: 0, message, model, budget, is_rest, by_person: true };
    record(engine, &state, next, change, done).await
}

/// Goes on with a session by its restart policy, unless it has gone on meanwhile or all agents are halted.
pub(crate) async fn go_on(shared: &Arc<Shared>, id: SessionId) -> Result<(), Refusal> {
    let engine = Engine { shared: shared.clone() };
    if let Some(halt) = engine.halted() {
        return Err(halt.refusal());
    }
    let naming = shared.naming.lock().await;
    if engine.successor(id).await?.is_some() {
        return Ok(());
    }
    let Some(loaded) = shared.store.load_session(id).await? else { return Ok(()) };
    if let Some(requested) = loaded.state.handoff().cloned() {
        // It takes it itself.
        drop(naming);
        let change = Change { by: By::ostler(), pid: None, request: None, keys: CallerKeys::default() };
        engine.keep_handoff(loaded.state, requested, &change).await?;
        return Ok(());
    }
    let by_person = loaded.state.stop().is_some_and(|stop| stop.rule == StopRule::Restart);
    let short_lives = if by_person { 0 } else { loaded.state.short_lives() };
    let change = Change { by: By::ostler(), pid: None, request: None, keys: CallerKeys::default() };
    let budget = loaded.state.budget_left(None, &shared.context().prices)?;
    let mission = engine.membership_after(&loaded.state.view(), &change.by).await?;
    let next =
        Next { id: None, mission, short_lives, message: None, model: None, budget, is_rest: true, by_person };
    record(&engine, &loaded.state, next, &change, |_| None).await?;
    Ok(())
}

/// In what a person wants the new session to differ from the old one.
#[derive(Default)]
pub(crate) struct Other {
    /// The id that it is to have, where somebody has recorded that already.
    pub id: Option<SessionId>,
    /// Which attempt at an assignment of a mission it is, where the mission begins another one.
    pub mission: Option<Membership>,
    pub message: Option<Said>,
    pub model: Option<String>,
    pub raised: Raised,
}

/// In what the new session differs from the old one.
struct Next {
    id: Option<SessionId>,
    mission: Option<Membership>,
    short_lives: u32,
    message: Option<Said>,
    model: Option<String>,
    budget: Option<Budget>,
    /// It is what others left of it.
    is_rest: bool,
    /// Somebody asked for it, and so for another try of a turn that failed.
    by_person: bool,
}

async fn record(
    engine: &Engine,
    old: &State,
    next: Next,
    change: &Change,
    done: impl FnOnce(&View) -> Option<RequestReply>,
) -> Result<View, Refusal> {
    let before = old.created();
    let campaign = engine.campaign_to_go_on_in(before, resume(before.id)).await?;
    engine.check_workplace(&campaign)?;
    let now = engine.shared.clock.now().wall;
    let id = next.id.unwrap_or_else(|| SessionId::new(now, entropy()));
    let conversation = engine.stored_conversation(before.conversation).await?;
    if let Some(closed) = conversation.closed {
        return Err(engine.closed_refusal(&conversation, closed.why).await);
    }
    // What was set since the last session holds from this one on.
    let entry = &conversation.notes.entry;
    let given = engine.shared.provider_given(entry);
    let provider = given.unwrap_or_else(|| before.config.provider.clone());
    engine.shared.provider(&provider)?;
    let bound = before.bound_after(next.by_person && next.mission.is_none() && !change.by.is_session());
    let campaign = engine.campaign_for(campaign, before.spawned_by, &provider).await?;
    let campaign = engine.campaign_for(campaign, bound, &provider).await?;
    let is_same = provider == before.config.provider;
    if let Some(origin) = before.imported.as_ref().filter(|_| is_same) {
        let memory = engine.shared.provider(&provider)?.memory(&origin.dialogue);
        engine.bring_memory(before.conversation, origin, memory).await;
    }
    let begin = engine.shared.begin_after_with(old, &provider).await?;
    let place = Place { short_lives: next.short_lives, bounded_by: bound, ..Place::after(id, old, begin) };
    // What it was in the middle of comes first, unless a person says what to do now.
    let failed = old.failed_turn_words().filter(|_| next.by_person || old.goes_on_with_a_renewed_login());
    let go_on = if old.was_cut_short() { Some(GO_ON.to_owned()) } else { failed };
    let ticket = match before.config.ticket_id {
        Some(ticket) => engine
            .continue_ticket(ticket, id, next.by_person, change)
            .await
            .map(|event| Some((ticket, event))),
        None => Ok(None),
    };
    // The dialogue outlives the work: whoever is talked to goes on without a ticket that is over.
    let is_over = matches!(&ticket, Err(refusal) if refusal.reason == Reason::TicketClosed);
    let (ticket_id, moved) = match ticket {
        Err(_) if is_over && next.message.is_some() => (None, None),
        ticket => ticket?.unzip(),
    };
    let go_on = go_on.filter(|_| next.message.is_none()).map(|text| Said::from(new_message(now, &text)));
    let carried = engine.carried(old).await?;
    let messages: Vec<_> = go_on.into_iter().chain(carried).chain(next.message).collect();
    engine.shared.check_confinable().await?;
    let before_model = old.next_model().filter(|_| is_same).map(str::to_owned);
    let model = next.model.or_else(|| entry.model_override.clone()).or(before_model);
    let profile = match &before.agent {
        Some(agent) => engine.shared.store.agent(agent.id).await?.map(|agent| agent.profile),
        None => None,
    };
    let system_prompt =
        profile.as_ref().map_or(before.config.system_prompt.clone(), |own| own.system_prompt.clone());
    let chosen = engine.shared.account_given(&provider, entry);
    let own = profile.map_or(before.config.auth_profile.clone(), |own| own.auth_profile);
    // An account is one of its provider's.
    let auth_profile = chosen.or(own.filter(|_| is_same));
    engine.shared.options.providers.of_account(&provider, auth_profile.as_ref())?;
    // Somebody is there to be told; what goes on by itself says in its obituary what it lacked.
    if next.by_person {
        engine.shared.check_program(&provider, auth_profile.as_ref()).await?;
    }
    let approval_us = engine.shared.options.approval_us();
    // Where the campaign is now: it may have been moved since.
    let (working_dir, worktree) = engine.shared.place_to_go_on(&campaign, before.config.worktree.as_ref());
    // Whoever waited for the answer of a first life gave it the limit; a later one has it from its own start.
    let deadline = None;
    // One program's settings mean nothing to another.
    let provider_config = if is_same { before.config.provider_config.clone() } else { Default::default() };
    // That nobody was there was true of whoever ran it then. A mission says it of all its members.
    let approve = match before.config.approve {
        Approve::Nobody if next.by_person && next.mission.is_none() => Approve::Policy,
        same => same,
    };
    let config = Config {
        provider: provider.clone(),
        provider_config,
        model,
        budget: next.budget,
        approve,
        approval_us,
        working_dir,
        worktree,
        deadline,
        system_prompt,
        auth_profile,
        ticket: before.config.ticket.clone().filter(|_| !is_over),
        ticket_id,
        mission: next.mission,
        ..before.config.clone()
    };
    let mut config = engine.shared.as_noted(entry, config);
    let from = (next.is_rest && config.budget.is_some()).then_some(Lender::Before(before.id));
    if let Some(from) = from {
        engine.lend(from, &mut config, &campaign).await?;
    }
    let created = created(&campaign, config, engine.shared.sandbox(), place);
    let preview = State::new(created.clone(), now).view();
    let node_events = moved.flatten().into_iter().collect();
    let recorded =
        engine.record_session(created, messages, node_events, Vec::new(), change, done(&preview)).await;
    if let Some(asker) = before.spawned_by {
        engine.shared.charge(Lender::Asker(asker)).await;
    }
    match recorded {
        Ok(view) => {
            engine.shared.keys.hand_on(before.id, id);
            engine.shared.bring_keys(id, &provider, view.auth_profile.as_ref(), &change.keys)?;
            engine.shared.wake(id).await?;
            Ok(view)
        }
        Err(CommitError::RequestDone { .. }) => {
            Err(Refusal::new(Reason::RequestConflict, "this request is being done already"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Where a row came in without what was said, nothing tells which agent would hear anything.
fn never_spoken(conversation: &Conversation) -> Refusal {
    let short = conversation.id.short();
    Refusal::new(Reason::SessionUnknown, format!("nobody has ever worked in conversation {short}"))
        .because("it has no session whose agent could go on, and none of your agents has it")
        .hint(format!("ostler conversation show {short}"), "shows what is known of it")
        .hint("ostler run --agent NAME --key KEY \"…\"", "begins a conversation of one of your agents")
}

/// The first session of a conversation that is in the place of another one: run as the last session of that was.
pub(crate) async fn anew(
    engine: &Engine,
    fresh: &Conversation,
    message: Said,
    change: &Change,
    done: impl FnOnce(&View) -> Option<RequestReply>,
) -> Result<View, Refusal> {
    if let Some(halt) = engine.halted() {
        return Err(halt.refusal());
    }
    let _naming = engine.shared.naming.lock().await;
    let mut replaced = fresh.replaces;
    let last = loop {
        let Some(id) = replaced else {
            return Err(never_spoken(fresh));
        };
        match engine.last_session(id).await? {
            Some(view) => break view,
            // It was reset before anybody had said anything to it.
            None => replaced = engine.stored_conversation(id).await?.replaces,
        }
    };
    engine.shared.check_key_of(&last, &change.keys).await?;
    let loaded = engine.shared.store.load_session(last.id).await?;
    let old = loaded.map(|loaded| loaded.state);
    let old = old.ok_or_else(|| Refusal::internal(format!("session {} cannot be read", last.id)))?;
    let before = old.created();
    let campaign =
        engine.campaign_to_go_on_in(before, format!("ostler send {} \"…\"", fresh.id.short())).await?;
    engine.check_workplace(&campaign)?;
    engine.shared.check_campaign_budget(&campaign, before.config.billing).await?;
    engine.shared.check_confinable().await?;
    let id = SessionId::new(engine.shared.clock.now().wall, entropy());
    let first = Place::first(id, fresh.id, fresh.name.clone(), Begin::Fresh);
    let place = Place { spawned_by: fresh.spawned_by, ..first };
    let entry = &fresh.notes.entry;
    let (working_dir, worktree) = engine.shared.place_to_go_on(&campaign, before.config.worktree.as_ref());
    let config = Config {
        provider: engine.shared.provider_given(entry).unwrap_or_else(|| before.config.provider.clone()),
        model: entry.model_override.clone().or_else(|| before.config.model.clone()),
        approval_us: engine.shared.options.approval_us(),
        working_dir,
        worktree,
        // What the old dialogue was about stays with it.
        ticket: None,
        ticket_id: None,
        mission: None,
        leases: Vec::new(),
        ..before.config.clone()
    };
    let mut config = engine.shared.as_noted(entry, config);
    let provider = config.provider.clone();
    let campaign = engine.campaign_for(campaign, place.spawned_by, &provider).await?;
    let from = place.spawned_by.map(Lender::Asker);
    if let Some(from) = from {
        engine.lend(from, &mut config, &campaign).await?;
    }
    let created = created(&campaign, config, engine.shared.sandbox(), place);
    let preview = State::new(created.clone(), engine.shared.clock.now().wall).view();
    let messages = vec![message];
    let recorded =
        engine.record_session(created, messages, Vec::new(), Vec::new(), change, done(&preview)).await;
    if let Some(from) = from {
        engine.shared.charge(from).await;
    }
    match recorded {
        Ok(view) => {
            engine.shared.bring_keys(id, &provider, view.auth_profile.as_ref(), &change.keys)?;
            engine.shared.wake(id).await?;
            Ok(view)
        }
        Err(CommitError::RequestDone { .. }) => {
            Err(Refusal::new(Reason::RequestConflict, "this request is being done already"))
        }
        Err(error) => Err(error.into()),
    }
}
