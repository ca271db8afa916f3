//! The actor's side of its keeper: starting it, finding it again, and learning that it is gone.
//!
//! Alive means: the lock is held. A closed connection says nothing by itself; only who gets the lock knows that
//! the keeper is gone, and reads the tape to its end before saying how it ended.

use std::{
    future::pending,
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};

use ostler_domain::{
    CampaignId, Hint, Time,
    admission::Standing,
    event::{By, Leftover},
    gateway::Spent,
    limits::SCAN_TIME,
    session::{self, ExitFacts, How, Input, Phase, Request, StopRequested, StopRule},
};
use ostler_tape::{
    AskedStop, ExitFile, ExitRecord, FromKeeper, KeeperLock, ProcessName, WrittenBy,
    frame::{KeeperState, RefusedReason},
};
use tokio::time::Instant;

use super::actor::{Actor, Command};
use crate::{
    admission::Stands,
    census, keeper,
    launch::Order,
    link::{Link, LinkError, Opened},
    shared::Shared,
};

/// Pauses between tries to reach a keeper that holds its lock: it is still binding, or is just ending.
const RETRY_FIRST: Duration = Duration::from_millis(5);
const RETRY_LONGEST: Duration = Duration::from_secs(1);
/// How much longer than its ladder a keeper may take to end its agent.
pub(super) const FORCE_AFTER: Duration = Duration::from_millis(700);
/// And how much longer than that, once nothing of it is left: its warden looks through all of the campaign for what it
/// left behind, and who kills the keeper kills the warden.
pub(super) const FORCE_AFTER_GONE: Duration = SCAN_TIME.saturating_mul(3);
/// Tries to start a keeper whose lock another one, just ending, still held.
const LOCK_TRIES: u32 = 20;

/// What is known of the keeper.
#[derive(Default)]
pub(super) struct Keeping {
    pub(super) link: Option<Link>,
    pub(super) state: Option<KeeperState>,
    pub(super) sent_input_no: u64,
    retry: Option<(Instant, Duration)>,
    /// When a keeper that does not end its agent is ended itself.
    pub(super) force_at: Option<Instant>,
    /// A keeper is being started: nobody looks at the lock meanwhile.
    pub(super) starting: bool,
}

/// What a keeper that is ready was started with.
pub(crate) struct Up {
    /// When the login ends that the agent was lent, where that is known.
    lent_until: Option<Time>,
}

impl Keeping {
    pub(super) fn tape_end(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.tape_end)
    }

    /// What calls to the model have taken by the gateway's count.
    pub(super) fn spent(&self) -> Option<&Spent> {
        self.state.as_ref()?.spent.as_ref()
    }

    pub(super) fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry.map(|(at, _)| at).into_iter().chain(self.force_at).min()
    }

    /// The next frame of a connected keeper. Safe to drop half way.
    pub(super) async fn next_frame(&mut self) -> Result<Option<FromKeeper>, LinkError> {
        match &mut self.link {
            Some(link) => link.next().await,
            None => pending().await,
        }
    }

    pub(super) fn retry_later(&mut self) {
        let pause = self.retry.map_or(RETRY_FIRST, |(_, pause)| (pause * 2).min(RETRY_LONGEST));
        self.retry = Some((Instant::now() + pause, pause));
    }
}

impl Actor {
    /// The first look at a session: new ones are started, others are found again.
    pub(super) async fn begin(&mut self) {
        self.join_campaign().await;
        self.charge_helpers().await;
        match self.state.phase() {
            Phase::Created => {
                let halt = self.shared.halt.borrow().clone();
                if let Some(halt) = halt {
                    let context = self.shared.context();
                    let request = Request::Halt { freeze: halt.freeze };
                    self.decided(Input::Request(request, halt.by), &context).await;
                }
            }
            Phase::Starting | Phase::Live => {
                // Whoever halted everything meant those too that were not found yet.
                let halt = self.shared.halt.borrow().clone();
                if let Some(halt) = halt.filter(|_| self.state.holds().halt.is_none()) {
                    let context = self.shared.context();
                    let request = Request::Halt { freeze: halt.freeze };
                    self.decided(Input::Request(request, halt.by), &context).await;
                }
                self.find_keeper().await;
            }
            Phase::Stopping => self.find_keeper().await,
            Phase::Ended => {}
        }
    }

    /// Tells the line of those who wait to start where this session stands now.
    pub(super) fn take_place(&mut self) {
        let place = Stands::of(&self.state);
        // Who has ended leaves when that is durable: no list ever shows more than there may be.
        if place != self.place && !self.state.is_ended() {
            self.place = place;
            self.shared.line.moved(&self.id, place);
        }
    }

    /// The session's turn has come. One that is held by now steps aside instead.
    pub(super) async fn start(&mut self) {
        self.place = Stands { standing: Standing::Runs, phase: Phase::Starting, idles_since: None };
        let context = self.shared.context();
        self.decided(Input::Request(Request::Start, By::ostler()), &context).await;
        // It has no share of its campaign's budget while it waits.
        self.shared.accounts.changed(self.handle.campaign);
    }

    /// Another session waits for this one's place. What its agent has said and nobody has read may be that it works.
    pub(super) async fn give_way(&mut self) {
        if self.keeping.is_linked() && self.intake.offset() >= self.keeping.tape_end() {
            let context = self.shared.context();
            self.decided(Input::GiveWay, &context).await;
        }
    }

    /// Starts a keeper without waiting for it.
    pub(super) fn spawn_keeper(&mut self, attempt: u32) {
        self.keeping.starting = true;
        let (shared, commands) = (self.shared.clone(), self.handle.commands.clone());
        let (dir, created, provider) =
            (self.dir.clone(), self.state.created().clone(), self.provider.clone());
        let allowance = self.first_allowance();
        tokio::spawn(async move {
            let launch = async {
                shared.ensure_worktree(&created).await?;
                crate::fault::point("tree-made");
                shared.snapshot_at_start(&created).await;
                let Order { document, lent_until } =
                    shared.launch_order(&created, provider.as_ref(), attempt, &dir, allowance).await?;
                keeper::spawn(&shared.program, &document).await?;
                Ok(Up { lent_until })
            };
            let result = launch.await;
            let _ = commands.send(Command::KeeperUp { attempt, result }).await;
        });
    }

    pub(super) async fn keeper_up(&mut self, attempt: u32, result: Result<Up, keeper::NotStarted>) {
        if attempt != self.state.attempt() {
            return;
        }
        self.keeping.starting = false;
        match result {
            Ok(Up { lent_until }) => {
                if let Some(until) = lent_until {
                    let context = self.shared.context();
                    self.decided(Input::Lent { until }, &context).await;
                }
                self.connect().await
            }
            // The keeper of an earlier try is just giving up.
            Err(not_started) if not_started.stage == "lock" && attempt < LOCK_TRIES => {
                tokio::time::sleep(RETRY_FIRST * attempt).await;
                let context = self.shared.context();
                self.decided(Input::Request(Request::StartAgain, By::ostler()), &context).await;
            }
            Err(keeper::NotStarted { stage, message, cures }) => {
                self.deny_start(&stage, &message).await;
                self.exited(ExitFacts {
                    how: How::NeverStarted { stage, message, cures },
                    oom: false,
                    memory: None,
                    leftovers: Vec::new(),
                    asked: None,
                    shut_down: false,
                    wish: None,
                    rung: None,
                    cures: Vec::new(),
                })
                .await
            }
        }
    }

    /// Asks the lock whether the keeper lives.
    async fn find_keeper(&mut self) {
        match KeeperLock::try_take(&self.dir) {
            Ok(Some(lock)) => self.keeper_is_gone(lock).await,
            Ok(None) => self.connect().await,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.directory_is_gone().await,
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the keeper's lock cannot be asked");
                self.keeping.retry_later();
            }
        }
    }

    async fn connect(&mut self) {
        let epoch = self.shared.epoch.current();
        match Link::open(&self.dir, epoch, crate::VERSION).await {
            Ok(Opened { link, state, keeper_version }) => {
                self.keeping.retry = None;
                self.keeping.sent_input_no = state.last_input_no;
                self.keeping.link = Some(link);
                self.handle.attached.store(true, Ordering::Release);
                let _ = self.handle.keeper_version.set(keeper_version);
                self.handle.linked.store(true, Ordering::Release);
                self.be_watched_over();
                self.keeper_state(state).await;
                self.send_outbox().await;
                if self.share.is_some() || self.keeping.spent().is_some() {
                    self.send_allowance().await;
                }
                self.repeat_effects().await;
            }
            Err(LinkError::HigherEpoch(seen)) => {
                if let Err(error) = self.shared.raise_epoch(seen).await {
                    tracing::warn!(session = %self.id, %error, "the epoch cannot be raised");
                }
                self.keeping.retry_later();
            }
            Err(error) => {
                tracing::debug!(session = %self.id, %error, "the keeper does not answer yet");
                self.keeping.retry_later();
            }
        }
    }

    pub(super) async fn retry_keeper(&mut self) {
        if self.keeping.force_at.is_some_and(|at| at <= Instant::now()) {
            self.force().await;
        }
        let is_due = self.keeping.retry.is_some_and(|(at, _)| at <= Instant::now());
        if is_due && !self.keeping.starting {
            if self.keeping.link.is_some() {
                // An input was refused for now.
                self.keeping.retry = None;
                self.send_outbox().await;
            } else {
                self.find_keeper().await;
            }
        }
    }

    pub(super) async fn framed(&mut self, frame: Result<Option<FromKeeper>, LinkError>) {
        match frame {
            Ok(Some(FromKeeper::State(state) | FromKeeper::Hello { state, .. })) => {
                self.keeper_state(state).await
            }
            Ok(Some(FromKeeper::Refused { reason, last_input_no, message, .. })) => {
                tracing::debug!(session = %self.id, ?reason, message, "the keeper refused");
                if matches!(reason, RefusedReason::Gap | RefusedReason::DiskFull | RefusedReason::Backlog) {
                    self.keeping.sent_input_no = last_input_no;
                    self.keeping.retry_later();
                }
            }
            Ok(Some(FromKeeper::Unknown)) => {}
            Ok(None) | Err(_) => {
                self.lose_link();
                self.find_keeper().await;
            }
        }
    }

    pub(super) fn lose_link(&mut self) {
        self.keeping.link = None;
        self.forget_who_waits();
        self.handle.attached.store(false, Ordering::Release);
        self.handle.linked.store(false, Ordering::Release);
    }

    async fn keeper_state(&mut self, state: KeeperState) {
        let exited = state.phase == ostler_tape::frame::Phase::Exited;
        let intake = match state.intake {
            ostler_tape::frame::Intake::Open => session::Intake::Open,
            ostler_tape::frame::Intake::Throttled => session::Intake::Throttled,
            ostler_tape::frame::Intake::DiskFull => session::Intake::DiskFull,
            ostler_tape::frame::Intake::TapeLimit => session::Intake::TapeLimit,
        };
        self.handle.gone.store(state.gone, Ordering::Release);
        *self.handle.frozen.lock().unwrap_or_else(PoisonError::into_inner) = state.frozen;
        if state.gone && self.keeping.force_at.is_some() {
            self.keeping.force_at = Some(Instant::now() + FORCE_AFTER_GONE);
        }
        self.keeping.state = Some(state);
        self.look_whether_heeded();
        if exited {
            if !self.take_all().await {
                self.lose_link();
                return self.keeping.retry_later();
            }
            if let Ok(Some(record)) = ExitRecord::read(&self.dir) {
                self.exited(facts(record)).await;
            }
            return;
        }
        let context = self.shared.moment();
        self.decided(Input::Intake(intake), &context).await;
    }

    /// Takes in the rest of a tape that nobody writes any more. False when it could not be recorded: then it is tried
    /// again later, and whoever asks something meanwhile is answered.
    async fn take_all(&mut self) -> bool {
        while self.not_before.is_none() && self.take_batch().await {
            self.settle().await;
        }
        self.not_before.is_none()
    }

    /// The lock is ours: the keeper is gone, or never was.
    async fn keeper_is_gone(&mut self, lock: KeeperLock) {
        self.lose_link();
        self.keeping.retry = None;
        let untouched = self.intake.offset() == 0;
        if !self.take_all().await {
            return self.keeping.retry_later();
        }
        match ExitRecord::read(&self.dir) {
            Ok(Some(record)) => {
                self.exited(facts(record)).await;
                drop(lock);
            }
            Ok(None) | Err(_)
                if untouched && self.intake.offset() == 0 && self.state.phase() == Phase::Starting =>
            {
                drop(lock);
                self.never_spawned().await;
            }
            Ok(None) | Err(_) => self.lost(lock).await,
        }
    }

    /// Somebody removed the session's directory: its keeper ends with it, and what is left to say is said here.
    async fn directory_is_gone(&mut self) {
        if let Err(error) = keeper::make_dir(&self.dir) {
            tracing::warn!(session = %self.id, %error, "the session's directory cannot be made");
            return self.keeping.retry_later();
        }
        match KeeperLock::try_take(&self.dir) {
            Ok(Some(lock)) if self.intake.offset() == 0 && self.state.phase() == Phase::Starting => {
                drop(lock);
                self.never_spawned().await;
            }
            Ok(Some(lock)) => self.lost(lock).await,
            Ok(None) | Err(_) => self.keeping.retry_later(),
        }
    }

    /// A keeper was to be started and none ever wrote a word. The next attempt's number keeps a late one out.
    async fn never_spawned(&mut self) {
        let context = self.shared.context();
        self.decided(Input::Request(Request::StartAgain, By::ostler()), &context).await;
    }

    /// The keeper left no exit record: writes it in its place, ends what outlived it, and says what is known.
    async fn lost(&mut self, lock: KeeperLock) {
        let (id, groups) = (self.id, self.shared.cgroups.all_of(&self.id));
        let leftovers = tokio::task::spawn_blocking(move || census::end_leftovers(&id, &groups))
            .await
            .unwrap_or_default();
        let reason = self.loss();
        let record = ExitRecord {
            how: ostler_tape::How::Lost { reason: reason.clone() },
            asked: None,
            rung: None,
            oom: false,
            memory: None,
            leftovers: leftovers
                .iter()
                .map(|left| ProcessName { pid: left.pid, name: left.name.clone() })
                .collect(),
            tape_end: self.intake.offset(),
            untaped_bytes: 0,
            last_input_no: self.taped_input_no,
            time_us: self.shared.clock.now().wall.micros(),
            written_by: WrittenBy::Daemon,
        };
        // Before the lock is let go: a late keeper that gets it finds the record and gives up.
        if let Err(error) = ExitFile::prepare(&self.dir).and_then(|file| file.write(&record)) {
            tracing::warn!(session = %self.id, %error, "the exit record cannot be written");
        }
        self.exited(ExitFacts {
            how: How::Lost { reason },
            oom: false,
            memory: None,
            leftovers,
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        })
        .await;
        drop(lock);
    }

    fn loss(&self) -> String {
        let now = self.shared.clock.now();
        if self.state.boot().is_some_and(|boot| *boot != now.boot) {
            "the machine restarted while it ran".to_owned()
        } else {
            "its keeper ended without a word, and the agent with it (killed, or out of memory)".to_owned()
        }
    }

    async fn exited(&mut self, mut exit: ExitFacts) {
        // Behind its end nothing is recorded: what its agent had asked for is done, or refused, before.
        if !self.has_been_served() {
            self.lose_link();
            return self.keeping.retry_later();
        }
        if self.state.is_refused() {
            let config = &self.state.created().config;
            exit.cures = self.shared.cures_of_a_refused_key(&config.provider, config.auth_profile.as_ref());
        }
        if exit.is_out_of_memory() {
            exit.cures.extend(cure_of_a_memory_limit(&self.shared, self.handle.campaign, &exit).await);
        }
        let is_work_over = self.shared.is_work_over(&self.state).await;
        let context = ostler_domain::session::Context { is_work_over, ..self.shared.context() };
        self.decided(Input::Exited(exit), &context).await;
    }
}

/// Where the campaign cannot be asked for its name, its id means the same.
async fn cure_of_a_memory_limit(shared: &Shared, campaign: CampaignId, exit: &ExitFacts) -> Option<Hint> {
    let row = shared.store.campaign(campaign).await.ok().flatten();
    let name = row.map_or_else(|| campaign.to_string(), |row| row.campaign.name.to_string());
    exit.memory.as_ref()?.cure(&name)
}

/// The exit record in the core's words.
fn facts(record: ExitRecord) -> ExitFacts {
    let how = match record.how {
        ostler_tape::How::Exited { code } => How::Exited { code },
        ostler_tape::How::Signaled { signal, .. } => How::Signaled { signal },
        ostler_tape::How::NeverStarted { stage, message, hint, .. } => {
            let message = if hint.is_empty() { message } else { format!("{message}; {hint}") };
            How::NeverStarted { stage, message, cures: Vec::new() }
        }
        ostler_tape::How::Lost { reason } => How::Lost { reason },
    };
    let shut_down = record.asked.as_ref().is_some_and(|asked| asked.by == BY_SIGNAL);
    let (asked, wish) = match record.asked {
        Some(asked) if is_the_keeper_s_own(&asked) => (Some(format!("{}: {}", asked.by, asked.rule)), None),
        Some(asked) => (None, rule_of(&asked.rule).map(|rule| StopRequested { rule, by: By(asked.by) })),
        None => (None, None),
    };
    ExitFacts {
        how,
        oom: record.oom,
        memory: record.memory.map(Box::new),
        leftovers: record
            .leftovers
            .into_iter()
            .map(|process| Leftover { pid: process.pid, name: process.name })
            .collect(),
        asked,
        shut_down,
        wish,
        rung: record.rung,
        cures: Vec::new(),
    }
}

fn rule_of(word: &str) -> Option<StopRule> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// Who asked, where a signal told the keeper itself to end.
const BY_SIGNAL: &str = "signal";

fn is_the_keeper_s_own(asked: &AskedStop) -> bool {
    matches!(asked.by.as_str(), "keeper" | BY_SIGNAL)
}
