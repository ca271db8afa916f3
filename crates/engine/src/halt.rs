//! The emergency stop: every agent killed or frozen, and nothing started until it is released.

use std::{fs, io, path::Path, time::Duration};

use ostler_domain::{
    Event, Reason, Refusal, SessionId,
    event::{HaltReleased, Halted},
    home::HaltFile,
    session::{Phase, Request, View},
};
use ostler_store::{Commit, Halt, Store, Urgency};
use tokio::{task::JoinSet, time::Instant};

use crate::{Change, Clock, Engine};

/// How long a halt waits to see its agents dead. A keeper that hangs is killed within this time.
const DEAD_WITHIN: Duration = Duration::from_millis(1_500);

/// The halt that a daemon begins with: the one that is recorded, or one that was asked for while no daemon answered. It holds
/// also where it cannot be recorded, and is asked for until it is.
pub(crate) async fn take_up(store: &Store, asked: &Path, clock: &Clock) -> Result<Option<Halt>, Refusal> {
    let recorded = store.halt().await?;
    let text = match fs::read(asked) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(recorded),
        // Somebody asked for something, and nothing is started on the chance that it was not this.
        text => text.unwrap_or_default(),
    };
    let HaltFile { freeze, by, why, since } = HaltFile::read(&text, clock.now().wall);
    let halt = Halt { freeze, by, why, since };
    if recorded.as_ref() != Some(&halt) {
        let halted = Halted { freeze, by: halt.by.clone(), why: halt.why.clone() };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(since, Event::Halted(halted))],
            session: None,
            request: None,
        };
        if let Err(error) = store.commit(commit).await {
            tracing::error!(%error, "the halt holds, and is not recorded yet");
            return Ok(Some(halt));
        }
    }
    if let Err(error) = forget(asked) {
        tracing::warn!(%error, "the halt is recorded, and what asked for it is still there");
    }
    Ok(Some(halt))
}

/// What asked for a halt is not there any more.
fn forget(asked: &Path) -> io::Result<()> {
    match fs::remove_file(asked) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Engine {
    /// The halt in force, if there is one.
    pub fn halted(&self) -> Option<Halt> {
        self.shared.halt.borrow().clone()
    }

    /// Kills or freezes every agent. The halt is durable first, so that it holds whatever happens next.
    /// Returns how many sessions it reached.
    pub async fn halt(&self, freeze: bool, why: &str, change: Change) -> Result<(Halt, u64), Refusal> {
        let fingerprint = format!("halt {freeze} {why}");
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some()
            && let Some(halt) = self.halted()
        {
            return Ok((halt, 0));
        }
        let now = self.shared.clock.now().wall;
        let halted = Halted { freeze, by: change.by.clone(), why: why.to_owned() };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::Halted(halted))],
            session: None,
            request: change.done(&fingerprint, ""),
        };
        let recorded = self.shared.store.commit(commit).await;
        let halt = Halt { freeze, by: change.by.clone(), why: why.to_owned(), since: now };
        self.shared.halt.send_replace(Some(halt.clone()));
        let told = self.tell_all(|| Request::Halt { freeze }, &change).await;
        if let Err(error) = recorded {
            // An emergency stop does not wait for a disk.
            return Err(Refusal::from(error)
                .because("agents were told to stop all the same; the halt holds until this daemon ends"));
        }
        if let Err(error) = forget(&self.shared.options.halt_json) {
            tracing::warn!(%error, "an earlier halt is still asked for");
        }
        let reached = if freeze { told.len() as u64 } else { self.until_dead(&told).await };
        Ok((halt, reached))
    }

    /// Waits a moment for the agents that were told to die, and says how many have.
    async fn until_dead(&self, told: &[View]) -> u64 {
        let dying: Vec<SessionId> =
            told.iter().filter(|view| view.phase == Phase::Stopping).map(|view| view.id).collect();
        let alive = || dying.iter().filter(|id| self.shared.sessions.has_agent(id)).count();
        let deadline = Instant::now() + DEAD_WITHIN;
        // What missions run for themselves hears of the halt by itself.
        while alive() + self.shared.at_work.count() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (dying.len() - alive()) as u64
    }

    /// Lets everything go on: frozen agents, sessions that waited to start, restarts that were due.
    pub async fn release_halt(&self, change: Change) -> Result<u64, Refusal> {
        // First: one that is recorded can be released again, one that is asked for would come back with the next daemon.
        let asked = &self.shared.options.halt_json;
        forget(asked).map_err(|error| {
            Refusal::new(Reason::StoreReadOnly, format!("{} cannot be removed", asked.display()))
                .because(error.to_string())
        })?;
        if self.halted().is_none() || change.done_before(&self.shared.store, "release_halt").await?.is_some()
        {
            return Ok(0);
        }
        let now = self.shared.clock.now().wall;
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::HaltReleased(HaltReleased { by: change.by.clone() }))],
            session: None,
            request: change.done("release_halt", ""),
        };
        self.shared.store.commit(commit).await?;
        self.shared.halt.send_replace(None);
        let told = self.tell_all(|| Request::ReleaseHalt, &change).await;
        Ok(told.iter().filter(|view| view.phase != Phase::Stopping).count() as u64)
    }

    /// A daemon that has just started does not know all its sessions yet, and whoever stops everything means them too.
    async fn wake_all(&self) {
        let unended = self.shared.store.unended_sessions().await;
        let unended = unended.inspect_err(|error| tracing::warn!(%error, "only known sessions are reached"));
        let mut waking = JoinSet::new();
        for id in unended.unwrap_or_default() {
            let shared = self.shared.clone();
            waking.spawn(async move { shared.wake(id).await });
        }
        waking.join_all().await;
    }

    /// Asks every session at once, waits for all of them, and gives the rows of those that heard it.
    pub(crate) async fn tell_all(&self, request: impl Fn() -> Request, change: &Change) -> Vec<View> {
        self.wake_all().await;
        let mut asked = JoinSet::new();
        for (_, handle) in self.shared.sessions.all() {
            let (request, by) = (request(), change.by.clone());
            asked.spawn(async move { handle.request(request, by, None).await });
        }
        asked.join_all().await.into_iter().flatten().collect()
    }
}

/// What a halted daemon answers to those who would start something.
pub(crate) trait HaltRefusal {
    fn refusal(&self) -> Refusal;
}

impl HaltRefusal for Halt {
    fn refusal(&self) -> Refusal {
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        Refusal::new(Reason::Halted, "all agents are halted, so nothing is started")
            .because(format!("halted by {}{why}", self.by.0))
            .hint("ostler halt --release", "lets everything go on")
    }
}
