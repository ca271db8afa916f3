//! The actor that owns one mission: it alone decides about it, and keeps nothing that the log does not have.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use ostler_domain::{
    Deadline, Event, Kind, Refusal, SessionId, Time,
    budget::Used,
    event::By,
    mission::{Context, Decision, Effect, Input, Request, State, decide, effects_to_repeat},
    provider::CallerKeys,
    query::EventFilter,
};
use ostler_store::{Commit, RequestReply, Urgency};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use super::progress::Progress;
use crate::{Engine, Watch, clock::entropy};

/// Pause before the log is looked at again, or something is decided again, when that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// A look without a reason: prices may have been set, or the clock.
const LOOK: Duration = Duration::from_secs(60);

/// What is told of members' sessions that a mission has to know.
const TELLING: &[Kind] = &[
    Kind::SessionCreated,
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
}

pub(super) struct Actor {
    pub(super) engine: Engine,
    pub(super) state: State,
    watch: Watch,
    /// Its own inbox, for what effects come to. Weak: an actor whose mission is over ends when nobody asks any more.
    own: mpsc::WeakSender<Command>,
    inbox: mpsc::Receiver<Command>,
    /// What each session of the mission has used.
    pub(super) used: HashMap<SessionId, Used>,
    /// Sessions that are paused, and those that the mission paused itself.
    pub(super) paused: BTreeSet<SessionId>,
    pub(super) frozen: BTreeSet<SessionId>,
    wake: Option<Deadline>,
    pub(super) progress: Progress,
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
        watch: Watch,
        own: mpsc::WeakSender<Command>,
        inbox: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            engine,
            state,
            watch,
            own,
            inbox,
            used: HashMap::new(),
            paused: BTreeSet::new(),
            frozen: BTreeSet::new(),
            wake: None,
            progress: Progress::default(),
            keys: CallerKeys::default(),
        }
    }

    pub(super) async fn run(mut self) {
        while let Err(refusal) = self.begin().await {
            tracing::error!(mission = %self.state.id(), %refusal, "the mission cannot be taken up; trying again");
            sleep(AFTER_FAILURE).await;
        }
        loop {
            let until = self.next_look();
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
                () = sleep_until(until) => self.take(Input::Tick).await,
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
        self.carry_out(effects_to_repeat(&self.state)).await;
        self.catch_up().await?;
        self.take(Input::Tick).await;
        Ok(())
    }

    fn next_look(&self) -> Instant {
        let now = self.engine.shared.clock.now();
        let left = self.wake.as_ref().map(|wake| wake.remaining(&now)).unwrap_or(LOOK);
        Instant::now() + left.min(LOOK)
    }

    async fn heed(&mut self, command: Command) {
        match command {
            Command::News(input) => self.take(*input).await,
            Command::Request { request, by, keys, done, reply } => {
                self.keys = keys.and(std::mem::take(&mut self.keys));
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

    async fn decide(&mut self, input: Input, done: Option<RequestReply>) -> Result<(), Refusal> {
        let context = self.context();
        let Decision { events, effects } = decide(&self.state, input, &context)?;
        if !events.is_empty() || done.is_some() {
            self.record(context.now.wall, &events, done).await?;
        }
        for event in &events {
            self.state.apply(context.now.wall, event);
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
        for used in self.used.values() {
            all.tokens = all.tokens.saturating_add(used.tokens);
            all.dollars.0 = all.dollars.0.saturating_add(used.dollars.0);
            all.unpriced = all.unpriced.or_else(|| used.unpriced.clone());
        }
        Context {
            now: self.engine.shared.clock.now(),
            entropy: entropy(),
            used: all,
            paused_by_hand: self.paused.difference(&self.frozen).copied().collect(),
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
        let own = self.own.clone();
        let shutdown = self.engine.shared.shutdown.clone();
        self.engine.shared.tasks.spawn(async move {
            let done = tokio::select! {
                done = work => done,
                () = shutdown.cancelled() => None,
            };
            // Nobody is left to hear it where the mission is over.
            if let (Some(input), Some(own)) = (done, own.upgrade()) {
                let _ = own.send(Command::News(Box::new(input))).await;
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
