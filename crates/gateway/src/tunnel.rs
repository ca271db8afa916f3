//! Bytes both ways, as they come: what one read gave is passed on at once, and counted.
//!
//! A side that stops sending is still heard of by the other, and may still be sent to; a side that breaks off takes the
//! other along at once.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use ostler_domain::limits::{GATEWAY_BUFFER_BYTES, GATEWAY_HALF_OPEN};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Bytes that were passed on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) to_client: u64,
    pub(crate) to_server: u64,
}

/// One way. Holds at most one read.
struct Lane {
    buffer: Vec<u8>,
    sent: usize,
    /// Bytes that may still be read.
    left: u64,
    /// Nothing more will be read.
    ended: bool,
    /// And the receiver knows.
    told: bool,
    count: u64,
}

impl Lane {
    fn new(first: Vec<u8>, left: u64) -> Lane {
        Lane { buffer: first, sent: 0, left, ended: false, told: false, count: 0 }
    }

    fn is_empty(&self) -> bool {
        self.sent == self.buffer.len()
    }

    fn wants_to_read(&self) -> bool {
        self.is_empty() && !self.ended && self.left > 0
    }

    /// Reads once and passes it on.
    fn read(&mut self, mut from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(GATEWAY_BUFFER_BYTES);
        self.buffer.resize(most, 0);
        self.sent = 0;
        let read = from.read(&mut self.buffer);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.ended = true,
            Ok(count) => self.left -= count as u64,
            Err(error) if is_not_yet(&error) => {}
            Err(error) => return Err(error),
        }
        self.write(to)
    }

    fn write(&mut self, mut to: &TcpStream) -> io::Result<()> {
        while !self.is_empty() {
            match to.write(&self.buffer[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    self.count += count as u64;
                }
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.ended && !self.told {
            self.told = true;
            // It may be gone already, which the next look shows.
            let _ = to.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Carries until both have ended, one breaks off, or `stop` hangs up. `first` was already read of the client, and of what
/// follows it only `left` bytes are for the server.
pub(crate) fn carry(
    client: &TcpStream,
    server: &TcpStream,
    first: Vec<u8>,
    left: u64,
    stop: impl AsFd,
) -> Counts {
    let mut up = Lane::new(first, left);
    let mut down = Lane::new(Vec::new(), u64::MAX);
    // However it ends, what was passed on was passed on.
    let _ = carry_lanes(client, server, &mut up, &mut down, stop);
    Counts { to_client: down.count, to_server: up.count }
}

fn carry_lanes(
    client: &TcpStream,
    server: &TcpStream,
    up: &mut Lane,
    down: &mut Lane,
    stop: impl AsFd,
) -> io::Result<()> {
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    up.write(server)?;
    let mut moved_at = Instant::now();
    // Both of its ways are closed: nothing more to hear of it, again and again.
    let (mut client_is_done, mut server_is_done) = (false, false);
    while !(down.told && (up.told || up.left == 0)) {
        let deadline = (up.ended || down.ended).then(|| moved_at + GATEWAY_HALF_OPEN);
        let of_client = wishes(up.wants_to_read(), !down.is_empty());
        let of_server = wishes(down.wants_to_read(), !up.is_empty());
        let mut fds = vec![PollFd::new(&stop, PollFlags::IN)];
        if !client_is_done {
            fds.push(PollFd::new(client, of_client));
        }
        let server_at = fds.len();
        if !server_is_done {
            fds.push(PollFd::new(server, of_server));
        }
        let ready = wait(&mut fds, deadline)?;
        let heard = |at: usize| fds.get(at).map_or(PollFlags::empty(), |fd| fd.revents());
        let stopped = !heard(0).is_empty();
        let from_client = if client_is_done { PollFlags::empty() } else { heard(1) };
        let from_server = heard(server_at);
        if ready == 0 || stopped || (from_client | from_server).contains(PollFlags::ERR) {
            return Ok(());
        }
        let before = (up.count, down.count, up.ended, down.ended);
        if up.wants_to_read() && from_client.intersects(PollFlags::IN | PollFlags::HUP) {
            up.read(client, server)?;
        }
        if down.wants_to_read() && from_server.intersects(PollFlags::IN | PollFlags::HUP) {
            down.read(server, client)?;
        }
        if from_client.contains(PollFlags::OUT) {
            down.write(client)?;
        }
        if from_server.contains(PollFlags::OUT) {
            up.write(server)?;
        }
        client_is_done = client_is_done || (from_client.contains(PollFlags::HUP) && !up.wants_to_read());
        server_is_done = server_is_done || (from_server.contains(PollFlags::HUP) && !down.wants_to_read());
        if client_is_done && server_is_done {
            return Ok(());
        }
        if before != (up.count, down.count, up.ended, down.ended) {
            moved_at = Instant::now();
        }
    }
    Ok(())
}

fn wishes(read: bool, write: bool) -> PollFlags {
    let mut wishes = PollFlags::empty();
    wishes.set(PollFlags::IN, read);
    wishes.set(PollFlags::OUT, write);
    wishes
}

/// Waits for one of them, and says how many there are; none when the time is over.
pub(crate) fn wait(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<usize> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match poll(fds, left.map(timespec).as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready?),
        }
    }
}

fn timespec(left: Duration) -> Timespec {
    Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
}
