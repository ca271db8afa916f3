//! The session that a stretch of a file becomes.

use std::{collections::BTreeMap, sync::Arc};

use ostler_domain::{
    CampaignId, ConversationId, Event, Name, Policy, Reason, Refusal, SessionId, Time,
    conversation::{Key, Notes},
    event::{ConversationOpened, ProviderBound, Started},
    history::{self, Origin, Source, Totals, What, Writing, bits},
    session::{
        Approve, Begin, Billing, Config, Created, Ended, Obituary, Outcome, RestartPolicy, Sandbox, State,
        WatchdogLimits, approval_limit,
    },
};
use ostler_store::{Commit, CommitError, KnownHistory, SessionCommit, Urgency};

use super::{
    Answer, Run,
    intake::{Intake, Taken},
    openclaw,
    stores::Dialogue,
};
use crate::Engine;

/// How many characters of a dialogue's own name tell it from others of the same title.
const TELLING: usize = 6;

/// A session that is being written.
struct Writer {
    state: State,
    /// What must be recorded with its creation.
    opened: Option<Event>,
    /// The last event that is in the record.
    recorded_seq: u64,
    /// What has happened and is not.
    events: Vec<(Time, Event)>,
}

impl Writer {
    fn happen(&mut self, events: Vec<(Time, Event)>) {
        for (at, event) in events {
            self.state.apply(at, &event);
            self.events.push((at, event));
        }
    }

    /// Hands in what has happened.
    async fn submit(&mut self, engine: &Engine) -> Answer {
        let events = std::mem::take(&mut self.events);
        let now = engine.shared.clock.now().wall;
        let commit = Commit {
            // Whoever works is not to wait behind a long past.
            urgency: Urgency::Tape,
            node_events: self.opened.take().map(|event| (now, event)).into_iter().collect(),
            session: Some(SessionCommit {
                id: self.state.created().id,
                expected_seq: self.recorded_seq,
                events,
                recorded: Some(now),
                view: Arc::new(self.state.view()),
                tape: None,
                outbox: Vec::new(),
                outbox_done: None,
                snapshot: None,
            }),
            request: None,
        };
        self.recorded_seq = self.state.session_seq();
        engine.shared.store.submit(commit).await
    }
}

pub(super) fn refused(error: CommitError) -> Refusal {
    match error {
        CommitError::Taken { what } => Refusal::new(Reason::ConversationBusy, format!("taken: {what}")),
        error => error.into(),
    }
}

impl Run<'_> {
    /// Takes in what a file has behind a place. Nothing, where that is nothing whole.
    pub(super) async fn take_in(
        &mut self,
        dialogue: &Dialogue,
        name: &str,
        known: Option<KnownHistory>,
        from: u64,
        follow: bool,
        read: &mut Totals,
    ) -> Result<Option<Taken>, Refusal> {
        let engine = self.engine;
        let file = &dialogue.file;
        let memory = known.as_ref().map(|known| known.memory.as_str());
        let mut intake = Intake::new(file.source, file.path.clone(), name.to_owned(), from, memory);
        let mut writer = None;
        let prices = engine.shared.prices.current();
        loop {
            let (back, portion) = read_on(intake).await?;
            intake = back;
            if portion.lines == 0 && writer.is_none() {
                return Ok(None);
            }
            let mut portion = portion;
            let before = portion.told.len();
            self.without_known_calls(file.source.provider(), &mut portion.told).await?;
            read.repeated += (before - portion.told.len()) as u64;
            let mut open = match writer.take() {
                Some(writer) => writer,
                None => self.open(dialogue, name, known.as_ref(), from, &mut intake).await?,
            };
            let conversation = open.state.created().conversation;
            let now = engine.shared.clock.now().wall;
            let (by, prices) = (self.change.by.clone(), prices.clone());
            let called = name.to_owned();
            let written = tokio::task::spawn_blocking(move || {
                let writing = Writing { conversation, dialogue: &called, by: &by, prices: &prices, now };
                let events = intake.write(&mut portion, &writing, follow)?;
                Ok((intake, portion, events))
            });
            let written = written.await.map_err(|_| Refusal::internal("writing a file down failed"))?;
            let (back, portion, mut events) = written.map_err(|error: std::io::Error| unreadable(&error))?;
            intake = back;
            if portion.is_last && !follow {
                events.push((intake.chronicle.at(), ended(file.source.as_str(), None)));
            }
            if file.source == Source::OpenClaw {
                let kept = engine.shared.keep_lines(&file.path, conversation, portion.from, intake.at).await;
                kept.map_err(|error| unreadable(&error))?;
            }
            read.calls += portion.calls;
            read.usage += portion.usage;
            read.events += events.len() as u64;
            read.lines += portion.lines;
            read.unreadable += portion.unreadable;
            read.bytes += intake.at - portion.from;
            open.happen(events);
            let session = open.state.created().id;
            let answer = open.submit(engine).await;
            if portion.is_last {
                self.sessions.insert((file.source, name.to_owned()), session);
                return Ok(Some(Taken { session, answer }));
            }
            answered(answer).await?;
            writer = Some(open);
        }
    }

    /// Leaves out the calls that another file has told of.
    async fn without_known_calls(
        &mut self,
        provider: &'static str,
        told: &mut Vec<history::Told>,
    ) -> Result<(), Refusal> {
        let shared = |what: &What| match what {
            What::Call(call) if call.is_shared => call.name.clone(),
            _ => None,
        };
        let calls: Vec<String> = told.iter().filter_map(|told| shared(&told.what)).collect();
        let known = match calls.is_empty() {
            true => Default::default(),
            false => self.engine.shared.store.known_calls(provider, calls).await?,
        };
        told.retain(|told| match &told.what {
            What::Call(call) => {
                let Some(name) = call.name.clone() else { return true };
                let is_known = call.is_shared && known.contains(&name);
                // Those of this run may not be in the record yet.
                let is_first = self.counted.insert((provider, name));
                !call.is_shared || (!is_known && is_first)
            }
            _ => true,
        });
        Ok(())
    }

    /// The session that is gone on with: the one that nobody has ended, or a new one behind the last.
    async fn open(
        &mut self,
        dialogue: &Dialogue,
        name: &str,
        known: Option<&KnownHistory>,
        from: u64,
        intake: &mut Intake,
    ) -> Result<Writer, Refusal> {
        let engine = self.engine;
        if let Some(live) = known.filter(|known| known.session.outcome.is_none()) {
            let loaded = engine.shared.store.load_session(live.session.id).await?;
            let state = loaded
                .map(|loaded| loaded.state)
                .ok_or_else(|| Refusal::internal(format!("session {} cannot be read", live.session.id)))?;
            let recorded_seq = state.session_seq();
            return Ok(Writer { state, opened: None, recorded_seq, events: Vec::new() });
        }
        let about = &dialogue.about;
        let now = engine.shared.clock.now().wall;
        let first = about.first.unwrap_or(dialogue.file.written).min(now);
        intake.chronicle = match known {
            Some(_) => intake.chronicle.next(),
            None => ostler_domain::history::Chronicle::begun(first),
        };
        let at = intake.chronicle.at();
        let source = dialogue.file.source;
        let id = session_id(source, name, from, at);
        let row_alone = match (known, &dialogue.row) {
            (None, Some(row)) => self.opened_for_row(dialogue, row).await?,
            _ => None,
        };
        let campaign = match (known, &row_alone) {
            (Some(known), _) => engine.campaign(&known.session.campaign.to_string()).await?,
            (None, Some(opened)) => engine.campaign(&opened.campaign.to_string()).await?,
            (None, None) => engine.campaign_around(about.cwd.as_deref()).await?,
        };
        let (conversation, called, opened) = match (known, row_alone) {
            (Some(known), _) => (known.session.conversation, known.session.name.clone(), None),
            (None, Some(opened)) => (opened.id, opened.name, None),
            (None, None) => {
                let conversation =
                    ConversationId::new(now, bits(&[source.as_str().as_bytes(), name.as_bytes()]));
                let called = self.free_title(dialogue, name).await?;
                let key = self.key(dialogue, name, campaign.id).await?;
                let notes = dialogue.row.as_ref().map_or_else(Notes::default, |row| row.notes());
                let opened = ConversationOpened {
                    notes,
                    ..ConversationOpened::new(conversation, campaign.id, key, called.clone())
                };
                (conversation, called, Some(Event::ConversationOpened(Box::new(opened))))
            }
        };
        let spawned_by = match (&about.parent, known) {
            (_, Some(known)) => known.session.spawned_by,
            (Some(parent), None) => {
                let earlier = self.sessions.get(&(source, parent.clone())).copied();
                let known = engine.shared.store.known_history(source, parent).await?;
                earlier.or(known.map(|known| known.session.id))
            }
            (None, None) => None,
        };
        let origin = Origin {
            source,
            dialogue: name.to_owned(),
            file: dialogue.file.path.to_string_lossy().into_owned(),
            from,
        };
        let created = Created {
            id,
            campaign: campaign.id,
            conversation,
            name: called,
            agent: None,
            config: config(dialogue, &campaign.root.path),
            sandbox: Sandbox::Off,
            policy: Policy::default(),
            continues: known.map(|known| known.session.id),
            chain: known.map_or(id, |known| known.session.chain),
            spawned_by,
            bounded_by: None,
            restart_count: known.map_or(0, |known| known.session.restart_count + 1),
            short_lives: 0,
            begin: Begin::Fresh,
            imported: Some(origin),
        };
        let first = Event::SessionCreated(Box::new(created.clone()));
        let mut writer =
            Writer { state: State::new(created, at), opened, recorded_seq: 0, events: vec![(at, first)] };
        let model = about.model.clone();
        let started = Started { provider_id: Some(name.to_owned()), model: model.clone(), deadline: None };
        let bound = ProviderBound { provider_id: name.to_owned(), model };
        writer.happen(vec![(at, Event::SessionStarted(started)), (at, Event::ProviderBound(bound))]);
        Ok(writer)
    }

    /// The key of the conversation: OpenClaw's own, or one that says where it is from.
    async fn key(&mut self, dialogue: &Dialogue, name: &str, campaign: CampaignId) -> Result<Key, Refusal> {
        if let Some(own) = dialogue.row.as_ref().and_then(|row| row.key()) {
            // Another installation may have had the same.
            let taken = self.engine.shared.store.conversation_keyed(campaign, None, &own).await?;
            if taken.is_none() && self.keyed.insert((campaign, own.clone())) {
                return Ok(own);
            }
            self.clash = Some(own);
        }
        let plain = || {
            let id = bits(&[name.as_bytes()]);
            let is_plain =
                name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            let name = if is_plain { name.to_owned() } else { format!("{id:032x}") };
            match (dialogue.file.source, dialogue.file.path.parent()) {
                (Source::OpenClaw, Some(dir)) => openclaw::other_key(dir, &name),
                (source, _) => format!("import:{}:{name}", source.as_str())
                    .parse()
                    .unwrap_or_else(|_| unreachable!("letters, digits and dashes make a key")),
            }
        };
        Ok(plain())
    }
}

impl Run<'_> {
    /// The dialogue's title as a name, if nobody has it; else with the end of its own name.
    async fn free_title(&mut self, dialogue: &Dialogue, name: &str) -> Result<Name, Refusal> {
        let about = &dialogue.about;
        let titles = [about.title.as_deref(), about.prompt.as_deref(), Some(dialogue.file.source.as_str())];
        self.free_name(&titles, name).await
    }

    /// The first of these that makes a name, if nobody has it; else with the end of what tells it from others.
    pub(super) async fn free_name(&mut self, titles: &[Option<&str>], name: &str) -> Result<Name, Refusal> {
        let title = titles.iter().copied().flatten().find_map(Name::slug);
        let title = title.unwrap_or_else(|| unreachable!("a source's name is a name"));
        let is_first = self.named.insert(title.to_string());
        let known = self.engine.shared.store.conversations_named(title.as_str()).await?;
        if is_first && known.is_empty() {
            return Ok(title);
        }
        let telling: String = name.chars().rev().filter(char::is_ascii_alphanumeric).take(TELLING).collect();
        let telling: String = telling.chars().rev().collect();
        Ok(format!("{title}-{}", telling.to_ascii_lowercase()).parse().unwrap_or(title))
    }
}

impl Engine {
    /// Ends imported sessions that were being followed when whoever followed them ended.
    pub(crate) async fn end_followed(&self, why: &str) -> Result<(), Refusal> {
        for id in self.shared.store.unended_history().await? {
            self.end_imported(id, why).await?;
        }
        Ok(())
    }

    pub(super) async fn end_imported(&self, id: SessionId, why: &str) -> Result<(), Refusal> {
        let Some(loaded) = self.shared.store.load_session(id).await? else { return Ok(()) };
        if loaded.state.is_ended() {
            return Ok(());
        }
        let source = loaded.state.created().imported.as_ref().map(|origin| origin.source);
        let recorded_seq = loaded.state.session_seq();
        let at = loaded.state.view().updated_at;
        let mut writer = Writer { state: loaded.state, opened: None, recorded_seq, events: Vec::new() };
        writer.happen(vec![(at, ended(source.map_or("elsewhere", |source| source.as_str()), Some(why)))]);
        answered(writer.submit(self).await).await
    }
}

async fn answered(answer: Answer) -> Result<(), Refusal> {
    answer.await.unwrap_or(Err(CommitError::Closed)).map(drop).map_err(refused)
}

async fn read_on(mut intake: Intake) -> Result<(Intake, super::intake::Portion), Refusal> {
    let read = tokio::task::spawn_blocking(move || intake.read().map(|portion| (intake, portion))).await;
    read.map_err(|_| Refusal::internal("reading a file failed"))?.map_err(|error| unreadable(&error))
}

fn unreadable(error: &std::io::Error) -> Refusal {
    Refusal::internal(format!("it cannot be read: {error}"))
}

/// The same stretch of the same dialogue is the same session: it cannot come in twice.
fn session_id(source: history::Source, dialogue: &str, from: u64, at: Time) -> SessionId {
    SessionId::new(at, bits(&[source.as_str().as_bytes(), dialogue.as_bytes(), &from.to_le_bytes()]))
}

fn ended(source: &str, why: Option<&str>) -> Event {
    let why = why.map(|why| format!(" {why}")).unwrap_or_default();
    Event::SessionStopped(Ended {
        outcome: Outcome::Done,
        obituary: Obituary {
            sentence: format!(
                "Imported from {source}: it ran outside of Ostler, which does not know how it ended.{why}"
            ),
            exit_code: None,
            signal: None,
            rule: None,
            by: None,
            oom: false,
            memory: None,
            last: None,
            leftovers: Vec::new(),
            cures: Vec::new(),
        },
        restart: None,
        machine_restarted: None,
    })
}

fn config(dialogue: &Dialogue, root: &str) -> Config {
    let about = &dialogue.about;
    Config {
        provider: dialogue.file.source.provider().to_owned(),
        model: about.model.clone(),
        working_dir: about.cwd.clone().unwrap_or_else(|| root.to_owned()),
        branch: about.branch.clone(),
        budget: None,
        when_used_up: Default::default(),
        // Who paid is said with each call; this is for whoever goes on with it here.
        billing: Billing::Calls,
        timeout_us: None,
        deadline: None,
        restart: RestartPolicy::Never,
        approve: Approve::Policy,
        worktree: None,
        ends_with_turn: false,
        environment: BTreeMap::new(),
        provider_config: BTreeMap::new(),
        system_prompt: None,
        auth_profile: None,
        ticket: None,
        ticket_id: None,
        mission: None,
        watchdogs: WatchdogLimits::default(),
        resumes_after_limit: true,
        approval_us: approval_limit(),
        priority: Default::default(),
        idle_stop_us: None,
        no_tools: false,
        leases: Vec::new(),
    }
}
