//! What waits for the writer. Whoever hands in a tape's commit does not wake it: it sleeps until enough has gathered,
//! and only somebody who waits for an answer ends that sleep.
//!
//! Who waits is not kept waiting for others: what is pressing is committed with the earlier commits of its own session
//! only, and the rest goes on gathering until its time has come.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ostler_domain::{
    SessionId,
    limits::{GATHER, GATHER_EVENTS},
};

use super::{Job, Waiting, Work};
use crate::commit::Urgency;

#[derive(Default)]
pub(crate) struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    jobs: VecDeque<Job>,
    events: usize,
    /// Jobs in the queue that somebody waits for, and those among them that want the connection for themselves.
    pressing: usize,
    exclusive: usize,
    closed: bool,
    /// The writer has nothing to do and sleeps until there is.
    idle: bool,
}

/// What the writer does next.
pub(super) enum Next {
    /// Commits for one transaction, then work that wants the connection for itself.
    Jobs(Vec<Waiting>, Option<Work>),
    /// Nothing came for as long as the writer was ready to wait.
    Quiet,
    /// Everything is done and nothing will come.
    Closed,
}

impl Queue {
    /// Hands in a job; false when nobody takes any more.
    pub(crate) fn push(&self, job: Job) -> bool {
        let mut inside = self.lock();
        if inside.closed {
            return false;
        }
        let was_due = inside.is_due();
        inside.add(job);
        let wakes = inside.idle || (!was_due && inside.is_due());
        inside.idle = false;
        drop(inside);
        if wakes {
            self.changed.notify_one();
        }
        true
    }

    /// Takes no more jobs. What is in the queue is still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Takes no more jobs and forgets those it has: there is nobody to do them.
    pub(super) fn abandon(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        let forgotten = std::mem::take(&mut inside.jobs);
        drop(inside);
        drop(forgotten);
    }

    /// Waits for what belongs into one transaction: the first commit waits a moment for others, unless somebody
    /// waits for one of them.
    pub(super) fn next(&self, patience: Option<Duration>) -> Next {
        let mut inside = self.lock();
        let quiet_at = patience.map(|patience| Instant::now() + patience);
        while inside.jobs.is_empty() {
            if inside.closed {
                return Next::Closed;
            }
            inside.idle = true;
            let Some(left) = quiet_at.map(|at| at.saturating_duration_since(Instant::now())) else {
                inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if left.is_zero() {
                inside.idle = false;
                return Next::Quiet;
            }
            (inside, _) = self.changed.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner);
        }
        inside.idle = false;
        let deadline = inside.gathered_by();
        while !inside.is_due() && !inside.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (inside, _) = self.changed.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner);
        }
        inside.take()
    }

    /// Jobs that wait.
    pub(crate) fn depth(&self) -> usize {
        self.lock().jobs.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn add(&mut self, job: Job) {
        self.events += job.event_count();
        self.pressing += usize::from(job.is_pressing());
        self.exclusive += usize::from(matches!(job, Job::Exclusive(_)));
        self.jobs.push_back(job);
    }

    fn is_due(&self) -> bool {
        self.pressing > 0 || self.events >= GATHER_EVENTS
    }

    /// When the oldest commit has waited long enough.
    fn gathered_by(&self) -> Instant {
        match self.jobs.front() {
            Some(Job::Commit { arrived, .. }) => *arrived + GATHER,
            Some(Job::Exclusive(_)) | None => Instant::now(),
        }
    }

    fn take(&mut self) -> Next {
        let others_may_wait = self.exclusive == 0 && Instant::now() < self.gathered_by();
        let due =
            if self.pressing > 0 && others_may_wait { self.put_pressing_first() } else { self.jobs.len() };
        let mut batch = Vec::with_capacity(due);
        let mut events = 0;
        while batch.len() < due
            && events < GATHER_EVENTS
            && let Some(job) = self.jobs.pop_front()
        {
            let count = job.event_count();
            self.events -= count;
            events += count;
            self.pressing -= usize::from(job.is_pressing());
            match job {
                Job::Exclusive(work) => {
                    self.exclusive -= 1;
                    return Next::Jobs(batch, Some(work));
                }
                Job::Commit { encoded, answer, arrived, _room } => {
                    batch.push(Waiting { encoded: *encoded, answer, arrived, _room })
                }
            }
        }
        Next::Jobs(batch, None)
    }

    /// Moves what is pressing to the front, with everything of the same sessions, whose order stays. Returns how many
    /// jobs that are.
    fn put_pressing_first(&mut self) -> usize {
        let sessions: HashSet<SessionId> =
            self.jobs.iter().filter(|job| job.is_pressing()).filter_map(Job::session).collect();
        let goes = |job: &Job| job.is_pressing() || job.session().is_some_and(|id| sessions.contains(&id));
        let (first, rest): (Vec<Job>, Vec<Job>) = self.jobs.drain(..).partition(goes);
        let count = first.len();
        self.jobs.extend(first);
        self.jobs.extend(rest);
        count
    }
}

impl Job {
    fn session(&self) -> Option<SessionId> {
        match self {
            Job::Commit { encoded, .. } => encoded.session.as_ref().map(|session| session.id),
            Job::Exclusive(_) => None,
        }
    }

    fn event_count(&self) -> usize {
        match self {
            Job::Commit { encoded, .. } => encoded.event_count(),
            Job::Exclusive(_) => 0,
        }
    }

    fn is_pressing(&self) -> bool {
        match self {
            Job::Commit { encoded, .. } => encoded.urgency == Urgency::Control,
            Job::Exclusive(_) => true,
        }
    }
}
