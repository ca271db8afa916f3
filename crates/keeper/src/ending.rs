//! After the agent: empty its pipes, clear what it left running, write the exit record, say goodbye.

use std::time::{Duration, Instant};

use ostler_domain::limits::{DRAIN_AFTER_EXIT, SCAN_TIME};
use ostler_domain::session::OutOfMemory;
use ostler_tape::{ExitRecord, How, KeeperNote, WrittenBy, socket};

use crate::clock::wall_us;
use crate::keeper::{Keeper, Stage, StillBorn};
use crate::log::log;

/// How long a tree whose pipes are closed is given to be empty.
const SETTLE: Duration = Duration::from_millis(20);
/// How long the end waits for killed processes to go. Only the kernel can keep one longer.
const CLEAR_LIMIT: Duration = Duration::from_secs(5);
/// How long it waits for the last words of a warden, which looks through all of the campaign first, and of a gateway.
const WORDS_LIMIT: Duration = SCAN_TIME.saturating_mul(2);
/// How long a keeper with nothing left to do stays for its daemon to read the news.
const LINGER: Duration = Duration::from_secs(2);

impl Keeper {
    pub(crate) fn agent_ended(&mut self, how: How, now: Instant) {
        if !self.has_agent() {
            return;
        }
        let how = self.never_started.take().unwrap_or(how);
        log!("the agent ended: {how:?}");
        self.feed.abandon();
        self.stage = Stage::Draining { how, until: now + DRAIN_AFTER_EXIT };
    }

    /// Takes the steps that have become possible.
    pub(crate) fn advance_ending(&mut self, now: Instant) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Abandoned) {
            Stage::Draining { how, until } if !self.intake.is_open() && until > now => {
                // A process closes its pipes a moment before it is gone: that one is no leftover.
                let until = until.min(now + SETTLE);
                if self.tree.is_empty() { self.clear(how, now) } else { Stage::Draining { how, until } }
            }
            Stage::Draining { how, until } if now >= until => self.clear(how, now),
            Stage::Clearing { how, leftovers, since } if now >= self.cleared_by(since) => {
                self.kill_again_at = None;
                self.finish(how, leftovers);
                Stage::Ended { until: now + LINGER }
            }
            stage => stage,
        };
    }

    fn clear(&mut self, how: How, now: Instant) -> Stage {
        let leftovers = self.tree.names();
        if self.intake.close() {
            self.recorder.note(&KeeperNote::DrainCut {});
        }
        self.intake.flush(&mut self.recorder);
        if !leftovers.is_empty() {
            self.recorder.note(&KeeperNote::Leftovers { processes: leftovers.clone() });
        }
        self.kill_tree(now);
        self.gateway.close(&self.poller);
        self.close_calls();
        Stage::Clearing { how, leftovers, since: now }
    }

    /// At once if there was nothing to kill and nobody to be heard.
    pub(crate) fn cleared_by(&self, since: Instant) -> Instant {
        if self.kill_again_at.is_some() {
            since + CLEAR_LIMIT
        } else if self.somebody_has_a_word_left() {
            since + WORDS_LIMIT
        } else {
            since
        }
    }

    /// Whoever halts everything waits for this, and not for what wardens find afterwards.
    pub(crate) fn is_agent_gone(&self) -> bool {
        match &self.stage {
            // Nobody waits for it, and looking takes the kernel's time.
            Stage::Starting | Stage::Running | Stage::Draining { .. } if self.ladder.is_none() => false,
            Stage::Starting | Stage::Running | Stage::Draining { .. } => self.tree.has_ended(),
            Stage::Clearing { .. } => self.kill_again_at.is_none(),
            Stage::Ended { .. } => true,
            Stage::Abandoned => false,
        }
    }

    /// Nobody is left to call, and whoever found the token later finds nobody.
    fn close_calls(&mut self) {
        self.calls.flush(&mut self.recorder, self.ctl.has_daemon(), Instant::now());
        self.calls.close();
        if self.document.token.is_some() {
            let _ = std::fs::remove_file(self.document.dir.join(socket::SESSION_SOCKET));
        }
    }

    /// When all of a sandbox is gone, its warden says what was tampered with, and its gateway what went through it.
    fn somebody_has_a_word_left(&self) -> bool {
        let warden = self.document.confinement.is_some() && self.channel.is_some();
        warden || self.gateway.is_running()
    }

    fn finish(&mut self, how: How, leftovers: Vec<ostler_tape::ProcessName>) {
        self.intake.flush(&mut self.recorder);
        let untaped_bytes = self.intake.held_bytes();
        if untaped_bytes > 0 {
            log!("{untaped_bytes} bytes of the agent's output are not on the tape");
        }
        if let Err(error) = self.recorder.seal() {
            log!("the tape could not be synced: {error}");
        }
        let memory = self.out_of_memory();
        let record = ExitRecord {
            how,
            asked: self.ladder.as_ref().map(|ladder| ladder.asked().clone()),
            rung: self.ladder.as_ref().and_then(|ladder| ladder.taken()).map(|rung| rung.to_string()),
            oom: memory.is_some(),
            memory,
            leftovers,
            untaped_bytes,
            tape_end: self.recorder.end(),
            last_input_no: self.recorder.last_input_no(),
            time_us: wall_us(),
            written_by: WrittenBy::Keeper,
        };
        if let Err(error) = self.exit_file.write(&record) {
            log!("the exit record could not be written: {error}");
        }
        // Init ends when its channel does.
        self.channel = None;
    }

    /// What was seen of its memory, if something of the tree was ended for that.
    fn out_of_memory(&self) -> Option<OutOfMemory> {
        let by_kernel = || {
            let kills = self.tree.oom_kills();
            let used = self.tree.memory_peak_bytes();
            let seen = self.memory.as_ref().map(|watch| watch.seen(used, kills));
            (kills > 0).then(|| seen.unwrap_or(OutOfMemory { oom_kills: kills, ..OutOfMemory::default() }))
        };
        self.took_too_much.clone().or_else(by_kernel)
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        match &self.stage {
            Stage::Ended { until } => now >= *until || !self.ctl.has_daemon(),
            Stage::Abandoned => true,
            Stage::Starting | Stage::Running | Stage::Draining { .. } | Stage::Clearing { .. } => false,
        }
    }
}

impl StillBorn {
    /// Writes the exit record of an agent that never was.
    pub(crate) fn bury(self) {
        log!("the agent could not be started: {}", self.error);
        let record = ExitRecord {
            how: How::NeverStarted {
                stage: "keeper".to_owned(),
                errno: self.error.raw_os_error(),
                message: self.error.to_string(),
                hint: String::new(),
            },
            asked: None,
            rung: None,
            oom: false,
            memory: None,
            leftovers: Vec::new(),
            untaped_bytes: 0,
            tape_end: self.recorder.end(),
            last_input_no: self.recorder.last_input_no(),
            time_us: wall_us(),
            written_by: WrittenBy::Keeper,
        };
        if let Err(error) = self.exit_file.write(&record) {
            log!("the exit record could not be written: {error}");
        }
    }
}
