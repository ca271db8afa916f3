//! The actor that owns one mission: it alone decides about it, and keeps nothing that the log does not have.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use ostler_domain::{
    Deadline, Event, Kind, Refusal, SessionId, Time,
    budget::Used,
    event::By,
    mission::{Context, Decision, Effect, Hold, Input, Request, State, decide, effects_to_repeat},
    price::PriceBook,
    provider::CallerKeys,
    query::EventFilter,
};
use ostler_store::{Commit, Halt, RequestReply, Urgency};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    errands::Errands,
    forecast::Forecasts,
    progress::{Progress, Suspect},
    shared_dir,
};
use crate::{Engine, Watch, accounts, clock::entropy};

/// Pause before the log is looked at again, or something is decided again, when that failed.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// A look without a reason: prices may have been set, or the clock, or news of a session could not be read.
const LOOK: Duration = Duration::from_secs(60);

/// What is told of members' sessions that a mission has to know.
const TELLING: &[Kind] = &[
    Kind::SessionCreated,
    Kind::SessionStarting,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::UsageRecorded,
    Kind::SessionPaused,
    Kind::SessionResumed,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::StepEnded,
    Kind::OutputAdded,
    Kind::CommitsSeen,
    Kind::SnapshotTaken,
    Kind::MessageAccepted,
    Kind::MessageDelivered,
    Kind::MessageSeen,
    Kind::MessageAnswered,
    Kind::MessageUnknown,
    Kind::MessageReturned,
    Kind::MessageDropped,
    Kind::MessageCancelled,
];

/// What an actor is asked or told.
pub(crate) enum Command {
    Request {
        request: Request,
        by: By,
        /// For the sessions that follow from it; in memory only.
        keys: CallerKeys,
        done: Option<RequestReply>,
        reply: oneshot::Sender<Result<State, Refusal>>,
    },
    /// What came of an effect.
    News(Box<Input>),
    /// What a look at members' trees has found.
    Foreseen(Vec<Input>),
    /// What a look at the files of a member that seems to get nowhere has found.
    Suspected(Suspect),
}

pub(super) struct Actor {
    pub(super) engine: Engine,
    pub(super) state: State,
    /// The same for whoever looks at it.
    shown: watch::Sender<State>,
    watch: Watch,
    /// Its own inbox, for what effects come to. Weak: an actor whose mission is over ends when nobody asks any more.
    own: mpsc::WeakSender<Command>,
    inbox: mpsc::Receiver<Command>,
    /// What each session of the mission has used, at these prices.
    pub(super) used: HashMap<SessionId, Used>,
    pub(super) prices: Arc<PriceBook>,
    /// Sessions that are paused, and those that the mission paused itself.
    pub(super) paused: BTreeSet<SessionId>,
    pub(super) frozen: BTreeSet<SessionId>,
    wake: Option<Deadline>,
    /// When all of its sessions were last looked at.
    looked: Instant,
    pub(super) progress: Progress,
    pub(super) forecasts: Forecasts,
    pub(super) errands: Errands,
    halt: watch::Receiver<Option<Halt>>,
    /// Keys of models that people brought along.
    pub(super) keys: CallerKeys,
}

impl Actor {
    /// Where the log is read from: what is loaded after this has everything before it.
    pub(super) fn watch(engine: &Engine) -> Watch {
        let filter = EventFilter { kinds: TELLING.to_vec(), ..EventFilter::default() };
        engine.watch(filter, None)
    }

    pub(super) fn new(
        engine: Engine,
        state: State,
        shown: watch::Sender<State>,
        watch: Watch,
        (own, inbox): (mpsc::WeakSender<Command>, mpsc::Receiver<Command>),
    ) -> Self {
        let (halt, prices) = (engine.shared.halt.subscribe(), engine.shared.prices.current());
        Self {
            engine,
            state,
            shown,
            watch,
            own,
            inbox,
            used: HashMap::new(),
            prices,
            paused: BTreeSet::new(),
            frozen: BTreeSet::new(),
            wake: None,
            looked: Instant::now(),
            progress: Progress::default(),
            forecasts: Forecasts::default(),
            errands: Errands::default(),
            halt,
            keys: CallerKeys::default(),
        }
    }

    pub(super) async fn run(mut self) {
        while let Err(refusal) = self.begin().await {
            tracing::error!(mission = %self.state.id(), %refusal, "the mission cannot be taken up; trying again");
            sleep(AFTER_FAILURE).await;
        }
        loop {
            let (until, is_held) = (self.next_look(), self.is_held_for_money());
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.heed(command).await,
                    None => return,
                },
                told = self.watch.next() => match told {
                    Ok(events) => {
                        for event in events {
                            self.told(&event).await;
                        }
                    }
                    Err(refusal) => {
                        tracing::warn!(mission = %self.state.id(), %refusal, "the log cannot be read; trying again");
                        sleep(AFTER_FAILURE).await;
                    }
                },
                () = sleep_until(until) => {
                    if self.looked.elapsed() >= LOOK {
                        self.looked = Instant::now();
                        self.look_again().await;
                    }
                    self.take(Input::Tick).await;
                }
                // What was held for want of a price may go on.
                () = accounts::repriced(&self.engine.shared, &self.prices), if is_held => {
                    self.take_prices().await;
                    self.take(Input::Tick).await;
                }
                // What waited for the end of a halt goes on.
                Ok(()) = self.halt.changed() => self.take(Input::Tick).await,
            }
            if self.state.is_over() && self.inbox.is_empty() {
                return;
            }
        }
    }

    /// Takes a mission up where it was left: what may not have been done is done, and what its sessions came to meanwhile
    /// is looked at.
    async fn begin(&mut self) -> Result<(), Refusal> {
        self.recall().await?;
        if !self.state.is_over() {
            self.make_shared();
        }
        self.carry_out(effects_to_repeat(&self.state)).await;
        self.catch_up().await?;
        self.free_awaiting().await;
        self.take(Input::Tick).await;
        self.forecast_all();
        Ok(())
    }

    fn is_held_for_money(&self) -> bool {
        self.state.hold().is_some_and(|held| held.hold == Hold::Budget)
    }

    /// Counts anew where other prices hold than it was counted with: what has ended, or is frozen, has no news of its own.
    async fn take_prices(&mut self) {
        if Arc::ptr_eq(&self.prices, &self.engine.shared.prices.current()) {
            return;
        }
        if let Err(refusal) = self.count_all().await {
            tracing::warn!(mission = %self.state.id(), %refusal, "what it has used is not known at the prices of now");
        }
    }

    fn next_look(&self) -> Instant {
        let now = self.engine.shared.clock.now();
        let left = self.wake.as_ref().map(|wake| wake.remaining(&now)).unwrap_or(LOOK);
        Instant::now() + left.min(LOOK)
    }

    async fn heed(&mut self, command: Command) {
        match command {
            Command::News(input) => {
                let Some(input) = self.unless_foreseen_first(input) else { return };
                self.errands.heard(&input);
                // It may have ended before anybody knew that it is waited for.
                let awaits_somebody = matches!(*input, Input::StartAwaits { .. });
                self.take(*input).await;
                if awaits_somebody {
                    self.free_awaiting().await;
                }
            }
            Command::Foreseen(collisions) => self.foreseen(collisions).await,
            Command::Suspected(suspect) => self.judge(suspect).await,
            Command::Request { request, by, keys, done, reply } => {
                self.keys = keys.and(std::mem::take(&mut self.keys));
                self.take_prices().await;
                let answer = self.decide(Input::Request(request, by), done).await;
                let _ = reply.send(answer.map(|()| self.state.clone()));
            }
        }
    }

    /// Takes news in. What cannot be recorded now is tried again: news are not lost for a full disk.
    pub(super) async fn take(&mut self, input: Input) {
        while let Err(refusal) = self.decide(input.clone(), None).await {
            tracing::error!(mission = %self.state.id(), %refusal, "what happened to the mission cannot be recorded; trying again");
            sleep(AFTER_FAILURE).await;
        }
    }

    pub(super) async fn decide(&mut self, input: Input, done: Option<RequestReply>) -> Result<(), Refusal> {
        let context = self.context();
        let Decision { events, effects } = decide(&self.state, input, &context)?;
        if !events.is_empty() || done.is_some() {
            self.record(context.now.wall, &events, done).await?;
        }
        for event in &events {
            self.state.apply(context.now.wall, event);
        }
        if !events.is_empty() {
            self.shown.send_replace(self.state.clone());
        }
        if events.iter().any(|event| matches!(event, Event::AssignmentsAdded(_))) {
            self.make_shared();
        }
        self.carry_out(effects).await;
        Ok(())
    }

    async fn record(&self, at: Time, events: &[Event], done: Option<RequestReply>) -> Result<(), Refusal> {
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: events.iter().map(|event| (at, event.clone())).collect(),
            session: None,
            request: done,
        };
        self.engine.shared.store.commit(commit).await?;
        Ok(())
    }

    fn context(&self) -> Context {
        let mut all = Used::default();
        self.used.values().for_each(|used| all.add(used));
        Context {
            now: self.engine.shared.clock.now(),
            entropy: entropy(),
            used: all,
            paused_by_hand: self.paused.difference(&self.frozen).copied().collect(),
            halted: self.engine.halted().is_some(),
        }
    }

    /// Has the directory of the mission have its plan. Who finds no directory cannot start, and says so.
    pub(super) fn make_shared(&self) {
        if let Err(error) = shared_dir::make(&self.engine.shared.options.state_dir, &self.state) {
            tracing::warn!(mission = %self.state.id(), %error, "the mission's directory cannot be made");
        }
    }

    pub(super) fn wake_at(&mut self, deadline: Deadline) {
        self.wake = Some(deadline);
    }

    /// Has something done beside the actor; what comes of it is told to the actor.
    pub(super) fn beside<F>(&self, work: F)
    where
        F: Future<Output = Option<Input>> + Send + 'static,
    {
        self.report_if(async move { work.await.map(|input| Command::News(Box::new(input))) });
    }

    /// The same with what is always told.
    pub(super) fn report<F>(&self, work: F)
    where
        F: Future<Output = Command> + Send + 'static,
    {
        self.report_if(async move { Some(work.await) });
    }

    fn report_if<F>(&self, work: F)
    where
        F: Future<Output = Option<Command>> + Send + 'static,
    {
        let own = self.own.clone();
        let shutdown = self.engine.shared.shutdown.clone();
        self.engine.shared.tasks.spawn(async move {
            let done = tokio::select! {
                done = work => done,
                () = shutdown.cancelled() => None,
            };
            // Nobody is left to hear it where the mission is over.
            if let (Some(command), Some(own)) = (done, own.upgrade()) {
                let _ = own.send(command).await;
            }
        });
    }

    /// Does what was decided; all of it may have been done before.
    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out_one(effect).await;
        }
    }
}
