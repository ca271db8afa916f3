//! The agent's start and end, as init and launch tell of them, or the warden of a sandbox.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

use ostler_sandbox::channel::{self, ExecReport, InitReport, Received};
use ostler_tape::frame::{AgentProcess, Rung, RungAction};
use ostler_tape::{AskedStop, How, KeeperNote};

use crate::keeper::{Keeper, Stage};
use crate::log::log;

impl Keeper {
    pub(crate) fn hear_init(&mut self, now: Instant) {
        while let Some(channel) = &self.channel {
            match channel::receive_report(channel) {
                Ok(Received::NotYet) => return,
                Ok(Received::Message(report)) => self.obey_init(report, now),
                Ok(Received::Listener(listener)) => self.gateway.hold(listener),
                // An agent has none, and is not watched.
                Ok(Received::Terminal(_) | Received::Observer(_)) => {}
                Ok(Received::Closed) => {
                    self.channel = None;
                    self.init_is_gone(now);
                }
                Err(error) => {
                    log!("init could not be heard: {error}");
                    self.channel = None;
                    self.init_is_gone(now);
                }
            }
        }
    }

    fn obey_init(&mut self, report: InitReport, now: Instant) {
        match report {
            InitReport::Housed { init_pid } => self.tree.set_pid_one(init_pid),
            // The channel has put the agent's number into it.
            InitReport::StartedInside { .. } => {}
            InitReport::Breached { why } => {
                let asked = AskedStop { by: "warden".to_owned(), rule: why };
                self.stop(asked, vec![Rung { action: RungAction::Kill, wait_ms: 0 }], now);
            }
            InitReport::Tampered { names } => self.recorder.note(&KeeperNote::Tampered { names }),
            InitReport::Started { pid, start_time } => {
                self.tree.set_agent(AgentProcess { pid, start_time });
                self.note_start();
            }
            InitReport::NotStarted { errno, message } => {
                let how = How::NeverStarted { stage: "init".to_owned(), errno, message, hint: String::new() };
                self.agent_ended(how, now);
            }
            InitReport::Ended { status } => {
                // Launch's last words may still be unread.
                self.hear_launch();
                self.agent_ended(how_it_ended(status), now);
            }
        }
    }

    pub(crate) fn hear_launch(&mut self) {
        let Some(reports) = self.exec_status.read() else { return };
        for report in reports {
            match report {
                ExecReport::NoCgroup { reason } => {
                    self.tree.abandon_cgroup();
                    self.watch_memory();
                    self.recorder.note(&KeeperNote::NoCgroup { reason });
                }
                ExecReport::Failed { stage, errno, message, hint } => {
                    self.never_started = Some(How::NeverStarted { stage, errno, message, hint });
                }
            }
        }
        self.note_start();
    }

    /// The agent runs once launch has fallen silent without a complaint; init may be heard later than that.
    fn note_start(&mut self) {
        let silent = self.exec_status.pipe().is_none() && self.never_started.is_none();
        if let (Stage::Starting, Some(agent)) = (&self.stage, self.tree.agent().filter(|_| silent)) {
            self.stage = Stage::Running;
            self.recorder.note(&KeeperNote::Started {
                attempt: self.document.attempt,
                keeper_pid: std::process::id(),
                keeper_version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: agent.pid,
                start_time: agent.start_time,
                holds_calls: self.document.gateway.as_ref().is_some_and(|gateway| gateway.model.is_some()),
            });
            // It was to be frozen before it was there to be.
            if self.tree.frozen().is_some()
                && let Err(error) = self.tree.freeze()
            {
                log!("the agent could not be frozen: {error}");
            }
        }
    }

    pub(crate) fn reap(&mut self, now: Instant) {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if let Ok(Some(_)) = self.init.try_wait() {
            // What it said before it ended comes first.
            self.hear_init(now);
        }
    }

    fn init_is_gone(&mut self, now: Instant) {
        let status = self.init.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        self.agent_ended(How::Lost { reason: format!("init ended before the agent: {status}") }, now);
    }
}

fn how_it_ended(status: i32) -> How {
    let status = ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited { code },
        (None, Some(signal)) => How::Signaled { signal, core: status.core_dumped() },
        (None, None) => How::Lost { reason: status.to_string() },
    }
}
