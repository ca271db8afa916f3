//! The agent's standard input: a queue that never mixes two inputs and never blocks the keeper.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Inputs that may wait for an agent that does not read. Two of the largest frames.
const WAITING_BYTES: usize = 2 * ostler_domain::limits::FRAME_BYTES;

#[derive(Debug)]
pub(crate) struct Feed {
    pipe: Option<OwnedFd>,
    queue: VecDeque<Vec<u8>>,
    /// How much of the first is written.
    written: usize,
    waiting: usize,
    closing: bool,
}

/// Why there is no pipe any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    ByUs,
    ByAgent,
}

impl Feed {
    pub(crate) fn new(pipe: OwnedFd) -> Feed {
        Feed { pipe: Some(pipe), queue: VecDeque::new(), written: 0, waiting: 0, closing: false }
    }

    pub(crate) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.closing
    }

    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.waiting == 0 || self.waiting + bytes <= WAITING_BYTES
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.waiting += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// Closes the pipe behind what waits.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Drops the pipe and what waits for it.
    pub(crate) fn abandon(&mut self) {
        *self = Feed { pipe: None, queue: VecDeque::new(), written: 0, waiting: 0, closing: true };
    }

    /// Writes what the pipe takes. Says so if the pipe is closed after that, be it that its reader is gone.
    pub(crate) fn write(&mut self) -> Option<Closed> {
        let pipe = self.pipe.as_ref()?;
        while let Some(front) = self.queue.front() {
            match rustix::io::write(pipe, &front[self.written..]) {
                Ok(taken) => {
                    self.written += taken;
                    self.waiting -= taken;
                    if self.written == front.len() {
                        self.written = 0;
                        self.queue.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => {
                    self.abandon();
                    return Some(Closed::ByAgent);
                }
            }
        }
        let closed = match (self.closing, has_no_reader(pipe)) {
            (true, _) => Closed::ByUs,
            (false, true) => Closed::ByAgent,
            (false, false) => return None,
        };
        self.abandon();
        Some(closed)
    }
}

fn has_no_reader(pipe: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_written_in_order_and_closed_behind_the_last() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::ioctl_fionbio(&write, true).unwrap();
        let mut feed = Feed::new(write);
        let long = vec![b'x'; 300_000];
        feed.push(long.clone());
        feed.push(b"end\n".to_vec());
        feed.close();
        assert!(!feed.is_open());
        let mut received = Vec::new();
        let mut buffer = vec![0; 65_536];
        loop {
            feed.write();
            let count = rustix::io::read(&read, &mut buffer[..]).unwrap();
            if count == 0 {
                break;
            }
            received.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(received.len(), long.len() + 4);
        assert!(received.ends_with(b"xend\n"));
        assert!(feed.pipe().is_none());
    }

    #[test]
    fn an_agent_that_does_not_read_is_noticed() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut feed = Feed::new(write);
        assert_eq!(feed.write(), None);
        drop(read);
        assert_eq!(feed.write(), Some(Closed::ByAgent), "with nothing to write");
        feed.push(b"hello\n".to_vec());
        assert_eq!(feed.write(), None, "said once");
        assert!(!feed.is_open());
    }

    #[test]
    fn one_input_always_fits_and_many_do_not() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        let mut feed = Feed::new(write);
        assert!(feed.has_room_for(WAITING_BYTES * 2));
        feed.push(vec![0; WAITING_BYTES]);
        assert!(!feed.has_room_for(1));
    }
}
