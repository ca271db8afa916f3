//! The gateway, from the keeper's side: the port inside, the process that serves it while somebody uses it, and what it
//! tells of each connection, which goes onto the tape unread.
//!
//! The keeper only looks whether somebody waits at the port; it never accepts. So nobody who connects while no gateway
//! runs, or while one ends, is lost: they wait for the next one.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ostler_domain::gateway::{Allowance, GatewayLine, GatewayOrder, Spent};
use ostler_domain::limits::{GATEWAY_RECORD_BYTES, GATEWAY_RESPAWN};
use ostler_tape::{Record, Stream};
use rustix::event::epoll::EventFlags;

use crate::clock::wall_us;
use crate::log::log;
use crate::poller::{Poller, Token};
use crate::recorder::Recorder;
use crate::redact::Redactor;

#[derive(Debug)]
pub(crate) struct Gateway {
    /// Without one, the port is held and never served.
    order: Option<GatewayOrder>,
    redactor: Redactor,
    /// The port inside. As long as it is held, nobody else can have it.
    listener: Option<OwnedFd>,
    listener_is_watched: bool,
    process: Option<Process>,
    /// One that ends as soon as it starts must not be started without end.
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// It reads its order from it, writes its records to it, and ends when it does.
    stream: UnixStream,
    is_watched: bool,
    /// Of a line that is not whole yet.
    text: Vec<u8>,
    started: Instant,
}

impl Gateway {
    pub(crate) fn new(order: Option<GatewayOrder>, redactor: Redactor) -> Gateway {
        Gateway {
            order,
            redactor,
            listener: None,
            listener_is_watched: false,
            process: None,
            not_before: None,
        }
    }

    pub(crate) fn hold(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// What calls to the model have taken, and by which allowance they are held; none without a model.
    pub(crate) fn spent(&self) -> Option<&Spent> {
        self.order.as_ref()?.model.as_ref().map(|model| &model.spent)
    }

    /// Watches the port exactly while nobody serves it, and the gateway while the tape takes what it says.
    pub(crate) fn settle(&mut self, poller: &Poller, may_tape: bool, now: Instant) -> io::Result<()> {
        self.not_before.take_if(|at| now >= *at);
        let wanted = self.order.is_some() && self.process.is_none() && self.not_before.is_none();
        if let Some(listener) = self.listener.as_ref().filter(|_| self.listener_is_watched != wanted) {
            if wanted {
                poller.add(listener, Token::GATEWAY_LISTENER, EventFlags::IN)?;
            } else {
                poller.remove(listener)?;
            }
            self.listener_is_watched = wanted;
        }
        if let Some(process) = self.process.as_mut().filter(|process| process.is_watched != may_tape) {
            if may_tape {
                poller.add(&process.stream, Token::GATEWAY, EventFlags::IN)?;
            } else {
                poller.remove(&process.stream)?;
            }
            process.is_watched = may_tape;
        }
        Ok(())
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.not_before
    }

    /// Somebody waits at the port.
    pub(crate) fn start(&mut self, poller: &Poller, now: Instant) {
        let (Some(order), Some(listener), None) = (&self.order, &self.listener, &self.process) else {
            return;
        };
        match spawn(order, listener) {
            Ok((child, stream)) => {
                log!("somebody inside connects: started a gateway, pid {}", child.id());
                let text = Vec::new();
                self.process = Some(Process { child, stream, is_watched: false, text, started: now });
            }
            Err(error) => {
                log!("no gateway could be started: {error}");
                self.not_before = Some(now + GATEWAY_RESPAWN);
            }
        }
        if self.listener_is_watched && poller.remove(listener).is_ok() {
            self.listener_is_watched = false;
        }
    }

    /// More is allowed to the session, or less: told to the gateway there is, and to every later one.
    pub(crate) fn allow(&mut self, allowance: Allowance) {
        let Some(model) = self.order.as_mut().and_then(|order| order.model.as_mut()) else { return };
        // A later gateway has them too, whatever is allowed by then.
        model.prices.extend(allowance.prices.iter().map(|(name, price)| (name.clone(), *price)));
        model.allowance = allowance;
        if let Some(process) = &mut self.process {
            let said = serde_json::to_vec(&model.allowance).map_err(io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                process.stream.write_all(&line)
            });
            if let Err(error) = said {
                log!("the gateway does not hear what is allowed: {error}");
            }
        } else {
            model.spent.heeds = model.allowance.number;
        }
    }

    /// Reads what the gateway says, and tapes it.
    pub(crate) fn hear(&mut self, poller: &Poller, recorder: &mut Recorder, now: Instant) {
        let Some(process) = &mut self.process else { return };
        let mut bytes = [0; 4 * GATEWAY_RECORD_BYTES];
        let read = process.stream.read(&mut bytes);
        process.text.extend_from_slice(&bytes[..*read.as_ref().unwrap_or(&0)]);
        let is_whole = self.flush(recorder);
        match read {
            Ok(1..) if is_whole => {}
            Ok(1..) => {
                log!("the gateway says what is no record");
                self.ended(poller, now);
            }
            Ok(0) => self.ended(poller, now),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                log!("the gateway could not be heard: {error}");
                self.ended(poller, now);
            }
        }
    }

    /// Tapes what is held and can be; each line is one record. False if what is held is none.
    pub(crate) fn flush(&mut self, recorder: &mut Recorder) -> bool {
        let Some(process) = &mut self.process else { return true };
        while let Some(end) = process.text.iter().position(|&byte| byte == b'\n') {
            let Some((kind, record)) = GatewayLine::split(&process.text[..end]) else { return false };
            let stream = match kind {
                GatewayLine::Net => Stream::Net,
                GatewayLine::Wire => Stream::Wire,
                GatewayLine::Spent => {
                    let model = self.order.as_mut().and_then(|order| order.model.as_mut());
                    if let (Some(model), Ok(spent)) = (model, serde_json::from_slice(record)) {
                        model.spent = spent;
                    }
                    process.text.drain(..=end);
                    continue;
                }
            };
            let mut line = record.to_vec();
            for secret in self.redactor.find(&line) {
                line[secret].fill(b'*');
            }
            if recorder.append(&[Record::line(stream, wall_us(), &line)]) == 0 {
                return true;
            }
            process.text.drain(..=end);
        }
        process.text.len() <= GATEWAY_RECORD_BYTES
    }

    /// The session is over: nobody may connect, and what is open is cut and counted.
    pub(crate) fn close(&mut self, poller: &Poller) {
        if let Some(listener) = self.listener.take()
            && std::mem::take(&mut self.listener_is_watched)
        {
            // The gateway may have it too, so closing ours would not end the watch.
            let _ = poller.remove(&listener);
        }
        if let Some(process) = &self.process {
            let _ = process.stream.shutdown(Shutdown::Write);
        }
    }

    /// At the very end.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }

    fn ended(&mut self, poller: &Poller, now: Instant) {
        if let Some(process) = &self.process {
            if process.is_watched {
                let _ = poller.remove(&process.stream);
            }
            let at = process.started + GATEWAY_RESPAWN;
            self.not_before = (at > now).then_some(at);
        }
        // It has closed its end, so it is ending; what does not is ended.
        self.kill();
        // The next one begins with what is allowed by now.
        if let Some(model) = self.order.as_mut().and_then(|order| order.model.as_mut()) {
            model.spent.heeds = model.allowance.number;
        }
    }
}

fn spawn(order: &GatewayOrder, listener: &OwnedFd) -> io::Result<(Child, UnixStream)> {
    let (mut stream, theirs) = UnixStream::pair()?;
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    let mut child = Command::new("/proc/self/exe")
        .arg0("ostler")
        .args(["internal", "gateway"])
        .env_clear()
        // One thread for each connection, and nearly nothing to allocate: they share.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::from(listener.try_clone()?))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    // It fits into the socket unless it is very long, and then its reader is there.
    let ordered = stream.write_all(&line).and_then(|()| stream.set_nonblocking(true));
    if let Err(error) = ordered {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok((child, stream))
}
