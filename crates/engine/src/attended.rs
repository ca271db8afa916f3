//! Commands that the daemon runs for itself and attends: they can be frozen and ended, never outlive the daemon, and
//! begin only when nothing is left of the one before them.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use ostler_domain::command::CommandDocument;
use ostler_store::Halt;
use ostler_tape::attended::{AttendedLock, END, FREEZE, FROZEN, THAW};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::Command,
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    git::inside::{Ended, MOST_WHY, NotDone, read},
    shared::Shared,
};

/// How often a lock is looked at that something else has.
const LOOK: Duration = Duration::from_millis(20);

/// What is wanted of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Run,
    Freeze,
    End,
    /// An emergency: it ends now, and begins again when that is over.
    Halt,
}

/// What is wanted, by whoever has the command run and by the halt.
pub(crate) struct Wishes {
    own: watch::Receiver<Wish>,
    halt: watch::Receiver<Option<Halt>>,
}

impl Wishes {
    pub(crate) fn new(own: watch::Receiver<Wish>, halt: watch::Receiver<Option<Halt>>) -> Self {
        Self { own, halt }
    }

    /// It runs to its end.
    pub(crate) fn none() -> Self {
        Self { own: watch::channel(Wish::Run).1, halt: watch::channel(None).1 }
    }

    pub(crate) fn now(&mut self) -> Wish {
        let own = *self.own.borrow_and_update();
        match (own, self.halt.borrow_and_update().as_ref().map(|halt| halt.freeze)) {
            (Wish::End, _) => Wish::End,
            (_, Some(false)) => Wish::Halt,
            (_, Some(true)) => Wish::Freeze,
            (own, None) => own,
        }
    }

    /// Waits until something else may be wanted. Nobody who is gone wants anything else.
    pub(crate) async fn change(&mut self) {
        let (own, halt) = (&mut self.own, &mut self.halt);
        let changed = |changed: Result<(), watch::error::RecvError>| changed.is_ok();
        tokio::select! {
            true = async { changed(own.changed().await) } => {}
            true = async { changed(halt.changed().await) } => {}
            else => std::future::pending().await,
        }
    }
}

/// How a command came to its end.
pub(crate) enum Course {
    ByItself(Ended),
    /// It was ended, and nothing of it is left.
    Cut(Wish),
}

/// A command as it is to be run.
pub(crate) struct Attended<'a> {
    pub(crate) document: &'a CommandDocument,
    /// Held while anything of it lives.
    pub(crate) lock: &'a Path,
    /// A daemon that dies leaves it to end by itself.
    pub(crate) to_its_end: bool,
    /// How long it may take; while it is frozen its time stands still.
    pub(crate) limit: Duration,
    /// How much of what it says is read.
    pub(crate) most: usize,
}

/// How many commands may be at work, frozen ones left out.
#[derive(Default)]
pub(crate) struct AtWork(AtomicUsize);

impl AtWork {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// Says whether a command may be at work, to whoever wants to see it still.
pub(crate) struct Work<'a> {
    all: &'a AtWork,
    told: &'a watch::Sender<bool>,
    is: bool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(all: &'a AtWork, told: &'a watch::Sender<bool>) -> Self {
        Self { all, told, is: false }
    }

    pub(crate) fn is(&mut self, at_work: bool) {
        if std::mem::replace(&mut self.is, at_work) != at_work {
            match at_work {
                true => self.all.0.fetch_add(1, Ordering::AcqRel),
                false => self.all.0.fetch_sub(1, Ordering::AcqRel),
            };
            self.told.send_replace(at_work);
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.is(false);
    }
}

impl Shared {
    /// Runs it once, as is wished. It is at work until it is seen to be frozen, or nothing of it is left.
    pub(crate) async fn attend(
        &self,
        command: Attended<'_>,
        wishes: &mut Wishes,
        work: &mut Work<'_>,
    ) -> Result<Course, NotDone> {
        let (ours, theirs) = Socket::pair().map_err(NotDone::because)?;
        let how = if command.to_its_end { "--attended-to-its-end" } else { "--attended" };
        // Dropped, it is left to itself, and hears that nobody attends it any more.
        let mut child = Command::new(self.program.path())
            .args(["internal", "command", how])
            .arg(command.lock)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .spawn()
            .map_err(NotDone::because)?;
        work.is(true);
        let (mut hears, mut says) = connect(ours, command.document).await.map_err(NotDone::because)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async {
            let (said, why) = tokio::try_join!(read(stdout, command.most), read(stderr, MOST_WHY))?;
            io::Result::Ok(Ended { status: child.wait().await?, said, why })
        };
        tokio::pin!(ended);
        let (mut left, mut since) = (command.limit, Some(Instant::now()));
        let (mut cut, mut is_heard) = (None, true);
        loop {
            // What it has been told already is told again at worst.
            let wish = wishes.now();
            match (wish, since) {
                _ if cut.is_some() => {}
                (Wish::End | Wish::Halt, _) => cut = Some(Ok(wish)),
                (Wish::Freeze, Some(began)) => {
                    left = left.saturating_sub(began.elapsed());
                    since = None;
                    let _ = says.write_all(&[FREEZE]).await;
                }
                (Wish::Run, None) => {
                    since = Some(Instant::now());
                    work.is(true);
                    let _ = says.write_all(&[THAW]).await;
                }
                (Wish::Freeze, None) | (Wish::Run, Some(_)) => {}
            }
            if cut.is_some() {
                let _ = says.write_all(&[END]).await;
            }
            tokio::select! {
                ended = &mut ended => {
                    let ended = ended.map_err(NotDone::because)?;
                    return match cut {
                        Some(Ok(wish)) => Ok(Course::Cut(wish)),
                        Some(Err(not_done)) => Err(not_done),
                        None => Ok(Course::ByItself(ended)),
                    };
                }
                word = hears.read_u8(), if is_heard => match word {
                    Ok(FROZEN) if since.is_none() => work.is(false),
                    Ok(_) => {}
                    Err(_) => is_heard = false,
                },
                () = wishes.change(), if cut.is_none() => {}
                () = sleep_until(since.unwrap_or_else(Instant::now) + left), if since.is_some() && cut.is_none() => {
                    cut = Some(Err(NotDone::TooLong(command.limit)));
                }
            }
        }
    }
}

async fn connect(
    ours: Socket,
    document: &CommandDocument,
) -> io::Result<(tokio::net::unix::OwnedReadHalf, tokio::net::unix::OwnedWriteHalf)> {
    ours.set_nonblocking(true)?;
    let (hears, mut says) = UnixStream::from_std(ours)?.into_split();
    let json = serde_json::to_vec(document)?;
    says.write_u32(u32::try_from(json.len()).map_err(io::Error::other)?).await?;
    says.write_all(&json).await?;
    Ok((hears, says))
}

/// Waits until nothing is left of a command that another daemon may have begun.
pub(crate) async fn until_nothing_is_left(lock: &Path) -> io::Result<()> {
    while AttendedLock::try_take(lock)?.is_none() {
        sleep(LOOK).await;
    }
    Ok(())
}
