//! A command that a daemon attends: it begins when nothing is left of the one before it, stands still when it is told to,
//! and ends with its daemon, unless it has to be done with what it has begun.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ostler_domain::command::CommandDocument;
use ostler_tape::attended::{AttendedLock, END, FREEZE, FROZEN, THAW};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::tree::Tree;

/// Longest document: a bound for what is believed of a length.
const LONGEST_DOCUMENT: u32 = 64 << 20;
/// How often a lock is looked at that another command has, and a tree that is being killed.
pub(super) const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Whoever waits for the command.
pub(super) struct Attendant {
    stream: UnixStream,
    ends_by_itself: bool,
    is_gone: bool,
    is_to_freeze: bool,
    is_to_end: bool,
}

/// A command whose turn it is.
pub(super) struct Begun {
    pub(super) document: CommandDocument,
    pub(super) attendant: Attendant,
    /// Kept until nothing of the command lives: the next one begins when it is let go.
    pub(super) lock: AttendedLock,
}

/// Takes the document from descriptor 0 and waits for its turn; nothing, if the daemon is gone before that.
pub(super) fn begin(lock: &Path, ends_by_itself: bool) -> io::Result<Option<Begun>> {
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST_DOCUMENT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut json = vec![0; length as usize];
    stream.read_exact(&mut json)?;
    stream.set_nonblocking(true)?;
    let (mut is_to_freeze, mut lock_taken) = (false, None);
    loop {
        if lock_taken.is_none() {
            lock_taken = AttendedLock::try_take(lock)?;
        }
        match (lock_taken.take(), is_to_freeze) {
            (Some(lock), false) => {
                let attendant = Attendant {
                    stream,
                    ends_by_itself,
                    is_gone: false,
                    is_to_freeze: false,
                    is_to_end: false,
                };
                return Ok(Some(Begun { document: serde_json::from_slice(&json)?, attendant, lock }));
            }
            (taken, _) => lock_taken = taken,
        }
        wait(&stream)?;
        match word(&mut stream)? {
            Word::Said(FREEZE) => {
                is_to_freeze = true;
                stream.write_all(&[FROZEN])?;
            }
            Word::Said(THAW) => is_to_freeze = false,
            Word::Said(END) | Word::Gone => return Ok(None),
            Word::Said(_) | Word::Nothing => {}
        }
    }
}

fn wait(stream: &UnixStream) -> io::Result<()> {
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&LOOK)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

enum Word {
    Said(u8),
    Nothing,
    Gone,
}

fn word(stream: &mut UnixStream) -> io::Result<Word> {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => Ok(Word::Gone),
        Ok(_) => Ok(Word::Said(byte[0])),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(Word::Nothing)
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Word::Gone),
        Err(error) => Err(error),
    }
}

impl Attendant {
    /// What to wait for, while there is somebody who could say something.
    pub(super) fn listens_on(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_gone).then(|| self.stream.as_fd())
    }

    /// The command is to end, and something of it may live.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_to_end
    }

    /// Hears what was said, and does it; what has not started yet is frozen when it has.
    pub(super) fn heed(&mut self, tree: &mut Tree, has_started: bool) -> io::Result<()> {
        while !self.is_gone {
            match word(&mut self.stream)? {
                Word::Said(FREEZE) => self.is_to_freeze = true,
                Word::Said(THAW) => {
                    self.is_to_freeze = false;
                    tree.thaw()?;
                }
                Word::Said(END) => self.is_to_end = true,
                Word::Said(_) => {}
                Word::Nothing => break,
                Word::Gone => {
                    self.is_gone = true;
                    self.is_to_end |= !self.ends_by_itself;
                }
            }
        }
        if self.is_to_end {
            tree.kill_round();
        } else if self.is_to_freeze && has_started {
            self.is_to_freeze = false;
            tree.freeze()?;
            // Who is not there to hear it is not there to wait for it.
            let _ = self.stream.write_all(&[FROZEN]);
        }
        Ok(())
    }
}
