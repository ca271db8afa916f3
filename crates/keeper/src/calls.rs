//! The session socket: where the agent calls, and only the agent. Calls go onto the tape unread, and who called is told
//! so; what a daemon answers is passed back.
//!
//! A connection's first line is the session's token, every further one is a call. Limits are kept by not reading.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use ostler_domain::call::{CallLine, Reply};
use ostler_domain::limits::{
    CALL_BYTES, CALL_CONNECTIONS, CALL_TOKEN_TIME, CALL_WAITING_BYTES, CALLS_BURST, CALLS_PER_SECOND,
    CALLS_WAITING,
};
use ostler_domain::{Reason, Refusal};
use ostler_tape::launch::IntakeLimits;
use ostler_tape::{KeeperNote, Record, Stream};
use rustix::event::epoll::EventFlags;
use sha2::{Digest, Sha256};

use crate::bucket::Bucket;
use crate::clock::wall_us;
use crate::log::log;
use crate::poller::{Poller, Token};
use crate::recorder::Recorder;
use crate::redact::Redactor;

/// One read.
const READ_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Calls {
    /// Absent where there is no socket, and when the session is over.
    door: Option<Door>,
    redactor: Redactor,
    connections: BTreeMap<u64, Connection>,
    next_id: u64,
    bucket: Bucket,
}

#[derive(Debug)]
struct Door {
    listener: UnixListener,
    /// The token itself is nobody's to compare with.
    token: [u8; 32],
    is_watched: bool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    opened: Instant,
    /// Whether it has shown the token.
    is_known: bool,
    /// Read, and not on the tape.
    text: Vec<u8>,
    /// To be written.
    waiting: Vec<u8>,
    /// Calls without an answer, by their places on the tape.
    unanswered: Vec<u64>,
    /// Nothing more is heard; what waits is written, and then it is closed.
    is_ending: bool,
    interest: Option<EventFlags>,
}

/// What became of the next line.
enum Took {
    Nothing,
    /// Not now: the tape takes nothing, or the rate is used up.
    Later,
    Line,
}

impl Calls {
    pub(crate) fn new(door: Option<(UnixListener, &str)>, redactor: Redactor, now: Instant) -> Calls {
        let door = door.map(|(listener, token)| Door {
            listener,
            token: Sha256::digest(token.as_bytes()).into(),
            is_watched: false,
        });
        let limits = IntakeLimits { burst_bytes: CALLS_BURST, bytes_per_second: CALLS_PER_SECOND };
        Calls {
            door,
            redactor,
            connections: BTreeMap::new(),
            next_id: Token::FIRST_CALL,
            bucket: Bucket::new(limits, now),
        }
    }

    /// Watches exactly what may be read or written now.
    pub(crate) fn settle(&mut self, poller: &Poller, may_tape: bool, now: Instant) -> io::Result<()> {
        let may_read = may_tape && self.bucket.allowance(now) > 0;
        self.connections.retain(|_, connection| connection.silent_until().is_none_or(|until| now < until));
        if let Some(door) = &mut self.door {
            let wanted = may_read && self.connections.len() < CALL_CONNECTIONS;
            if wanted != door.is_watched {
                if wanted {
                    poller.add(&door.listener, Token::CALL_LISTENER, EventFlags::IN)?;
                } else {
                    poller.remove(&door.listener)?;
                }
                door.is_watched = wanted;
            }
        }
        for (id, connection) in &mut self.connections {
            connection.watch(poller, Token(*id), may_read)?;
        }
        Ok(())
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.door.as_ref()?;
        let silent = self.connections.values().filter_map(Connection::silent_until).min();
        [self.bucket.wake_at(), silent].into_iter().flatten().min()
    }

    pub(crate) fn accept(&mut self) {
        let Some(door) = &self.door else { return };
        match door.listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = stream.set_nonblocking(true) {
                    return log!("a call could not be taken: {error}");
                }
                self.connections.insert(self.next_id, Connection::new(stream));
                self.next_id += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => log!("a call could not be accepted: {error}"),
        }
    }

    /// Reads what came on a connection, tapes it, and writes what waits.
    pub(crate) fn hear(&mut self, id: u64, recorder: &mut Recorder, has_daemon: bool, now: Instant) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.read();
        }
        self.flush(recorder, has_daemon, now);
    }

    /// Tapes what is held and can be.
    pub(crate) fn flush(&mut self, recorder: &mut Recorder, has_daemon: bool, now: Instant) {
        let Some(door) = &self.door else { return };
        for connection in self.connections.values_mut() {
            while self.bucket.allowance(now) > 0 {
                match connection.take_line(&door.token, &self.redactor, recorder, has_daemon) {
                    Took::Line => self.bucket.take(1),
                    Took::Nothing | Took::Later => break,
                }
            }
            connection.write();
        }
        self.connections.retain(|_, connection| !connection.is_over());
    }

    /// A daemon's answer to a call. Whoever has gone meanwhile does not get it.
    pub(crate) fn answer(&mut self, call: u64, line: &[u8]) {
        let called = self.connections.values_mut().find(|connection| connection.unanswered.contains(&call));
        if let Some(connection) = called {
            connection.unanswered.retain(|unanswered| *unanswered != call);
            connection.waiting.extend_from_slice(line);
            connection.waiting.push(b'\n');
            connection.write();
        }
    }

    /// The session is over: the token is worth nothing any more.
    pub(crate) fn close(&mut self) {
        self.door = None;
        self.connections.clear();
    }
}

impl Connection {
    fn new(stream: UnixStream) -> Connection {
        Connection {
            stream,
            opened: Instant::now(),
            is_known: false,
            text: Vec::new(),
            waiting: Vec::new(),
            unanswered: Vec::new(),
            is_ending: false,
            interest: None,
        }
    }

    fn watch(&mut self, poller: &Poller, token: Token, may_read: bool) -> io::Result<()> {
        // A whole line that is held waits for the tape, not for more.
        let wants_more = may_read && !self.is_ending && !self.text.contains(&b'\n');
        let mut interest = if wants_more { EventFlags::IN } else { EventFlags::empty() };
        if !self.waiting.is_empty() {
            interest |= EventFlags::OUT;
        }
        let wanted = (!interest.is_empty()).then_some(interest);
        match (self.interest, wanted) {
            (old, new) if old == new => {}
            (None, Some(new)) => poller.add(&self.stream, token, new)?,
            (Some(_), Some(new)) => poller.modify(&self.stream, token, new)?,
            // Only so is a hang-up not heard of again and again.
            (Some(_), None) => poller.remove(&self.stream)?,
            (None, None) => {}
        }
        self.interest = wanted;
        Ok(())
    }

    fn read(&mut self) {
        if self.is_ending {
            return;
        }
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_ending = true,
            Ok(count) => self.text.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.is_ending = true,
        }
    }

    fn write(&mut self) {
        let mut written = 0;
        while written < self.waiting.len() {
            match self.stream.write(&self.waiting[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.is_ending = true;
                    written = self.waiting.len();
                }
            }
        }
        self.waiting.drain(..written);
        if self.waiting.len() > CALL_WAITING_BYTES {
            log!("somebody calls and does not listen: the connection is closed");
            self.waiting.clear();
            self.is_ending = true;
        }
    }

    /// How long it may stay without having shown the token. A line that waits for us is its word.
    fn silent_until(&self) -> Option<Instant> {
        let is_silent = !self.is_known && !self.is_ending && !self.text.contains(&b'\n');
        is_silent.then(|| self.opened + CALL_TOKEN_TIME)
    }

    fn is_over(&self) -> bool {
        self.is_ending && self.waiting.is_empty() && !self.text.contains(&b'\n')
    }

    fn take_line(
        &mut self,
        token: &[u8; 32],
        redactor: &Redactor,
        recorder: &mut Recorder,
        has_daemon: bool,
    ) -> Took {
        let Some(end) = self.text.iter().position(|&byte| byte == b'\n') else {
            if self.text.len() > CALL_BYTES {
                self.refuse(too_long(), recorder);
                return Took::Line;
            }
            return Took::Nothing;
        };
        if end > CALL_BYTES {
            self.refuse(too_long(), recorder);
            return Took::Line;
        }
        if !self.is_known {
            let shown = Sha256::digest(self.text[..end].trim_ascii_end());
            if !equal(&shown.into(), token) {
                self.refuse(not_yours(), recorder);
                return Took::Line;
            }
            self.is_known = true;
            self.text.drain(..=end);
            return Took::Line;
        }
        let mut line = self.text[..end].to_vec();
        for secret in redactor.find(&line) {
            line[secret].fill(b'*');
        }
        let place = recorder.end();
        if recorder.append(&[Record::line(Stream::Call, wall_us(), &line)]) == 0 {
            return Took::Later;
        }
        self.text.drain(..=end);
        if self.unanswered.len() >= CALLS_WAITING {
            self.unanswered.remove(0);
        }
        self.unanswered.push(place);
        self.tell(place, Reply::Taped { daemon: has_daemon });
        Took::Line
    }

    fn tell(&mut self, call: u64, reply: Reply) {
        match serde_json::to_vec(&CallLine { call, reply }) {
            Ok(line) => {
                self.waiting.extend_from_slice(&line);
                self.waiting.push(b'\n');
            }
            Err(error) => log!("a call could not be answered: {error}"),
        }
    }

    /// Says why, and hears no more.
    fn refuse(&mut self, refusal: Refusal, recorder: &mut Recorder) {
        recorder.note(&KeeperNote::CallRefused { reason: refusal.message.clone() });
        self.tell(0, Reply::Refused(refusal));
        self.text.clear();
        self.is_ending = true;
    }
}

fn not_yours() -> Refusal {
    Refusal::new(Reason::PermissionDenied, "the session's token was not shown")
        .because("the first line on the session socket is OSTLER_TOKEN")
}

fn too_long() -> Refusal {
    Refusal::new(Reason::TooLarge, format!("a call has at most {CALL_BYTES} bytes"))
}

/// Takes as long for any two.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_equal_only_to_themselves() {
        let hash = |text: &str| -> [u8; 32] { Sha256::digest(text).into() };
        assert!(equal(&hash("a"), &hash("a")));
        assert!(!equal(&hash("a"), &hash("b")));
    }
}
