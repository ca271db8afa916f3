//! The keeper itself: one session, one loop.
//!
//! ```text
//! Starting ── program runs ──▶ Running ── agent ended ──▶ Draining ── pipes empty ──▶ Clearing ── tree empty ──▶ Ended
//! ```
//! Each turn of the loop does what is due, tells the daemon what changed, and waits for the next event or the
//! earliest deadline. `agent` hears how the agent starts and ends, `verbs` what the daemon asks for;
//! `stopping` goes down the ladder, `ending` the way from Draining to Ended.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use ostler_domain::session::OutOfMemory;
use ostler_tape::frame::{KeeperState, Phase};
use ostler_tape::{AskedStop, ExitFile, How, KeeperLock, KeeperNote, LaunchDocument, ProcessName};
use rustix::event::epoll::EventFlags;
use signal_hook::consts::{SIGCHLD, SIGTERM};

use crate::calls::Calls;
use crate::cgroup::{Cgroup, Limited};
use crate::clock::earliest;
use crate::ctl::Ctl;
use crate::feed::Feed;
use crate::gateway::Gateway;
use crate::intake::Intake;
use crate::ladder::Ladder;
use crate::link::{Due, Link};
use crate::log::log;
use crate::memory::{HeldBy, MemoryWatch};
use crate::poller::{Poller, Token};
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::signals;
use crate::spawn::{ExecStatus, Spawned, spawn, spawn_daemon};
use crate::startup::Ready;
use crate::stopping::KILL_ROUND;
use crate::tree::Tree;

/// How often the keeper looks whether its session directory is still there. Also its slowest heartbeat.
const DIR_CHECK: Duration = Duration::from_secs(5);
/// Rounds of a keeper that has nothing else left to do. Only the kernel can keep a killed process longer.
const KILL_ROUNDS_LAST: usize = 500;

pub(crate) struct Keeper {
    pub(crate) document: LaunchDocument,
    pub(crate) recorder: Recorder,
    pub(crate) exit_file: ExitFile,
    pub(crate) intake: Intake,
    pub(crate) feed: Feed,
    feed_watched_for_writing: bool,
    pub(crate) ctl: Ctl,
    pub(crate) poller: Poller,
    pub(crate) tree: Tree,
    pub(crate) stage: Stage,
    pub(crate) ladder: Option<Ladder>,
    /// When to look again for survivors of a kill.
    pub(crate) kill_again_at: Option<Instant>,
    /// Absent where nothing is limited.
    pub(crate) memory: Option<MemoryWatch>,
    /// By our own sum, and was ended for it.
    pub(crate) took_too_much: Option<OutOfMemory>,
    pub(crate) link: Link,
    pub(crate) channel: Option<OwnedFd>,
    pub(crate) gateway: Gateway,
    pub(crate) calls: Calls,
    /// The warden, or init.
    pub(crate) init: Child,
    pub(crate) exec_status: ExecStatus,
    pub(crate) never_started: Option<How>,
    pub(crate) daemons: Vec<Child>,
    /// What the last daemon had, for the next one; empty, and it has the keeper's own. Never on the tape or in the log.
    pub(crate) daemons_environment: Vec<u8>,
    sigterm: UnixStream,
    sigchld: UnixStream,
    dir_identity: (u64, u64),
    dir_check_at: Instant,
    tell_at: Option<Instant>,
    /// Last, so that it is released when nothing else of the session is held.
    _lock: KeeperLock,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Starting,
    Running,
    Draining {
        how: How,
        until: Instant,
    },
    Clearing {
        how: How,
        leftovers: Vec<ProcessName>,
        since: Instant,
    },
    /// The exit record is written.
    Ended {
        until: Instant,
    },
    /// The session directory is gone, and with it everything a keeper is for.
    Abandoned,
}

/// An agent that could not be started at all, and the file to say so in.
pub(crate) struct StillBorn {
    pub(crate) error: io::Error,
    pub(crate) exit_file: ExitFile,
    pub(crate) recorder: Recorder,
    pub(crate) _lock: KeeperLock,
}

impl Keeper {
    /// Starts the agent.
    pub(crate) fn start(ready: Ready) -> Result<Keeper, Box<StillBorn>> {
        let Ready { document, lock, exit_file, mut recorder, listener, call_listener } = ready;
        let (cgroup, failed) = Cgroup::create(document.cgroup.as_deref(), &document.old_cgroups);
        for error in failed {
            recorder.note(&KeeperNote::NoCgroup { reason: error.to_string() });
        }
        let limits = document.confinement.as_ref().map(|confinement| confinement.limits);
        let memory_bytes = limits.and_then(|limits| limits.memory_bytes);
        let mut memory_held_by = HeldBy::Keeper;
        if let (Some(cgroup), Some(limits)) = (&cgroup, &limits) {
            let failed = cgroup.limit(limits);
            if !failed.iter().any(|(what, ..)| *what == Limited::Memory) {
                memory_held_by = HeldBy::Kernel;
            }
            for (_, file, error) in failed {
                recorder.note(&KeeperNote::NoLimit { file, reason: error.to_string() });
            }
        }
        let began = spawn(&document, cgroup.as_ref()).and_then(|spawned| {
            let poller = Poller::new()?;
            let ctl = Ctl::new(listener, &poller)?;
            poller.add(&spawned.channel, Token::CHANNEL, EventFlags::IN)?;
            if let Some(pipe) = spawned.exec_status.pipe() {
                poller.add(pipe, Token::EXEC_STATUS, EventFlags::IN)?;
            }
            poller.add(&spawned.stdin, Token::STDIN, EventFlags::empty())?;
            let sigterm = watched_signal(SIGTERM, Token::SIGTERM, &poller)?;
            let sigchld = watched_signal(SIGCHLD, Token::SIGCHLD, &poller)?;
            let dir_identity = identity(&document)?;
            // While the sandbox is being made, and before anything can have ended in it.
            exit_file.secure(&document.dir)?;
            Ok((spawned, poller, ctl, sigterm, sigchld, dir_identity))
        });
        let (spawned, poller, ctl, sigterm, sigchld, dir_identity) = match began {
            Ok(began) => began,
            Err(error) => {
                let _ = cgroup.map(|cgroup| cgroup.remove());
                return Err(Box::new(StillBorn { error, exit_file, recorder, _lock: lock }));
            }
        };
        let Spawned { init, channel, exec_status, stdin, stdout, stderr } = spawned;
        let now = Instant::now();
        let redactor = Redactor::of(&document);
        let intake =
            Intake::new(stdout, stderr, redactor, document.intake, document.tape_bytes, document.piece_bytes);
        Ok(Keeper {
            intake,
            feed: Feed::new(stdin),
            feed_watched_for_writing: false,
            ctl,
            poller,
            tree: Tree::new(init.id(), document.confinement.is_some(), cgroup),
            stage: Stage::Starting,
            ladder: None,
            kill_again_at: None,
            memory: memory_bytes.map(|bytes| MemoryWatch::new(bytes, memory_held_by, now)),
            took_too_much: None,
            link: Link::new(document.orphan_grace_ms.map(Duration::from_millis), now),
            channel: Some(channel),
            gateway: Gateway::new(document.gateway.clone(), Redactor::of(&document)),
            calls: Calls::new(call_listener.zip(document.token.as_deref()), Redactor::of(&document), now),
            init,
            exec_status,
            never_started: None,
            daemons: Vec::new(),
            daemons_environment: Vec::new(),
            sigterm,
            sigchld,
            dir_identity,
            dir_check_at: now + DIR_CHECK,
            tell_at: None,
            document,
            recorder,
            exit_file,
            _lock: lock,
        })
    }

    /// Keeps the session until it has ended.
    pub(crate) fn run(mut self) -> io::Result<()> {
        loop {
            let now = Instant::now();
            self.do_what_is_due(now);
            self.settle(now)?;
            self.tell_at = self.ctl.tell(&self.state(), &self.poller, now);
            if self.is_over(now) {
                break;
            }
            for token in self.poller.wait(self.next_deadline())? {
                self.handle(token)?;
            }
        }
        // Nothing is left for it to reap; and should something be, it must not outlive us.
        let _ = self.init.kill();
        let _ = self.init.wait();
        self.gateway.kill();
        if let Err(error) = self.tree.remove_cgroup() {
            log!("the cgroup could not be removed: {error}");
        }
        Ok(())
    }

    fn handle(&mut self, token: Token) -> io::Result<()> {
        let now = Instant::now();
        match token {
            Token::LISTENER => self.ctl.accept(&self.poller)?,
            Token::SIGTERM => {
                signals::drain(&mut self.sigterm);
                let asked = AskedStop { by: "signal".to_owned(), rule: "keeper SIGTERM".to_owned() };
                self.stop(asked, self.document.ladder.clone(), now);
            }
            Token::SIGCHLD => {
                signals::drain(&mut self.sigchld);
                self.reap(now);
            }
            Token::CHANNEL => self.hear_init(now),
            Token::EXEC_STATUS => self.hear_launch(),
            Token::STDIN => self.write_input(),
            Token::GATEWAY_LISTENER => self.gateway.start(&self.poller, now),
            Token::GATEWAY => self.gateway.hear(&self.poller, &mut self.recorder, now),
            Token::STDOUT | Token::STDERR => self.intake.read(token, &mut self.recorder, now),
            Token::CALL_LISTENER => self.calls.accept(),
            Token(caller) if caller >= Token::FIRST_CALL => {
                self.calls.hear(caller, &mut self.recorder, self.ctl.has_daemon(), now)
            }
            Token(connection) => self.hear_connection(connection, now),
        }
        Ok(())
    }

    fn do_what_is_due(&mut self, now: Instant) {
        let (intake, gateway) = (&mut self.intake, &mut self.gateway);
        self.recorder.retry(now, |recorder| {
            intake.flush(recorder);
            gateway.flush(recorder);
        });
        if now >= self.dir_check_at || self.recorder.is_in_trouble() {
            self.dir_check_at = now + DIR_CHECK;
            self.check_directory();
        }
        if self.has_agent()
            && let Some(action) = self.ladder.as_mut().and_then(|ladder| ladder.step(now))
        {
            self.take_rung(action, now);
        }
        if self.kill_again_at.is_some_and(|at| now >= at) {
            self.kill_tree(now);
        }
        self.calls.flush(&mut self.recorder, self.ctl.has_daemon(), now);
        self.check_memory(now);
        match self.link.due(now, jitter) {
            Some(Due::StartDaemon) if !matches!(self.stage, Stage::Ended { .. }) => self.start_daemon(),
            Some(Due::Orphaned) => {
                let asked = AskedStop { by: "keeper".to_owned(), rule: "orphan_grace".to_owned() };
                self.stop(asked, self.document.ladder.clone(), now);
            }
            _ => {}
        }
        self.advance_ending(now);
    }

    /// Watches what is of interest after all that happened.
    fn settle(&mut self, now: Instant) -> io::Result<()> {
        // Before the program runs there is nothing to read, and its start is to be noted first.
        if !matches!(self.stage, Stage::Starting) {
            self.intake.settle(&self.poller, &mut self.recorder, now)?;
        }
        let may_tape = !self.intake.is_blocked(&self.recorder);
        self.gateway.settle(&self.poller, may_tape, now)?;
        // The agent's start is to be noted before its first call.
        self.calls.settle(&self.poller, may_tape && !matches!(self.stage, Stage::Starting), now)?;
        let wants = self.feed.wants_to_write();
        if let Some(pipe) = self.feed.pipe()
            && wants != self.feed_watched_for_writing
        {
            let interest = if wants { EventFlags::OUT } else { EventFlags::empty() };
            self.poller.modify(pipe, Token::STDIN, interest)?;
            self.feed_watched_for_writing = wants;
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        earliest([
            Some(self.dir_check_at),
            self.tell_at,
            self.kill_again_at,
            self.recorder.retry_at(),
            self.intake.wake_at(),
            self.ladder.as_ref().filter(|_| self.has_agent()).and_then(Ladder::wake_at),
            self.link.wake_at(),
            self.gateway.wake_at(),
            self.calls.wake_at(),
            self.memory.as_ref().filter(|_| self.has_agent()).map(MemoryWatch::wake_at),
            match &self.stage {
                Stage::Draining { until, .. } | Stage::Ended { until } => Some(*until),
                Stage::Clearing { since, .. } => Some(self.cleared_by(*since)),
                Stage::Starting | Stage::Running | Stage::Abandoned => None,
            },
        ])
    }

    /// Whether the agent is there to be talked to and stopped.
    pub(crate) fn has_agent(&self) -> bool {
        matches!(self.stage, Stage::Starting | Stage::Running)
    }

    pub(crate) fn state(&self) -> KeeperState {
        let phase = match &self.stage {
            Stage::Starting => Phase::Starting,
            Stage::Running if self.ladder.is_none() => Phase::Running,
            Stage::Running | Stage::Draining { .. } | Stage::Clearing { .. } | Stage::Abandoned => {
                Phase::Stopping
            }
            Stage::Ended { .. } => Phase::Exited,
        };
        KeeperState {
            keeper_pid: std::process::id(),
            tape_end: self.recorder.end(),
            last_input_no: self.recorder.last_input_no(),
            phase,
            agent: self.tree.agent(),
            frozen: self.tree.frozen(),
            intake: self.intake.state(&self.recorder),
            gone: self.is_agent_gone(),
            spent: self.gateway.spent().cloned(),
        }
    }

    fn start_daemon(&mut self) {
        match spawn_daemon(&self.document.daemon_json, &self.daemons_environment) {
            Ok(Some(daemon)) => {
                log!("no daemon: started one, pid {}", daemon.id());
                self.daemons.push(daemon);
            }
            Ok(None) => log!("no daemon: asked for one at its socket"),
            Err(error) => log!("no daemon, and none could be started: {error}"),
        }
    }

    fn check_directory(&mut self) {
        match identity(&self.document) {
            Ok(found) if found == self.dir_identity => return,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log!("the session directory could not be looked at: {error}");
                return;
            }
            Ok(_) | Err(_) => {}
        }
        log!("the session directory is gone: ending the agent");
        for _ in 0..KILL_ROUNDS_LAST {
            if self.tree.kill_round() {
                break;
            }
            std::thread::sleep(KILL_ROUND);
        }
        self.stage = Stage::Abandoned;
    }
}

fn identity(document: &LaunchDocument) -> io::Result<(u64, u64)> {
    std::fs::metadata(&document.dir).map(|found| (found.dev(), found.ino()))
}

fn watched_signal(signal: i32, token: Token, poller: &Poller) -> io::Result<UnixStream> {
    let pipe = signals::pipe(signal)?;
    poller.add(&pipe, token, EventFlags::IN)?;
    Ok(pipe)
}

/// A random number between 0 and 1.
pub(crate) fn jitter() -> f64 {
    let mut random = [0; 4];
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
