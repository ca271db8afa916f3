//! New sessions.

mod check;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ostler_domain::{
    Budget, CampaignId, Deadline, Event, FreeNumber, Message, MessageId, Mode, Name, Reason, Refusal,
    SessionId,
    admission::Priority,
    budget::WhenUsedUp,
    campaign::Campaign,
    conversation::Key,
    denied::{Denied, DeniedKind},
    event::Tamper,
    limits::WORKTREE_TIME,
    message::Said,
    mission::Membership,
    provider::{Settings, choose},
    query::{Page, Scope, SessionFilter},
    session::{
        Approve, Billing, Config, Created, RestartPolicy, Sandbox, State, View, WatchdogLimits, create,
    },
    worktree::Wanted,
};
use ostler_store::{Commit, CommitError, RequestReply, SessionCommit, Urgency};

pub(crate) use self::check::Way;
use self::check::{Startable, billing, check_environment, check_texts};
use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    campaign::tracked_hidden,
    clock::entropy,
    handoff::Handed,
    lending::Lender,
    place::{Place, Placed, Whose},
    worktree::Wish,
};

/// What a caller wants a session to be.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The id that it is to have, where somebody has recorded that already.
    pub id: Option<SessionId>,
    /// The assignment of a mission that it works on.
    pub mission: Option<Membership>,
    /// Name, id, or any path in it.
    pub campaign: String,
    /// Empty where nobody named one.
    pub provider: String,
    pub model: Option<String>,
    pub name: Option<Name>,
    /// A registered agent whose session it is.
    pub agent: Option<String>,
    /// Which of the agent's conversations; unset, its `main`.
    pub key: Option<Key>,
    pub system_prompt: Option<String>,
    pub auth_profile: Option<Name>,
    pub prompt: Option<String>,
    /// That prompt with what is recorded beside it, where anything is.
    pub said: Option<Said>,
    pub budget: Option<Budget>,
    pub when_used_up: WhenUsedUp,
    pub timeout: Option<std::time::Duration>,
    /// From now on, not from its start.
    pub timeout_counts_waiting: bool,
    pub restart: RestartPolicy,
    pub approve: Approve,
    pub ends_with_turn: bool,
    pub environment: BTreeMap<String, String>,
    pub provider_config: BTreeMap<String, String>,
    pub ticket: Option<String>,
    pub spawned_by: Option<SessionId>,
    /// Whose rights it may not exceed, where somebody's agent wanted it that is not its asker.
    pub bounded_by: Option<SessionId>,
    pub watchdogs: Option<WatchdogLimits>,
    /// How pressing it is that it starts.
    pub priority: Priority,
    /// A work tree of its own is wanted.
    pub worktree: Option<Wanted>,
    /// What alone it may write of its root; all of it where nothing is said.
    pub leases: Vec<String>,
    /// The key of the conversation of a helper.
    pub helper: Option<Key>,
    /// The work that it takes over.
    pub handed: Option<Handed>,
}

impl Engine {
    /// Creates a session; it is durable when this returns, and starts by itself.
    pub async fn create_session(&self, wanted: NewSession, change: Change) -> Result<View, Refusal> {
        let fingerprint = format!("create_session {wanted:?}");
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        self.create(wanted, &change, |id| change.done(&fingerprint, id.to_string())).await
    }

    /// The same, with the answer to whatever request led to it.
    pub(crate) async fn create(
        &self,
        mut wanted: NewSession,
        change: &Change,
        done: impl FnOnce(SessionId) -> Option<RequestReply>,
    ) -> Result<View, Refusal> {
        let campaign = self.campaign(&wanted.campaign).await?;
        self.check_workplace(&campaign)?;
        self.fill_from_ticket(&mut wanted, &campaign).await?;
        let whose = self.whose(&wanted, &campaign).await?;
        let has_own_budget = wanted.budget.is_some();
        whose.fill(&mut wanted, &self.shared);
        let begins_anew = whose.takes_reset_word(&mut wanted);
        if begins_anew {
            self.check_may_begin(&campaign, &whose, change).await?;
        }
        self.rule_what_is_said(&mut wanted, &whose, &campaign, change).await?;
        if wanted.provider.is_empty() {
            wanted.provider = self.usual_provider(&wanted, &campaign, change).await?;
        }
        let provider = self.shared.provider(&wanted.provider)?;
        let before = wanted.handed.as_ref().and_then(|handed| handed.old.created().spawned_by);
        let campaign = self.campaign_for(campaign, wanted.spawned_by.or(before), provider.name()).await?;
        let campaign = self.campaign_for(campaign, wanted.bounded_by, provider.name()).await?;
        if let Some((key, value)) = whose.entry.thinking_levels().find_map(|level| provider.thinking(level)) {
            wanted.provider_config.entry(key.to_owned()).or_insert(value);
        }
        check_texts(&wanted)?;
        if let Err(refusal) = check_environment(&wanted) {
            self.shared.audit.write(&Entry {
                time: self.shared.clock.now().wall,
                actor: Who::of(change),
                action: "session.create",
                object: campaign.name.to_string(),
                decision: Decision::Denied,
                reason: refusal.message.clone(),
                policy: Some(&campaign.policy),
            });
            self.record_denied(DeniedKind::Policy, refusal.message.clone(), "environment", &refusal).await;
            return Err(refusal);
        }
        let Startable { settings, said, has_model } =
            self.check_startable(provider.as_ref(), &wanted, &campaign, &change.keys).await?;
        let login = self.shared.login(provider.as_ref(), &settings);
        let pays_by_call = has_model || login.is_some_and(|login| login.is_key);
        let billing = billing(provider.as_ref(), &settings, &wanted, pays_by_call);
        if let Some(asker) = wanted.spawned_by.filter(|_| wanted.helper.is_some()) {
            wanted.timeout = self.time_of_asker(asker).await?;
            wanted.timeout_counts_waiting = true;
        }
        let mut config = self.config(&wanted, &settings, &campaign, billing);
        self.check_price(&campaign, &config)?;
        self.shared.check_campaign_budget(&campaign, config.billing).await?;
        let agent = whose.agent.as_ref().map(|agent| agent.id);
        self.check_agent_budget(agent, wanted.spawned_by.or(before), &campaign, &config).await?;
        self.shared.check_confinable().await?;
        if let Some(old) = whose.there.as_ref().filter(|_| begins_anew) {
            // The answer to this request is that of the session.
            let reset = Change { request: None, ..change.clone() };
            self.reset_as(&old.id.to_string(), true, reset, "", |id| id.to_string()).await?;
        }
        let tree = self.wish_for_worktree(&wanted, &whose, &campaign).await?;
        let _naming = self.shared.naming.lock().await;
        let Placed { place, opened, carried, told } = self.place(&wanted, &whose, &campaign).await?;
        let id = place.id;
        if let Some(before) = place.continues.filter(|_| wanted.handed.is_none() && !has_own_budget) {
            let left = self.left_by(before, &config).await;
            config.budget = left.map_err(|refusal| match &place.agent {
                Some(agent) => refusal.hint(
                    format!("ostler run --agent {}/{} --budget AMOUNT \"…\"", campaign.name, agent.name),
                    "gives the next session a budget of its own",
                ),
                None => refusal,
            })?;
        }
        if matches!(tree, Wish::New { .. }) {
            // Its agent starts when all files are there.
            let making = u64::try_from(WORKTREE_TIME.as_micros()).unwrap_or(u64::MAX);
            config.watchdogs.start_us = config.watchdogs.start_us.max(making);
        }
        (config.working_dir, config.worktree) = self.place_to_work(&campaign, &place.name, tree).await?;
        let mut node_events: Vec<Event> = opened.into_iter().collect();
        if let Some(begun) = self.begin_ticket(&wanted, &campaign, id, change).await? {
            config.ticket = Some(begun.shown);
            config.ticket_id = Some(begun.id);
            node_events.extend(begun.events);
        }
        let now = self.shared.clock.now().wall;
        let typed = || wanted.prompt.as_deref().map(|text| Said::from(new_message(now, text)));
        let prompt = wanted.said.clone().or_else(typed).into_iter();
        // Whoever takes work over hears first what it is.
        let messages = match wanted.handed {
            Some(_) => prompt.chain(carried).collect(),
            None => carried.into_iter().chain(prompt).collect(),
        };
        let from = Lender::of(&place, &wanted);
        if let Some(from) = from {
            self.lend(from, &mut config, &campaign).await?;
        }
        let place = Place { bounded_by: wanted.bounded_by, ..place };
        let created = created(&campaign, config, self.shared.sandbox(), place);
        let recorded = self.record_session(created, messages, node_events, told, change, done(id)).await;
        if let Some(from) = from {
            self.shared.charge(from).await;
        }
        match recorded {
            // Somebody asked for it twice at the same time, and this was the second.
            Err(CommitError::RequestDone { reply, .. }) => self.session_in(&reply).await,
            Err(error) => Err(error.into()),
            Ok(view) => {
                self.shared.bring_keys(id, &wanted.provider, wanted.auth_profile.as_ref(), &change.keys)?;
                self.shared.keys.keep_said(id, said);
                self.shared.wake(id).await?;
                Ok(view)
            }
        }
    }

    /// What the next session of a conversation may use where nobody gives it a budget of its own: what the one before has left.
    async fn left_by(&self, before: SessionId, config: &Config) -> Result<Option<Budget>, Refusal> {
        let before = self.state_of(before).await?;
        if before.budget().is_none() {
            return Ok(config.budget);
        }
        let left = before.budget_left(None, &self.shared.context().prices)?;
        Ok(left.map(|left| Budget::new(left.amount(), config.when_used_up)))
    }

    /// What a session of an agent begins with is said to one of its conversations: whoever may not say it there is
    /// refused, and what let it through is recorded with it. Work that is handed on is nobody's message.
    async fn rule_what_is_said(
        &self,
        wanted: &mut NewSession,
        whose: &Whose,
        campaign: &Campaign,
        change: &Change,
    ) -> Result<(), Refusal> {
        let Some(text) = wanted.prompt.as_deref().filter(|_| wanted.said.is_none()) else { return Ok(()) };
        if wanted.handed.is_some() {
            return Ok(());
        }
        let verdict = self.check_may_begin(campaign, whose, change).await?;
        if let Some(verdict) = verdict.filter(|verdict| verdict.is_ruled) {
            let message = new_message(self.shared.clock.now().wall, text);
            wanted.said = Some(Said { rule: Some(verdict.rule), ..Said::from(message) });
        }
        Ok(())
    }

    /// The session that an answer speaks of, whatever else it says.
    async fn session_in(&self, reply: &str) -> Result<View, Refusal> {
        let id = reply.split(' ').find(|word| word.parse::<SessionId>().is_ok());
        self.session(id.ok_or_else(|| Refusal::internal("the stored answer of this request cannot be read"))?)
            .await
    }

    /// Makes a session durable, with what it begins with: `node_events` of nobody's session before, `told` of its own.
    pub(crate) async fn record_session(
        &self,
        created: Created,
        messages: Vec<Said>,
        node_events: Vec<Event>,
        told: Vec<Event>,
        change: &Change,
        request: Option<RequestReply>,
    ) -> Result<View, CommitError> {
        let now = self.shared.clock.now().wall;
        let (id, policy) = (created.id, created.policy.clone());
        let tracked = match created.sandbox {
            // What a work tree has is what its campaign's repository has.
            Sandbox::On => tracked_hidden(&self.checkout_of(&created).await, &created.policy).await,
            Sandbox::Off => Vec::new(),
        };
        let mut events = create(created, messages, &change.by);
        events.extend(told);
        if !tracked.is_empty() {
            events.push(Event::HiddenTracked(Tamper { names: tracked }));
        }
        let state = State::replay(events.iter().map(|event| (now, event)))
            .unwrap_or_else(|| unreachable!("the first event of a session creates it"));
        let view = Arc::new(state.view());
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: node_events.into_iter().map(|event| (now, event)).collect(),
            session: Some(SessionCommit {
                id,
                expected_seq: 0,
                events: events.into_iter().map(|event| (now, event)).collect(),
                recorded: None,
                view: Arc::clone(&view),
                tape: None,
                outbox: Vec::new(),
                outbox_done: None,
                snapshot: None,
            }),
            request,
        };
        self.shared.store.commit(commit).await?;
        self.shared.audit.write(&Entry {
            time: now,
            actor: Who::of(change),
            action: "session.create",
            object: format!("{id} {} {}", view.name, view.provider),
            decision: Decision::Allowed,
            reason: format!("sandbox {}", view.sandbox.as_str()),
            policy: Some(&policy),
        });
        Ok(Arc::unwrap_or_clone(view))
    }

    /// Records that a person's wish was not granted by a rule of ours. The answer does not depend on it.
    pub(crate) async fn record_denied(
        &self,
        kind: DeniedKind,
        target: String,
        rule: &str,
        refusal: &Refusal,
    ) {
        let grant = refusal.hints.first().map(|hint| hint.command.clone());
        let denied = Denied { kind, target, rule: rule.to_owned(), grant };
        let now = self.shared.clock.now().wall;
        if let Err(refusal) = self.record_node(now, Event::Denied(denied)).await {
            tracing::warn!(%refusal, "a denial could not be recorded");
        }
    }

    /// The provider of a session that names none: the campaign's, else the machine's, else the only one that could work.
    pub(crate) async fn usual_provider(
        &self,
        wanted: &NewSession,
        campaign: &Campaign,
        change: &Change,
    ) -> Result<String, Refusal> {
        if let Some(provider) = &campaign.policy.provider {
            return Ok(provider.clone());
        }
        if let Some(provider) = self.shared.options.providers.default()? {
            return Ok(provider);
        }
        let variables: Vec<String> = change.keys.iter().map(|(variable, _)| variable.to_owned()).collect();
        let is_model_named = wanted.model.is_some() || campaign.policy.model.is_some();
        choose(&self.providers(&variables).await?, is_model_named).map(|status| status.name.clone())
    }

    fn config(
        &self,
        wanted: &NewSession,
        settings: &Settings,
        campaign: &Campaign,
        billing: Billing,
    ) -> Config {
        let model = campaign.policy.model_for(&wanted.provider).map(str::to_owned).or(settings.model.clone());
        Config {
            provider: wanted.provider.clone(),
            model: wanted.model.clone().or(model),
            working_dir: campaign.root.path.clone(),
            branch: None,
            worktree: None,
            budget: wanted.budget,
            when_used_up: wanted.when_used_up,
            billing,
            timeout_us: wanted.timeout.map(|span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
            deadline: wanted
                .timeout
                .filter(|_| wanted.timeout_counts_waiting)
                .map(|span| Deadline::after(&self.shared.clock.now(), span)),
            restart: wanted.restart,
            approve: wanted.approve,
            ends_with_turn: wanted.ends_with_turn,
            environment: wanted.environment.clone(),
            provider_config: wanted.provider_config.clone(),
            system_prompt: wanted.system_prompt.clone(),
            auth_profile: wanted.auth_profile.clone(),
            ticket: wanted.ticket.clone(),
            ticket_id: None,
            mission: wanted.mission,
            watchdogs: wanted.watchdogs.unwrap_or(self.shared.options.watchdogs),
            resumes_after_limit: campaign
                .policy
                .resume_after_rate_limit
                .unwrap_or(self.shared.options.resumes_after_limit),
            approval_us: self.shared.options.approval_us(),
            priority: wanted.priority,
            idle_stop_us: campaign.policy.idle_stop.unwrap_or(self.shared.options.idle_stop).micros(),
            no_tools: false,
            leases: wanted.leases.clone(),
        }
    }

    /// The name asked for, if no session of the campaign has it that has not ended; or one of those made, that no conversation
    /// of the campaign ever had: whoever says a name that nobody chose means one.
    pub(crate) async fn free_name(
        &self,
        campaign: CampaignId,
        asked: Option<&Name>,
        made: impl Fn(u32) -> Name,
    ) -> Result<Name, Refusal> {
        if let Some(name) = asked {
            if self.shared.store.agent_named(campaign, name.as_str()).await?.is_some() {
                let row = self.shared.store.campaign(campaign).await?;
                let of = row.map(|row| format!("-C {} ", row.campaign.name)).unwrap_or_default();
                return Err(Refusal::new(Reason::NameTaken, format!("{name} is the name of an agent"))
                    .hint(format!("ostler run {of}--agent {name} \"…\""), "starts a session of that agent"));
            }
            let Some(holder) = self.holder_of(campaign, name).await? else { return Ok(name.clone()) };
            return Err(Refusal::new(
                Reason::NameTaken,
                format!("{name} is the name of a session that has not ended"),
            )
            .because(format!("session {} is {}", holder.id.short(), holder.status.as_str()))
            .hint(format!("ostler send {} \"…\"", holder.id.short()), "says something to that one"));
        }
        let mut search = FreeNumber::default();
        while let Some(number) = search.question() {
            let name = made(number);
            let is_agent = self.shared.store.agent_named(campaign, name.as_str()).await?.is_some();
            search
                .answer(number, is_agent || self.shared.store.is_conversation_named(campaign, &name).await?);
        }
        Ok(made(search.found()))
    }

    async fn holder_of(&self, campaign: CampaignId, name: &Name) -> Result<Option<View>, Refusal> {
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            campaigns: vec![campaign],
            name: Some(name.to_string()),
            ..SessionFilter::default()
        };
        Ok(self.shared.store.list_sessions(&filter, Page::of(1, None)).await?.rows.pop())
    }
}

pub(crate) fn created(campaign: &Campaign, config: Config, sandbox: Sandbox, place: Place) -> Created {
    // A work tree may not be made yet.
    let own = config.worktree.as_ref().map(|tree| tree.branch.clone());
    let branch = own.or_else(|| crate::git::branch(Path::new(&config.working_dir)));
    let config = Config { branch, ..config };
    Created {
        id: place.id,
        campaign: campaign.id,
        conversation: place.conversation,
        name: place.name,
        agent: place.agent,
        config,
        sandbox,
        policy: campaign.policy.clone(),
        continues: place.continues,
        chain: place.chain,
        spawned_by: place.spawned_by,
        bounded_by: place.bounded_by,
        restart_count: place.restart_count,
        short_lives: place.short_lives,
        begin: place.begin,
        imported: None,
    }
}

pub(crate) fn new_message(now: ostler_domain::Time, text: &str) -> Message {
    Message { id: MessageId::new(now, entropy()), text: text.to_owned(), mode: Mode::Followup }
}
