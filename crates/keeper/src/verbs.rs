//! What a daemon can ask of a keeper, verb by verb.

use std::path::PathBuf;
use std::time::Instant;

use ostler_domain::limits::FRAME_BYTES;
use ostler_sandbox::channel::send_remask;
use ostler_tape::frame::{Frame, FromKeeper, FrozenBy, PROTOCOL, RefusedReason, ToKeeper};
use ostler_tape::input::TAG_BYTES;
use ostler_tape::{AskedStop, KeeperNote};

use crate::feed::Closed;
use crate::keeper::{Keeper, jitter};
use crate::log::log;

/// A frame that was understood and not obeyed.
struct Refused {
    verb: &'static str,
    input_no: Option<u64>,
    reason: RefusedReason,
    message: String,
}

impl Keeper {
    pub(crate) fn hear_connection(&mut self, id: u64, now: Instant) {
        let heard = self.ctl.hear(id, &self.poller);
        for frame in heard.frames {
            self.obey(id, frame, now);
        }
        if heard.closed && self.ctl.close(id) {
            log!("the daemon's connection ended");
            self.link.lost(false, now, jitter());
        }
    }

    fn obey(&mut self, id: u64, frame: Frame<ToKeeper>, now: Instant) {
        let Frame { verb, body } = frame;
        let result = match verb {
            ToKeeper::Hello { protocol, epoch, daemon_version } => {
                self.hello(id, protocol, epoch, &daemon_version, body);
                Ok(())
            }
            ToKeeper::Bye {} => {
                if self.ctl.close(id) {
                    log!("the daemon said bye");
                    self.link.lost(true, now, jitter());
                }
                Ok(())
            }
            ToKeeper::Unknown => {
                log!("a frame with an unknown verb was ignored");
                Ok(())
            }
            verb if !self.ctl.is_daemon(id) => Err(not_yours(&verb)),
            ToKeeper::Input { input_no, tag } => self.input(input_no, &tag, body),
            ToKeeper::Stop { by, rule, ladder } => {
                self.stop(AskedStop { by, rule }, ladder, now);
                Ok(())
            }
            ToKeeper::Freeze { on } => self.freeze(on),
            ToKeeper::Remask { paths } => self.remask(&paths),
            ToKeeper::Answer { call } => {
                self.calls.answer(call, &body);
                Ok(())
            }
            ToKeeper::Limits { tape_bytes, allowance } => {
                if let Some(tape_bytes) = tape_bytes {
                    self.intake.raise_tape_limit(tape_bytes, &mut self.recorder);
                }
                if let Some(allowance) = allowance {
                    self.gateway.allow(allowance);
                }
                Ok(())
            }
        };
        if let Err(Refused { verb, input_no, reason, message }) = result {
            let last_input_no = self.recorder.last_input_no();
            let refused =
                FromKeeper::Refused { refused: verb.to_owned(), input_no, reason, message, last_input_no };
            self.ctl.send(id, &refused, &self.poller);
        }
    }

    fn hello(&mut self, id: u64, protocol: u32, epoch: u64, daemon_version: &str, environment: Vec<u8>) {
        let accepted = self.ctl.greet(id, epoch, self.state(), &self.poller);
        if accepted {
            self.link.connected();
            if !environment.is_empty() {
                self.daemons_environment = environment;
            }
        }
        let verdict = if accepted { "accepted" } else { "refused" };
        log!("daemon {daemon_version}, epoch {epoch}, protocol {protocol} of {PROTOCOL}: {verdict}");
    }

    /// On the tape first, then into the pipe: what an agent was told is never unrecorded.
    fn input(&mut self, input_no: u64, tag: &str, bytes: Vec<u8>) -> Result<(), Refused> {
        let refuse = |reason, message: String| {
            Err(Refused { verb: "input", input_no: Some(input_no), reason, message })
        };
        let last = self.recorder.last_input_no();
        if input_no <= last {
            return Ok(());
        }
        if input_no != last + 1 {
            return refuse(RefusedReason::Gap, format!("input {input_no} came after input {last}"));
        }
        if !self.has_agent() {
            return refuse(RefusedReason::Ended, "the agent has ended".to_owned());
        }
        if !self.feed.is_open() {
            return refuse(RefusedReason::InputClosed, "the agent's input is closed".to_owned());
        }
        if tag.len() > TAG_BYTES {
            return refuse(RefusedReason::Failed, format!("a tag has at most {TAG_BYTES} bytes"));
        }
        if !self.feed.has_room_for(bytes.len()) {
            return refuse(RefusedReason::Backlog, "the agent does not read its input".to_owned());
        }
        debug_assert!(bytes.len() <= FRAME_BYTES);
        if !self.recorder.append_input(input_no, tag, &bytes) {
            return refuse(RefusedReason::DiskFull, "the tape cannot be written".to_owned());
        }
        self.feed.push(bytes);
        self.write_input();
        Ok(())
    }

    /// Gives the agent what its pipe takes.
    pub(crate) fn write_input(&mut self) {
        if let Some(closed) = self.feed.write() {
            let reason = match closed {
                Closed::ByUs => "closed by the stop ladder",
                Closed::ByAgent => "closed by the agent",
            };
            self.recorder.note(&KeeperNote::InputClosed { reason: reason.to_owned() });
        }
    }

    /// Passed on to the warden. One that is busy hears nothing, and looks for itself in a few seconds.
    fn remask(&mut self, paths: &[PathBuf]) -> Result<(), Refused> {
        let warden = self.channel.as_ref().filter(|_| self.document.confinement.is_some());
        let sent = match warden {
            Some(channel) => send_remask(channel, paths).map_err(|error| error.to_string()),
            None => Err("there is no sandbox".to_owned()),
        };
        sent.map_err(|message| Refused {
            verb: "remask",
            input_no: None,
            reason: RefusedReason::Failed,
            message,
        })
    }

    fn freeze(&mut self, on: bool) -> Result<(), Refused> {
        let refuse =
            |reason, message: String| Err(Refused { verb: "freeze", input_no: None, reason, message });
        if !on {
            self.thaw();
            return Ok(());
        }
        if !self.has_agent() {
            return refuse(RefusedReason::Ended, "the agent has ended".to_owned());
        }
        match self.tree.freeze() {
            Ok(how) => {
                let how = match how {
                    FrozenBy::Cgroup => "cgroup",
                    FrozenBy::Signals => "signals",
                };
                self.recorder.note(&KeeperNote::Frozen { how: how.to_owned() });
                Ok(())
            }
            Err(error) => refuse(RefusedReason::Failed, error.to_string()),
        }
    }
}

fn not_yours(verb: &ToKeeper) -> Refused {
    let (verb, input_no) = match verb {
        ToKeeper::Input { input_no, .. } => ("input", Some(*input_no)),
        ToKeeper::Stop { .. } => ("stop", None),
        ToKeeper::Freeze { .. } => ("freeze", None),
        ToKeeper::Limits { .. } => ("limits", None),
        ToKeeper::Remask { .. } => ("remask", None),
        ToKeeper::Answer { .. } => ("answer", None),
        ToKeeper::Hello { .. } => ("hello", None),
        ToKeeper::Bye {} => ("bye", None),
        ToKeeper::Unknown => ("unknown", None),
    };
    let message = "say hello first, with the highest epoch".to_owned();
    Refused { verb, input_no, reason: RefusedReason::NotYours, message }
}
