//! One call, once its upstream is connected: the request goes up, the answer comes down, each portion at once.
//!
//! Both sides are watched all the time. An agent that goes away takes the upstream's call with it, or it would go on
//! costing; an upstream that answers before it has heard everything is listened to.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    os::fd::AsFd,
    time::{SystemTime, UNIX_EPOCH},
};

use ostler_domain::{
    Time,
    gateway::CallEnd,
    limits::{GATEWAY_BUFFER_BYTES, MODEL_HEAD_BYTES},
};
use rustix::event::{PollFd, PollFlags};

use super::{
    body::Body,
    head::{self, Response},
    upstream::Connection,
};
use crate::{request::head_end, tunnel::wait};

/// The wall clock: what a server names is a time of day.
fn wall() -> Time {
    Time::default().plus(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// What is to be known of an answer while it passes.
pub(crate) trait Reader {
    /// Its head has come.
    fn head(&mut self, response: &Response);
    /// A part of its content, without the framing.
    fn content(&mut self, bytes: &[u8]);
}

/// How a call went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: CallEnd,
    pub(crate) failure: String,
    /// Whether the agent was told anything.
    pub(crate) answered: bool,
    pub(crate) to_client: u64,
    pub(crate) to_server: u64,
}

pub(crate) struct Exchange<'a> {
    client: &'a TcpStream,
    upstream: Connection,
    method: &'a str,
    /// For the upstream, and not written yet.
    up: Pending,
    asking: Body,
    /// The upstream takes no more of the request.
    deaf: bool,
    /// For the agent, and not written yet.
    down: Pending,
    answer: Answer,
}

enum Answer {
    /// What is there of its head.
    Head(Vec<u8>),
    Body(Body),
    Ended,
}

/// Bytes on their way. Holds at most one read, and a head before it.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    sent: usize,
    count: u64,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes what is taken.
    fn drain(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        while !self.is_empty() {
            match write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    self.count += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Why it is over.
struct Over(CallEnd, String);

impl<'a> Exchange<'a> {
    /// `first` was already read behind the request's head; what of it is not the request's is nobody's.
    pub(crate) fn new(
        client: &'a TcpStream,
        upstream: Connection,
        request: &'a head::Request,
        first: &[u8],
    ) -> Result<Exchange<'a>, head::Fault> {
        let mut asking = request.body.clone();
        let taken = asking.take(first, &mut |_| {}).map_err(|_| "the request's body is not in chunks")?;
        let mut up = Pending::default();
        up.put(&request.head);
        up.put(&first[..taken]);
        let (down, answer) = (Pending::default(), Answer::Head(Vec::new()));
        Ok(Exchange { client, upstream, method: &request.method, up, asking, deaf: false, down, answer })
    }

    pub(crate) fn run(mut self, stop: impl AsFd, reader: &mut dyn Reader) -> Outcome {
        let Over(end, failure) = match self.carry(stop, reader) {
            Ok(over) => over,
            // Only polling fails here.
            Err(error) => Over(CallEnd::Cut, error.to_string()),
        };
        let (to_client, to_server) = (self.down.count, self.up.count);
        Outcome { end, failure, answered: to_client > 0, to_client, to_server }
    }

    fn carry(&mut self, stop: impl AsFd, reader: &mut dyn Reader) -> io::Result<Over> {
        self.client.set_nonblocking(true)?;
        loop {
            if let Some(over) = self.move_on(reader) {
                return Ok(over);
            }
            let mut of_client = PollFlags::RDHUP;
            of_client.set(PollFlags::IN, self.wants_request());
            of_client.set(PollFlags::OUT, !self.down.is_empty());
            let mut of_upstream = PollFlags::empty();
            of_upstream.set(PollFlags::IN, self.wants_answer());
            of_upstream.set(PollFlags::OUT, !self.up.is_empty() || self.upstream.wants_to_write());
            let mut fds = [
                PollFd::new(&stop, PollFlags::IN),
                PollFd::new(self.client, of_client),
                PollFd::new(self.upstream.tcp(), of_upstream),
            ];
            wait(&mut fds, None)?;
            if !fds[0].revents().is_empty() {
                return Ok(Over(CallEnd::Stopped, "the session has ended".to_owned()));
            }
            if fds[1].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR) {
                return Ok(Over(CallEnd::Left, "the agent went away".to_owned()));
            }
        }
    }

    fn wants_request(&self) -> bool {
        self.up.is_empty() && !self.asking.is_done() && !self.deaf
    }

    fn wants_answer(&self) -> bool {
        self.down.is_empty() && !matches!(self.answer, Answer::Ended)
    }

    /// Everything that goes without waiting.
    fn move_on(&mut self, reader: &mut dyn Reader) -> Option<Over> {
        if let Err(over) = self.ask() {
            return Some(over);
        }
        loop {
            let client = &mut &*self.client;
            if self.down.drain(|bytes| client.write(bytes)).is_err() {
                return Some(Over(CallEnd::Left, "the agent went away".to_owned()));
            }
            if matches!(self.answer, Answer::Ended) {
                return self.down.is_empty().then(|| Over(CallEnd::Complete, String::new()));
            }
            if !self.wants_answer() {
                return None;
            }
            match self.hear(reader) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(over) => return Some(over),
            }
        }
    }

    /// Reads of the request what there is room for, and passes it on.
    fn ask(&mut self) -> Result<(), Over> {
        let mut bytes = [0; GATEWAY_BUFFER_BYTES];
        loop {
            let upstream = &mut self.upstream;
            let written = self.up.drain(|bytes| upstream.write(bytes)).and_then(|()| upstream.flush());
            if written.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                // It may have answered and closed: what it said is still to be read.
                self.deaf = true;
                self.up.sent = self.up.bytes.len();
            }
            if !self.wants_request() {
                return Ok(());
            }
            let left = || Over(CallEnd::Left, "the agent went away".to_owned());
            match self.client.read(&mut bytes) {
                Ok(0) => return Err(left()),
                Ok(count) => {
                    let taken = self.asking.take(&bytes[..count], &mut |_| {});
                    let malformed =
                        |_| Over(CallEnd::Failed, "the request's body is not in chunks".to_owned());
                    self.up.put(&bytes[..taken.map_err(malformed)?]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(left()),
            }
        }
    }

    /// Reads once of the answer. Whether there may be more at once.
    fn hear(&mut self, reader: &mut dyn Reader) -> Result<bool, Over> {
        let mut bytes = [0; GATEWAY_BUFFER_BYTES];
        match self.upstream.read(&mut bytes) {
            Ok(0) => self.ended(None).map(|()| true),
            Ok(count) => self.take(&bytes[..count], reader).map(|()| self.upstream.may_hold_more()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => self.ended(Some(error)).map(|()| true),
        }
    }

    /// The upstream has said all that it will.
    fn ended(&mut self, error: Option<io::Error>) -> Result<(), Over> {
        let why = error
            .as_ref()
            .map_or_else(|| "the upstream closed the connection".to_owned(), io::Error::to_string);
        match &self.answer {
            Answer::Head(_) => Err(Over(CallEnd::Failed, format!("no answer: {why}"))),
            Answer::Body(body) if body.may_end() && error.is_none() => {
                self.answer = Answer::Ended;
                Ok(())
            }
            Answer::Body(_) => Err(Over(CallEnd::Cut, why)),
            Answer::Ended => Ok(()),
        }
    }

    fn take(&mut self, bytes: &[u8], reader: &mut dyn Reader) -> Result<(), Over> {
        match &mut self.answer {
            Answer::Head(said) => {
                said.extend_from_slice(bytes);
                let Some(end) = head_end(said) else {
                    let too_long = || Over(CallEnd::Failed, "the head of the answer is too long".to_owned());
                    return if said.len() > MODEL_HEAD_BYTES { Err(too_long()) } else { Ok(()) };
                };
                let rest = said.split_off(end);
                let response = head::response(said, self.method, wall());
                match response.map_err(|fault| Over(CallEnd::Failed, fault.to_owned()))? {
                    // What follows an interim head is a head again.
                    None => said.clear(),
                    Some(response) => {
                        reader.head(&response);
                        self.down.put(&response.head);
                        self.answer = Answer::Body(response.body);
                    }
                }
                self.take(&rest, reader)
            }
            Answer::Body(body) => {
                let taken = body.take(bytes, &mut |content| reader.content(content));
                let malformed = |_| Over(CallEnd::Cut, "the answer is not in chunks".to_owned());
                self.down.put(&bytes[..taken.map_err(malformed)?]);
                if body.is_done() {
                    self.answer = Answer::Ended;
                }
                Ok(())
            }
            Answer::Ended => Ok(()),
        }
    }
}
