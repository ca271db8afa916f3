//! Starting, adopting what lives, and leaving.

use std::sync::Arc;

use ostler_domain::{
    Event, Now, Reason, Refusal,
    event::{DaemonStarted, DaemonStopped},
    limits::ACTOR_INBOX,
};
use ostler_store::{Commit, Paths, Store, Urgency};
use tokio::{
    sync::{Semaphore, oneshot},
    time::{Duration, timeout},
};

use crate::{
    Change, Clock, Engine, Options, Program, VERSION, halt, promises, session::Command, shared::Shared,
};

/// Sessions looked for at once when the daemon starts.
const ADOPTED_AT_ONCE: usize = 32;
/// How long a leaving daemon waits for its actors and, when asked to, for its agents to end.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// How often a daemon that started on a full disk looks whether there is room again.
const RECORD_START_AGAIN: Duration = Duration::from_secs(2);

/// The epoch of this daemon, and whether it is durable. A full disk must not keep a daemon from starting: without
/// one nobody could see or kill the agents that filled it.
async fn begin_epoch(store: &Store) -> Result<(u64, bool), Refusal> {
    match unless_full(store.next_epoch().await.map_err(Refusal::from))? {
        Some(epoch) => Ok((epoch, true)),
        None => Ok((store.epoch_to_come().await?, false)),
    }
}

/// Nothing, where there was no room for it.
fn unless_full<T>(done: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(refusal) if refusal.reason == Reason::DiskFull => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

impl Engine {
    /// Opens the record and begins. The caller holds the directory's lock.
    pub async fn start(options: Options, clock: Clock, program: Program) -> Result<Engine, Refusal> {
        let opened = Store::open(&Paths::below(&options.state_dir), &ostler_store::Options::default())?;
        for finding in &opened.findings {
            tracing::warn!(part = finding.part, text = finding.text, "found while opening the record");
        }
        let store = opened.store;
        let (epoch, is_recorded) = begin_epoch(&store).await?;
        let held = (halt::take_up(&store, &options.halt_json, &clock).await?, store.drain().await?);
        let shared = Arc::new(Shared::new(store, epoch, clock, program, options, held));
        crate::accounts::keep(&shared);
        crate::admission::keep(&shared);
        let engine = Engine { shared };
        let now = engine.shared.clock.now();
        let is_recorded = is_recorded && unless_full(engine.record_start(epoch, &now).await)?.is_some();
        if !is_recorded {
            tracing::error!("the disk is full: the start of this daemon is not recorded yet");
            tokio::spawn(engine.clone().record_start_later(epoch, now));
        }
        Ok(engine)
    }

    async fn record_start(&self, epoch: u64, now: &Now) -> Result<(), Refusal> {
        let started = DaemonStarted {
            version: VERSION.to_owned(),
            epoch,
            pid: std::process::id(),
            boot: now.boot.clone(),
        };
        self.record_node(now.wall, Event::DaemonStarted(started)).await
    }

    /// Until there is room, the epoch is known to this daemon and the keepers alone. The next daemon may take the same
    /// one, which keepers accept; there is never more than one daemon to mistake for another.
    async fn record_start_later(self, epoch: u64, now: Now) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(RECORD_START_AGAIN) => {}
                () = self.shared.shutdown.cancelled() => return,
            }
            let epoch = epoch.max(self.shared.epoch.current());
            if self.shared.store.raise_epoch(epoch).await.is_ok()
                && self.record_start(epoch, &now).await.is_ok()
            {
                tracing::info!("there is room again: the start of this daemon is recorded");
                return;
            }
        }
    }

    /// Records something that belongs to no session.
    pub(crate) async fn record_node(&self, at: ostler_domain::Time, event: Event) -> Result<(), Refusal> {
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(at, event)],
            session: None,
            request: None,
        };
        self.shared.store.commit(commit).await?;
        Ok(())
    }

    /// Finds every session that has not ended. Returns when each has an actor; they go on by themselves.
    pub async fn adopt(&self) -> Result<u64, Refusal> {
        self.end_followed("Nobody follows it any more.").await?;
        let unended = self.shared.store.unended_sessions().await;
        // A record that cannot be read now keeps nobody from starting later.
        let unended = unended.inspect_err(|_| self.shared.line.complete())?;
        let room = Arc::new(Semaphore::new(ADOPTED_AT_ONCE));
        let mut adopting = tokio::task::JoinSet::new();
        for id in unended {
            let (shared, room) = (self.shared.clone(), room.clone());
            adopting.spawn(async move {
                let _permit = room.acquire_owned().await;
                if let Err(refusal) = shared.wake(id).await {
                    tracing::error!(session = %id, %refusal, "the session cannot be adopted");
                }
            });
        }
        adopting.join_all().await;
        // Nobody is let in from the line yet: who waits there has no keeper to be found.
        let count = self.shared.line.running();
        self.shared.accounts.complete();
        self.shared.line.complete();
        self.shared.sweep();
        promises::keep_all(&self.shared).await?;
        self.adopt_missions().await?;
        Ok(count)
    }

    /// Leaves: agents go on under their keepers, which are told not to start another daemon.
    pub async fn leave(&self, stop_sessions: bool, change: Change) {
        if stop_sessions {
            let request = || ostler_domain::session::Request::Stop(ostler_domain::session::StopRule::Stop);
            self.tell_all(request, &change).await;
            let _ = timeout(STOP_WITHIN, self.until_no_sessions()).await;
        }
        // Who waits in the line has no process that could go on, nor has one of which only the last words are missing.
        let left = match self.shared.line.is_complete() {
            true => self.shared.at_large(),
            false => self.shared.sessions.count().known,
        };
        let now = self.shared.clock.now().wall;
        if let Err(refusal) = self
            .record_node(
                now,
                Event::DaemonStopped(DaemonStopped { by: change.by, sessions_left_running: left }),
            )
            .await
        {
            tracing::warn!(%refusal, "the stop cannot be recorded");
        }
        self.shared.shutdown.cancel();
        self.shared.lookout.dismiss();
        let mut leaving = Vec::with_capacity(ACTOR_INBOX);
        for (_, handle) in self.shared.sessions.all() {
            let (left, has_left) = oneshot::channel();
            if handle.commands.try_send(Command::Leave(left)).is_ok() {
                leaving.push(has_left);
            }
        }
        let all = async {
            for has_left in leaving {
                let _ = has_left.await;
            }
        };
        let _ = timeout(LEAVE_WITHIN, all).await;
    }

    async fn until_no_sessions(&self) {
        let mut published = self.shared.store.published();
        while self.shared.sessions.count().known > 0 {
            // Actors leave the registry right after their last commit.
            let _ = timeout(Duration::from_millis(50), published.changed()).await;
        }
    }
}
