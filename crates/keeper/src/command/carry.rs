//! The caller's streams stay outside. A descriptor is more than the bytes that go through it: who has a directory can
//! walk from there, who has a file can cut it off or change its mode, who has a socket can connect it to somebody else.
//! So the command has pipes of its own, and what goes through them is carried over here.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{JoinHandle, spawn};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, read, write};

/// As much as a pipe holds.
const CARRIED_BYTES: usize = 64 * 1024;
const NOBODY: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

/// What brings the command's output to its caller.
pub(super) struct Carriers {
    /// At its end when everything was brought.
    over: PipeReader,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// The command's standard streams, and who carries what it says; its input is the caller's, or at its end.
pub(super) fn begin(has_input: bool) -> io::Result<([OwnedFd; 3], Carriers)> {
    let (over, under_way) = pipe()?;
    let mut threads = Vec::new();
    let stdin = if has_input { bring_input(io::stdin())? } else { pipe()?.0.into() };
    let stdout = take_output(io::stdout(), under_way.try_clone()?, &mut threads)?;
    // Where both go to the same place, one pipe keeps what is said in order.
    let stderr = if is_same(io::stdout(), io::stderr())? {
        stdout.try_clone()?
    } else {
        take_output(io::stderr(), under_way, &mut threads)?
    };
    Ok(([stdin, stdout, stderr], Carriers { over, threads }))
}

impl Carriers {
    /// Nobody is there to be carried for: the command has a terminal.
    pub(super) fn none() -> io::Result<Carriers> {
        Ok(Carriers { over: pipe()?.0, threads: Vec::new() })
    }

    /// Hangs up when everything was brought.
    pub(super) fn over(&self) -> &PipeReader {
        &self.over
    }

    /// Whether the command's output has got where it was to go.
    pub(super) fn finish(self) -> io::Result<()> {
        let lost = || io::Error::other("who carries it has ended");
        self.threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(lost())))
    }
}

fn is_same(one: impl AsFd, other: impl AsFd) -> io::Result<bool> {
    let (one, other) = (fstat(one)?, fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

fn bring_input(ours: impl AsFd) -> io::Result<OwnedFd> {
    if FileType::from_raw_mode(fstat(&ours)?.st_mode) == FileType::Directory {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "its input would be a directory"));
    }
    let ours = ours.as_fd().try_clone_to_owned()?;
    let (theirs, to) = pipe()?;
    // Ends with this process: nobody else waits for what is typed. Input that cannot be read is at its end.
    spawn(move || carry(&ours, &to.into()));
    Ok(theirs.into())
}

fn take_output(
    ours: impl AsFd,
    under_way: PipeWriter,
    threads: &mut Vec<JoinHandle<io::Result<()>>>,
) -> io::Result<OwnedFd> {
    let ours = ours.as_fd().try_clone_to_owned()?;
    let (from, theirs) = pipe()?;
    threads.push(spawn(move || {
        let carried = carry(&from.into(), &ours);
        drop(under_way);
        carried
    }));
    Ok(theirs.into())
}

/// Brings everything from one to the other, until one has no more or the other takes no more; then whoever is at the
/// other end of a pipe learns of it, because it is closed.
fn carry(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let mut bytes = vec![0; CARRIED_BYTES];
    loop {
        let [there, gone] = wait([(from, PollFlags::IN), (to, PollFlags::empty())])?;
        if gone.intersects(NOBODY) {
            return Ok(());
        }
        if there.is_empty() {
            continue;
        }
        match read(from, &mut bytes[..]) {
            Ok(0) => return Ok(()),
            Ok(len) if write_all(to, &bytes[..len])? => {}
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// False when nobody is left to read it.
fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<bool> {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(len) => bytes = &bytes[len..],
            // Whoever shares the descriptor with us has said that it is not to wait.
            Err(Errno::AGAIN) => drop(wait([(to, PollFlags::OUT)])?),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(true)
}

fn wait<const N: usize>(wanted: [(&OwnedFd, PollFlags); N]) -> io::Result<[PollFlags; N]> {
    let mut fds = wanted.map(|(fd, flags)| PollFd::new(fd, flags));
    match poll(&mut fds, None) {
        Ok(_) => Ok(fds.map(|fd| fd.revents())),
        Err(Errno::INTR) => Ok([PollFlags::empty(); N]),
        Err(errno) => Err(errno.into()),
    }
}
