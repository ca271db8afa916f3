//! epoll, with the interest in each descriptor kept where it is decided.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

/// Events taken in one go.
const EVENTS: usize = 16;

/// What a descriptor is to the keeper. Connections are numbered from [`Token::FIRST_CONNECTION`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) u64);

impl Token {
    pub(crate) const LISTENER: Token = Token(0);
    pub(crate) const SIGTERM: Token = Token(1);
    pub(crate) const SIGCHLD: Token = Token(2);
    pub(crate) const CHANNEL: Token = Token(3);
    pub(crate) const EXEC_STATUS: Token = Token(4);
    pub(crate) const STDIN: Token = Token(5);
    pub(crate) const STDOUT: Token = Token(6);
    pub(crate) const STDERR: Token = Token(7);
    pub(crate) const GATEWAY_LISTENER: Token = Token(8);
    pub(crate) const GATEWAY: Token = Token(9);
    pub(crate) const CALL_LISTENER: Token = Token(10);
    pub(crate) const FIRST_CONNECTION: u64 = 16;
    /// Connections of the agent's calls; far above all of the daemon's.
    pub(crate) const FIRST_CALL: u64 = 1 << 48;
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Begins to watch; errors and hang-ups are always reported. Closing the descriptor ends it.
    pub(crate) fn add(&self, fd: impl AsFd, token: Token, interest: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token.0), interest)?)
    }

    pub(crate) fn modify(&self, fd: impl AsFd, token: Token, interest: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token.0), interest)?)
    }

    /// Stops watching: the only way not to hear of a hang-up again and again.
    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits for the first event or the deadline, and returns who has something.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> io::Result<Vec<Token>> {
        let timeout = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(events.into_iter().map(|event| Token(event.data.u64())).collect())
    }
}

/// Whole milliseconds, rounded up: epoll waits in those, and a wait that is too short is a busy loop.
fn timespec(duration: Duration) -> Timespec {
    let ms = duration.as_nanos().div_ceil(1_000_000) as i64;
    Timespec { tv_sec: ms / 1_000, tv_nsec: (ms % 1_000) * 1_000_000 }
}
