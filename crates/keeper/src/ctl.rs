//! The control socket: who is connected, whose word counts, and telling it what changed.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use ostler_tape::frame::{Decoder, Frame, FrameError, FromKeeper, KeeperState, PROTOCOL, ToKeeper, encode};
use rustix::event::epoll::EventFlags;

use crate::log::log;
use crate::poller::{Poller, Token};

/// Growth of the tape is told no more often than this.
const GATHER: Duration = Duration::from_millis(2);
/// Connections at once. One is the daemon's; the others are its successors and predecessors.
const CONNECTIONS: usize = 8;
/// What may wait for a daemon that does not read; then its connection is closed.
const WAITING_BYTES: usize = 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Ctl {
    listener: UnixListener,
    connections: BTreeMap<u64, Connection>,
    next_id: u64,
    /// The highest epoch seen, and the connection that brought it.
    epoch: u64,
    daemon: Option<u64>,
    told: Option<(KeeperState, Instant)>,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    decoder: Decoder<ToKeeper>,
    waiting: Vec<u8>,
    watched_for_writing: bool,
}

/// What a look at a connection gave.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) frames: Vec<Frame<ToKeeper>>,
    pub(crate) closed: bool,
}

impl Ctl {
    pub(crate) fn new(listener: UnixListener, poller: &Poller) -> io::Result<Ctl> {
        poller.add(&listener, Token::LISTENER, EventFlags::IN)?;
        Ok(Ctl {
            listener,
            connections: BTreeMap::new(),
            next_id: Token::FIRST_CONNECTION,
            epoch: 0,
            daemon: None,
            told: None,
        })
    }

    pub(crate) fn has_daemon(&self) -> bool {
        self.daemon.is_some()
    }

    pub(crate) fn is_daemon(&self, id: u64) -> bool {
        self.daemon == Some(id)
    }

    pub(crate) fn accept(&mut self, poller: &Poller) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => {
                log!("a connection could not be accepted: {error}");
                return Ok(());
            }
        };
        if self.connections.len() >= CONNECTIONS {
            log!("a connection was closed: {CONNECTIONS} are open");
            return Ok(());
        }
        stream.set_nonblocking(true)?;
        poller.add(&stream, Token(self.next_id), EventFlags::IN)?;
        let connection =
            Connection { stream, decoder: Decoder::new(), waiting: Vec::new(), watched_for_writing: false };
        self.connections.insert(self.next_id, connection);
        self.next_id += 1;
        Ok(())
    }

    /// Writes what waits and reads what came.
    pub(crate) fn hear(&mut self, id: u64, poller: &Poller) -> Heard {
        let Some(connection) = self.connections.get_mut(&id) else { return Heard::default() };
        let mut heard = Heard { frames: Vec::new(), closed: !connection.write(id, poller) };
        heard.closed |= !connection.read(&mut heard.frames);
        heard
    }

    /// Closes a connection. True if it was the daemon's.
    pub(crate) fn close(&mut self, id: u64) -> bool {
        self.connections.remove(&id);
        let was_daemon = self.is_daemon(id);
        if was_daemon {
            self.daemon = None;
            self.told = None;
        }
        was_daemon
    }

    /// Answers a hello. The highest epoch wins; an equal one is the same daemon come back.
    pub(crate) fn greet(&mut self, id: u64, epoch: u64, state: KeeperState, poller: &Poller) -> bool {
        let accepted = epoch >= self.epoch;
        if accepted {
            self.epoch = epoch;
            if let Some(old) = self.daemon.replace(id).filter(|&old| old != id) {
                self.connections.remove(&old);
            }
            self.told = Some((state.clone(), Instant::now()));
        }
        let hello = FromKeeper::Hello {
            protocol: PROTOCOL,
            keeper_version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: self.epoch,
            accepted,
            state,
        };
        self.send(id, &hello, poller);
        accepted
    }

    pub(crate) fn send(&mut self, id: u64, verb: &FromKeeper, poller: &Poller) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match encode(verb, b"") {
            Ok(bytes) => connection.waiting.extend_from_slice(&bytes),
            Err(error) => log!("a frame could not be sent: {error}"),
        }
        if !connection.write(id, poller) {
            // Its end is heard with the next event; only the bytes must not pile up.
            connection.waiting.clear();
        }
    }

    /// Tells the daemon the state if it is news. Returns when to call again if it was told too recently.
    pub(crate) fn tell(&mut self, state: &KeeperState, poller: &Poller, now: Instant) -> Option<Instant> {
        let id = self.daemon?;
        if let Some((told, at)) = &self.told {
            let only_grew = KeeperState { tape_end: told.tape_end, ..state.clone() } == *told;
            if only_grew && told.tape_end == state.tape_end {
                return None;
            }
            // One that has not read the last state does not need another yet; the next write makes room.
            let unread = self.connections.get(&id).is_some_and(|connection| !connection.waiting.is_empty());
            if unread {
                return None;
            }
            if only_grew && now < *at + GATHER {
                return Some(*at + GATHER);
            }
        }
        self.told = Some((state.clone(), now));
        self.send(id, &FromKeeper::State(state.clone()), poller);
        None
    }
}

impl Connection {
    /// False once the connection is of no use.
    fn write(&mut self, id: u64, poller: &Poller) -> bool {
        let mut written = 0;
        let mut usable = true;
        while written < self.waiting.len() {
            match self.stream.write(&self.waiting[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    usable = false;
                    break;
                }
            }
        }
        self.waiting.drain(..written);
        usable &= self.waiting.len() <= WAITING_BYTES;
        let wants = !self.waiting.is_empty();
        if wants != self.watched_for_writing {
            let interest = if wants { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            usable &= poller.modify(&self.stream, Token(id), interest).is_ok();
            self.watched_for_writing = wants;
        }
        usable
    }

    /// Takes the whole frames that have arrived. False at the end of the stream or of its sense.
    fn read(&mut self, frames: &mut Vec<Frame<ToKeeper>>) -> bool {
        let mut buffer = vec![0; READ_BYTES];
        let open = match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.decoder.push(&buffer[..count]);
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        loop {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return open,
                Err(error @ FrameError::Header(_)) => log!("a frame was ignored: {error}"),
                Err(error @ FrameError::TooLong { .. }) => {
                    log!("a connection was closed: {error}");
                    return false;
                }
            }
        }
    }
}
