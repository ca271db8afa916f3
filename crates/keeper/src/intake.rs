//! What the agent prints: from its two pipes, through the splitters, onto the tape. Every limit on it is kept by
//! not reading.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use ostler_tape::launch::IntakeLimits;
use ostler_tape::{KeeperNote, Stream, frame};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::bucket::Bucket;
use crate::clock::wall_us;
use crate::log::log;
use crate::poller::{Poller, Token};
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::splitter::Splitter;

/// One read; what a pipe holds unless someone enlarged it.
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Intake {
    pipes: [Pipe; 2],
    redactor: Redactor,
    bucket: Bucket,
    tape_bytes: u64,
    /// Notes are made when these become true, not while they are.
    noted_throttle: bool,
    noted_limit: bool,
}

#[derive(Debug)]
struct Pipe {
    fd: Option<OwnedFd>,
    token: Token,
    watched: bool,
    splitter: Splitter,
}

impl Pipe {
    fn new(fd: OwnedFd, token: Token, stream: Stream, piece_bytes: usize) -> Pipe {
        Pipe { fd: Some(fd), token, watched: false, splitter: Splitter::new(stream, piece_bytes) }
    }

    fn watch(&mut self, poller: &Poller, on: bool) -> io::Result<()> {
        let Some(fd) = self.fd.as_ref().filter(|_| self.watched != on) else { return Ok(()) };
        if on {
            poller.add(fd, self.token, EventFlags::IN)?
        } else {
            poller.remove(fd)?
        }
        self.watched = on;
        Ok(())
    }

    /// Reads once and says how much; a pipe at its end is closed.
    fn read(&mut self, allowance: usize) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        let buffer = self.splitter.buffer();
        let before = buffer.len();
        let most = allowance.min(READ_BYTES);
        buffer.reserve(most);
        let read = if buffer.capacity() - before > most {
            // A `Vec` may have more room than was asked for, but the allowance is a promise.
            buffer.resize(before + most, 0);
            let read = rustix::io::read(fd, &mut buffer[before..]);
            buffer.truncate(before + read.unwrap_or(0));
            read
        } else {
            rustix::io::read(fd, spare_capacity(buffer))
        };
        match read {
            Ok(0) => self.end(),
            Ok(count) => return count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => {
                log!("reading the agent's output failed: {errno}");
                self.end();
            }
        }
        0
    }

    fn end(&mut self) {
        self.fd = None;
        self.watched = false;
        self.splitter.end();
    }
}

impl Intake {
    pub(crate) fn new(
        stdout: OwnedFd,
        stderr: OwnedFd,
        redactor: Redactor,
        limits: IntakeLimits,
        tape_bytes: u64,
        piece_bytes: usize,
    ) -> Intake {
        Intake {
            pipes: [
                Pipe::new(stdout, Token::STDOUT, Stream::Out, piece_bytes),
                Pipe::new(stderr, Token::STDERR, Stream::Err, piece_bytes),
            ],
            redactor,
            bucket: Bucket::new(limits, Instant::now()),
            tape_bytes,
            noted_throttle: false,
            noted_limit: false,
        }
    }

    /// Reads the pipe that `token` stands for, and tapes what came.
    pub(crate) fn read(&mut self, token: Token, recorder: &mut Recorder, now: Instant) {
        let allowance = self.allowance(recorder, now);
        if allowance == 0 {
            return;
        }
        if let Some(pipe) = self.pipes.iter_mut().find(|pipe| pipe.token == token) {
            let read = pipe.read(allowance);
            self.bucket.take(read);
        }
        self.flush(recorder);
    }

    fn allowance(&mut self, recorder: &Recorder, now: Instant) -> usize {
        let allowance = self.bucket.allowance(now);
        if self.is_blocked(recorder) { 0 } else { allowance }
    }

    /// Whether the tape takes nothing more for now.
    pub(crate) fn is_blocked(&self, recorder: &Recorder) -> bool {
        recorder.is_in_trouble() || recorder.end() >= self.tape_bytes
    }

    /// Tapes what is held and can be.
    pub(crate) fn flush(&mut self, recorder: &mut Recorder) {
        for pipe in &mut self.pipes {
            let cuts = pipe.splitter.cut(&self.redactor);
            let taped = recorder.append(&pipe.splitter.records(&cuts, wall_us()));
            pipe.splitter.taped(&cuts, taped);
        }
    }

    /// Watches the pipes exactly while they may be read, and states what keeps them from it.
    pub(crate) fn settle(
        &mut self,
        poller: &Poller,
        recorder: &mut Recorder,
        now: Instant,
    ) -> io::Result<()> {
        let readable = self.allowance(recorder, now) > 0;
        for pipe in &mut self.pipes {
            pipe.watch(poller, readable)?;
        }
        let throttled = self.bucket.is_throttled();
        if throttled && !self.noted_throttle {
            recorder.note(&KeeperNote::Throttled { bytes_per_second: self.bucket.bytes_per_second() });
        }
        self.noted_throttle = throttled;
        let at_limit = recorder.end() >= self.tape_bytes;
        if at_limit && !self.noted_limit {
            recorder.note(&KeeperNote::TapeLimit { tape_bytes: self.tape_bytes });
        }
        self.noted_limit = at_limit;
        Ok(())
    }

    pub(crate) fn state(&self, recorder: &Recorder) -> frame::Intake {
        if recorder.is_in_trouble() {
            frame::Intake::DiskFull
        } else if recorder.end() >= self.tape_bytes {
            frame::Intake::TapeLimit
        } else if self.bucket.is_throttled() {
            frame::Intake::Throttled
        } else {
            frame::Intake::Open
        }
    }

    /// Raises the tape's limit; a lower one is not taken back.
    pub(crate) fn raise_tape_limit(&mut self, tape_bytes: u64, recorder: &mut Recorder) {
        if tape_bytes > self.tape_bytes {
            self.tape_bytes = tape_bytes;
            recorder.note(&KeeperNote::TapeLimitRaised { tape_bytes });
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.is_open().then(|| self.bucket.wake_at()).flatten()
    }

    /// Whether anyone may still print.
    pub(crate) fn is_open(&self) -> bool {
        self.pipes.iter().any(|pipe| pipe.fd.is_some())
    }

    /// Stops reading for good. True if someone still held a pipe open.
    pub(crate) fn close(&mut self) -> bool {
        let was_open = self.is_open();
        self.pipes.iter_mut().for_each(Pipe::end);
        was_open
    }

    /// Printed, read and not on the tape.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.pipes.iter().map(|pipe| pipe.splitter.held_bytes() as u64).sum()
    }
}
