//! The actor: owns one session's state and is the only one to change it.

use std::{collections::VecDeque, path::PathBuf, sync::Arc, time::Duration};

use ostler_domain::{
    CampaignId, Refusal, SessionId,
    budget::{Amount, Claim},
    call::Call,
    event::By,
    gateway::{Allowance, Spent},
    limits::{ACTOR_INBOX, TAPE_BATCH_BYTES},
    session::{
        AgentRequest, BudgetUse, Context, Effect, Input, Report, Request, Restart, State, View, decide,
    },
};
use ostler_providers::{Provider, Say};
use ostler_store::{LoadedSession, OutboxRow, RequestReply, Urgency};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    asking::InOrder,
    commits::{Commits, Draft, Reply},
    intake::{Intake, Taken},
    keeping::{Keeping, Up},
    spending::Lease,
    telling::EndAsked,
    timers::{Due, Timers},
};
use crate::{
    admission::Stands,
    deltas::Delta,
    keeper::NotStarted,
    launch::terms,
    lending::Lender,
    promises,
    shared::Shared,
    tidy::{self, Closed},
};

/// Tape commits under way at once: one becoming durable while the next is read.
const TAPE_COMMITS: usize = 2;
/// Pause before an actor whose commit failed begins again.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What an actor is asked.
pub(crate) enum Command {
    Request {
        request: Request,
        by: By,
        done: Option<RequestReply>,
        reply: Reply,
    },
    /// The session's turn to start has come.
    Start,
    /// Another session waits for the place that this one holds.
    GiveWay,
    /// A keeper said that it is ready, or that it is not.
    KeeperUp {
        attempt: u32,
        result: Result<Up, NotStarted>,
    },
    /// Something changed at these paths of the campaign, and may have to be hidden.
    Remask {
        paths: Vec<PathBuf>,
    },
    /// Asks what the session has used.
    Spending(oneshot::Sender<Claim>),
    /// How far the session may go by its campaign's budget.
    Share {
        share: Option<Allowance>,
        only_less: bool,
        /// Told when it is heeded, with what the gateway had counted by then. Dropped where nobody can say.
        heeded: oneshot::Sender<Option<Spent>>,
    },
    /// What its agent asked for outside of it is done, or refused.
    Served {
        at: u64,
        ask: ostler_domain::ask::Ask,
        reply: ostler_domain::call::Reply,
    },
    /// What the campaign has used of its budget.
    Budgets {
        campaign: Box<BudgetUse>,
        agent: Box<BudgetUse>,
    },
    /// So much of its budget is about to be another session's.
    Lend {
        amount: Amount,
        /// Told when it is heeded, as with a share.
        heeded: oneshot::Sender<Option<Spent>>,
    },
    /// What its helpers took of its budget may have changed.
    Helpers,
    /// The daemon goes away on purpose.
    Leave(oneshot::Sender<()>),
}

/// How others reach an actor.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) campaign: CampaignId,
    pub(crate) commands: mpsc::Sender<Command>,
    /// Whether the keeper is connected, or there is none to be detached from.
    pub(crate) attached: Arc<std::sync::atomic::AtomicBool>,
    /// Whether there is a keeper, and it is connected.
    pub(crate) linked: Arc<std::sync::atomic::AtomicBool>,
    /// The version of the keeper's program, once it has said so: a session has one keeper.
    pub(crate) keeper_version: Arc<std::sync::OnceLock<String>>,
    /// Nothing of its agent is left running, although its end may still be to be recorded.
    pub(crate) gone: Arc<std::sync::atomic::AtomicBool>,
    /// How its agent is made to stand still, as its keeper says.
    pub(crate) frozen: Arc<std::sync::Mutex<Option<ostler_tape::frame::FrozenBy>>>,
}

impl Handle {
    /// Asks for a change and waits until it is durable.
    pub(crate) async fn request(
        &self,
        request: Request,
        by: By,
        done: Option<RequestReply>,
    ) -> Result<View, Refusal> {
        let gone = || Refusal::new(ostler_domain::Reason::WrongState, "the session has just ended");
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Request { request, by, done, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

pub(crate) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) id: SessionId,
    pub(super) dir: PathBuf,
    pub(super) provider: Arc<dyn Provider>,
    /// With everything submitted applied, durable or not.
    pub(super) state: State,
    pub(super) intake: Intake,
    pub(super) keeping: Keeping,
    /// An agent that still does what it was told before its input is closed.
    pub(super) ending: Option<EndAsked>,
    /// How far calls may go by the campaign's budget; none where it has none.
    pub(super) share: Option<Allowance>,
    /// What of its own budget is about to be another session's.
    pub(super) lending: Amount,
    pub(super) lease: Lease,
    /// Everything that was on the tape when this daemon found the session has been read.
    pub(super) is_caught_up: bool,
    /// Durable, not yet read back from the tape.
    pub(super) outbox: VecDeque<OutboxRow>,
    pub(super) next_input_no: u64,
    /// The last input whose record was taken in.
    pub(super) taped_input_no: u64,
    pub(super) commits: Commits,
    pub(super) timers: Timers,
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) handle: Handle,
    /// The event at which the state was last kept.
    pub(super) snapshot_seq: u64,
    /// Up to here closed segments were compressed.
    pub(super) tidied: u64,
    /// Where the line of those who wait to start has it.
    pub(super) place: Stands,
    /// No tape is read before this moment: the last commit failed.
    pub(super) not_before: Option<Instant>,
    pub(super) changes: InOrder,
}

impl Actor {
    /// An actor for a session as the store knows it.
    pub(crate) fn new(
        shared: Arc<Shared>,
        loaded: LoadedSession,
        provider: Arc<dyn Provider>,
    ) -> Result<Self, Refusal> {
        let (id, campaign) = (loaded.state.created().id, loaded.state.created().campaign);
        let dir = shared.session_dir(&id);
        let intake = open_intake(&dir, provider.as_ref(), &loaded)?;
        let (commands, inbox) = mpsc::channel(ACTOR_INBOX);
        let next_input_no = loaded.last_input_no + 1;
        let place = Stands::of(&loaded.state);
        let has_no_keeper = loaded.state.phase() == ostler_domain::session::Phase::Created;
        Ok(Self {
            id,
            dir,
            provider,
            state: loaded.state,
            intake,
            keeping: Keeping::default(),
            ending: None,
            share: None,
            lending: Amount::default(),
            lease: Lease::of_epoch(shared.epoch.current()),
            is_caught_up: false,
            outbox: loaded.outbox.into(),
            next_input_no,
            taped_input_no: 0,
            commits: Commits::default(),
            timers: Timers::default(),
            inbox,
            handle: Handle {
                campaign,
                commands,
                attached: Arc::new(has_no_keeper.into()),
                linked: Arc::default(),
                keeper_version: Arc::default(),
                gone: Arc::default(),
                frozen: Arc::default(),
            },
            snapshot_seq: 0,
            tidied: 0,
            place,
            not_before: None,
            changes: InOrder::default(),
            shared,
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until the session has ended and its end is durable, or the daemon leaves.
    pub(crate) async fn run(mut self) {
        self.begin().await;
        while !(self.state.is_ended() && self.commits.is_empty()) {
            self.take_place();
            // Before every wait: what made the tape grow may have been said before anybody listened.
            self.take_in().await;
            self.look_whether_done().await;
            let now = self.shared.clock.now();
            self.timers.arm(&self.state, &now);
            if let Some(due) = self.timers.due(&self.state, &now) {
                self.due(due).await;
                continue;
            }
            let wake = self.timers.sleep(&self.state, &now).map(|span| Instant::now() + span);
            let ends = self.ending.as_ref().map(|ending| ending.until);
            let wake = earliest([wake, self.keeping.retry_at(), self.not_before, ends]);
            tokio::select! {
                biased;
                (answer, commit) = self.commits.next() => self.settled(answer, commit).await,
                Some(command) = self.inbox.recv() => {
                    if self.command(command).await.is_break() {
                        return;
                    }
                }
                frame = self.keeping.next_frame() => self.framed(frame).await,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    self.not_before = self.not_before.filter(|until| *until > Instant::now());
                    self.retry_keeper().await;
                }
            }
        }
        self.leave().await;
        self.shared.sessions.forget(&self.id);
        self.shared.line.leave(&self.id);
        if !matches!(self.state.view().restart, Some(Restart::At(_))) {
            self.shared.keys.forget(self.id);
        }
        self.shared.accounts.changed(self.handle.campaign);
        if let Some(asker) = self.state.created().spawned_by {
            self.shared.charge(Lender::Asker(asker)).await;
        }
        self.shared.watcher.forget(self.id).await;
        // Nobody listens there any more.
        let _ = std::fs::remove_file(self.dir.join("ctl"));
        tidy::compress(self.dir, Closed::All);
    }

    async fn due(&mut self, due: Due) {
        let context = self.shared.context();
        let input = match due {
            Due::Watchdog(watchdog) => Input::Watchdog(watchdog),
            Due::TimedOut => Input::TimedOut,
            Due::LimitEnded => Input::LimitEnded,
            Due::Approvals => Input::ApprovalsDue,
            Due::IdledOut => Input::IdledOut,
            Due::Quiet => Input::Quiet,
        };
        self.decided(input, &context).await;
        self.timers.rearm(&self.state, &context.now);
    }

    async fn command(&mut self, command: Command) -> std::ops::ControlFlow<()> {
        match command {
            Command::Request { request, by, done, reply } => self.requested(request, by, done, reply).await,
            Command::Start => self.start().await,
            Command::GiveWay => self.give_way().await,
            Command::KeeperUp { attempt, result } => self.keeper_up(attempt, result).await,
            Command::Remask { paths } => self.remask(paths).await,
            Command::Spending(asked) => drop(asked.send(self.spending().await)),
            Command::Share { share, only_less, heeded } => self.take_share(share, only_less, heeded).await,
            Command::Served { at, ask, reply } => self.served(at, &ask, reply).await,
            Command::Budgets { campaign, agent } => self.budgets_used(*campaign, *agent).await,
            Command::Lend { amount, heeded } => self.lend(amount, heeded).await,
            Command::Helpers => self.charge_helpers().await,
            Command::Leave(left) => {
                for (answer, commit) in self.commits.settle().await {
                    self.settled(answer, commit).await;
                }
                self.leave().await;
                let _ = left.send(());
                return std::ops::ControlFlow::Break(());
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    async fn requested(&mut self, request: Request, by: By, done: Option<RequestReply>, reply: Reply) {
        let mut draft = Draft::default();
        let context = self.shared.context();
        match self.feed(Input::Request(request, by), &context, &mut draft) {
            Err(refusal) => drop(reply.send(Err(refusal))),
            // It holds already. Whoever made it so may not be durable yet, so the answer waits for that.
            Ok(()) if draft.is_empty() && self.commits.is_empty() => drop(reply.send(Ok(self.state.view()))),
            Ok(()) => {
                draft.replies.push(reply);
                self.submit(draft, Urgency::Control, None, done).await;
            }
        }
    }

    /// Decides one input that nobody waits for and commits what follows.
    pub(super) async fn decided(&mut self, input: Input, context: &Context) {
        let mut draft = Draft::default();
        // Only requests of people can be refused.
        let _ = self.feed(input, context, &mut draft);
        if !draft.is_empty() || !draft.effects.is_empty() {
            self.submit(draft, Urgency::Control, None, None).await;
        }
    }

    /// Decides one input: applies the events and collects everything for one commit.
    fn feed(&mut self, input: Input, context: &Context, draft: &mut Draft) -> Result<(), Refusal> {
        let decision = decide(&self.state, input, context)?;
        for event in decision.events {
            self.state.apply(context.now.wall, &event);
            draft.events.push((context.now.wall, event));
        }
        for effect in decision.effects {
            match effect {
                Effect::Tell(request) => self.tell(&request, draft),
                Effect::Spawn { attempt } => {
                    // A keeper that never came to life took nothing: the next one is sent the same rows.
                    if self.next_input_no == 1 {
                        self.open_dialogue(draft);
                    }
                    draft.effects.push(Effect::Spawn { attempt });
                }
                effect => draft.effects.push(effect),
            }
        }
        Ok(())
    }

    /// Turns a request into an outbox row of the same commit.
    fn tell(&mut self, request: &AgentRequest, draft: &mut Draft) {
        if let Some(bytes) = self.intake.dialogue().on_request(request, self.next_input_no) {
            self.say(Say { tag: request.tag(), bytes }, draft);
        }
    }

    fn say(&mut self, say: Say, draft: &mut Draft) {
        draft.outbox.push(OutboxRow { input_no: self.next_input_no, tag: say.tag, bytes: say.bytes });
        self.next_input_no += 1;
    }

    /// What every agent of this kind is told first.
    fn open_dialogue(&mut self, draft: &mut Draft) {
        let created = self.state.created();
        // Settings that cannot be read end the start where they are needed.
        let config = &created.config;
        let settings =
            self.shared.options.providers.of_account(&config.provider, config.auth_profile.as_ref());
        let settings = settings.unwrap_or_default();
        for say in self.provider.opening(&terms(created, &settings)) {
            self.say(say, draft);
        }
    }

    /// Takes in what the tape has beyond what was read, as much as one commit may hold.
    async fn take_in(&mut self) {
        while self.commits.len() < TAPE_COMMITS && self.not_before.is_none() && !self.state.is_ended() {
            if self.intake.offset() >= self.keeping.tape_end() || !self.take_batch().await {
                break;
            }
        }
    }

    /// Takes in one batch; false when the tape has nothing more.
    pub(super) async fn take_batch(&mut self) -> bool {
        let harvest = match self.intake.read(self.batch_bytes()) {
            Ok(harvest) => harvest,
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the tape cannot be read");
                self.not_before = Some(Instant::now() + AFTER_FAILURE);
                return false;
            }
        };
        if !harvest.moved {
            return false;
        }
        let now = self.shared.clock.now();
        if harvest.output || harvest.logged {
            self.timers.progress(harvest.output, &now);
        }
        let mut draft = Draft::default();
        let prices = self.shared.prices.current();
        for (at, taken) in harvest.taken {
            let input = match taken {
                Taken::Input(input) => input,
                Taken::Say(say) => {
                    self.say(say, &mut draft);
                    continue;
                }
            };
            let mut context = Context {
                now: now.clone(),
                entropy: 0,
                policy: None,
                prices: prices.clone(),
                on_reboot: self.shared.options.on_reboot,
                is_work_over: false,
            };
            context.now.wall = at;
            if matches!(input, Input::Call { call: Ok(Call::Handoff(_)), .. }) {
                context.is_work_over = self.shared.is_work_over(&self.state).await;
            }
            if matches!(input, Input::Report(Report::ApprovalAsked { .. } | Report::ToolAnnounced { .. })) {
                context.entropy = crate::clock::entropy();
                context.policy = self.shared.policy_of(self.state.created().campaign).await;
            }
            let _ = self.feed(input, &context, &mut draft);
        }
        if !harvest.deltas.is_empty() {
            self.timers.streams(&self.state);
        }
        for text in harvest.deltas {
            self.shared.deltas.publish(Delta { session: self.id, text });
        }
        // What a person waits for is not to wait for others' output.
        let is_awaited = !draft.outbox.is_empty()
            || !draft.effects.is_empty()
            || draft.events.iter().any(|(_, event)| matches!(event, ostler_domain::Event::SessionStarted(_)));
        let urgency = if is_awaited { Urgency::Control } else { Urgency::Tape };
        self.submit(draft, urgency, harvest.taped_input, None).await;
        true
    }

    /// How much of the tape to read at once: what the keeper has told of, if that is not too much. Only who looks
    /// for the end of a tape whose keeper is gone reads blindly.
    fn batch_bytes(&self) -> usize {
        match self.keeping.tape_end().saturating_sub(self.intake.offset()) {
            0 => TAPE_BATCH_BYTES,
            told => usize::try_from(told).map_or(TAPE_BATCH_BYTES, |told| told.min(TAPE_BATCH_BYTES)),
        }
    }

    pub(super) async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn { attempt } => self.spawn_keeper(attempt),
            Effect::Freeze(on) => self.freeze(on).await,
            Effect::RaiseTapeLimit(bytes) => self.raise_tape_limit(bytes).await,
            Effect::Allow(_) => self.send_allowance().await,
            Effect::Stop(rule, by) => self.stop(rule, &by).await,
            Effect::Answer { at, reply } => self.answer(at, reply).await,
            Effect::Ask { at, ask } => self.serve(at, ask),
            Effect::Continue { after } => promises::keep(&self.shared, self.id, after),
            // Told through the outbox of its own commit.
            Effect::Tell(_) => {}
        }
    }

    pub(super) async fn repeat_effects(&mut self) {
        for effect in ostler_domain::session::effects_to_repeat(&self.state) {
            self.carry_out(effect).await;
        }
    }

    /// Waits until everything submitted is durable.
    pub(super) async fn settle(&mut self) {
        while !self.commits.is_empty() {
            let (answer, commit) = self.commits.next().await;
            Box::pin(self.settled(answer, commit)).await;
        }
    }
}

pub(super) fn open_intake(
    dir: &std::path::Path,
    provider: &dyn Provider,
    loaded: &LoadedSession,
) -> Result<Intake, Refusal> {
    crate::keeper::make_dir(dir).map_err(|error| {
        Refusal::internal("the session's directory cannot be made").because(error.to_string())
    })?;
    Intake::open(dir, provider, loaded.mark.as_ref())
        .map_err(|error| Refusal::internal("the session's tape cannot be opened").because(error.to_string()))
}

fn earliest<const N: usize>(moments: [Option<Instant>; N]) -> Option<Instant> {
    moments.into_iter().flatten().min()
}
