//! Watches campaigns with live sessions for hidden files that somebody replaces or makes, and has their wardens cover
//! them at once. One inotify instance for all: a user has few. What is beyond its bounds the wardens find by themselves,
//! within seconds.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ostler_domain::{
    SessionId,
    hidden::Patterns,
    limits::{REMASK_PATHS, REMASK_PAUSE, WATCHED_DIRECTORIES, WATCHED_DIRECTORIES_OF_CAMPAIGN},
};
use rustix::fs::{
    Mode, OFlags, ResolveFlags,
    inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    openat2,
};
use tokio::{
    net::unix::pipe::Receiver,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{campaign_files, session::Command};

/// Orders that may wait; a session whose order does not fit is looked after by its warden alone.
const ORDERS: usize = 256;
/// One read of the kernel's queue.
const READ_BYTES: usize = 16 * 1024;

/// A session whose campaign is to be watched.
pub(crate) struct Watched {
    pub(crate) session: SessionId,
    pub(crate) root: PathBuf,
    pub(crate) patterns: Patterns,
    pub(crate) commands: mpsc::Sender<Command>,
}

enum Order {
    Watch(Watched),
    Forget(SessionId),
    /// A walk has found these directories below a root.
    Found {
        root: PathBuf,
        dirs: Vec<PathBuf>,
    },
}

/// Where sessions are brought to be watched over.
#[derive(Clone)]
pub(crate) struct Watcher {
    orders: mpsc::Sender<Order>,
    gaps: Arc<Mutex<Gaps>>,
}

/// What is not watched, and why.
#[derive(Default)]
struct Gaps {
    everywhere: Option<String>,
    campaigns: HashMap<PathBuf, String>,
}

impl Watcher {
    /// A watcher, and the work of it, which is somebody's to run.
    pub(crate) fn new(shutdown: CancellationToken) -> (Self, impl Future<Output = ()>) {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let watcher = Self { orders, gaps: Arc::default() };
        let own = watcher.clone();
        (watcher, async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                ran = own.clone().run(inbox) => if let Err(error) = ran {
                    own.gaps().everywhere = Some(format!("the kernel gives no watch: {error}"));
                    tracing::warn!(%error, "hidden files are not watched; wardens look for themselves");
                },
            }
        })
    }

    pub(crate) fn watch(&self, watched: Watched) {
        let _ = self.orders.try_send(Order::Watch(watched));
    }

    /// Why hidden files that appear below `root` are left to the wardens, if they are.
    pub(crate) fn unwatched(&self, root: &Path) -> Option<String> {
        let gaps = self.gaps();
        gaps.everywhere.clone().or_else(|| gaps.campaigns.get(root).cloned())
    }

    fn gaps(&self) -> MutexGuard<'_, Gaps> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn forget(&self, session: SessionId) {
        let _ = self.orders.send(Order::Forget(session)).await;
    }

    async fn run(self, mut inbox: mpsc::Receiver<Order>) -> io::Result<()> {
        // No pipe, but read like one.
        let inotify =
            Receiver::from_owned_fd_unchecked(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?;
        let mut campaigns = Campaigns { watcher: self, all: HashMap::new(), dirs: HashMap::new() };
        loop {
            let due = campaigns.due();
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(order) => campaigns.obey(order, &inotify),
                    None => return Ok(()),
                },
                ready = inotify.readable() => {
                    ready?;
                    campaigns.read(&inotify);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
            campaigns.tell();
        }
    }

    /// Looks for directories to watch, without making anybody wait.
    fn walk(&self, root: &Path, from: PathBuf, patterns: Patterns) {
        let (orders, root) = (self.orders.clone(), root.to_owned());
        tokio::task::spawn_blocking(move || {
            let dirs =
                campaign_files::directories(&root, &from, &patterns, WATCHED_DIRECTORIES_OF_CAMPAIGN + 1);
            let _ = orders.blocking_send(Order::Found { root, dirs });
        });
    }
}

/// Everything that is watched.
struct Campaigns {
    watcher: Watcher,
    all: HashMap<PathBuf, Campaign>,
    /// Which directories a watch is for: the same one may be in several campaigns.
    dirs: HashMap<i32, Vec<Directory>>,
}

struct Campaign {
    root: OwnedFd,
    sessions: Vec<Watched>,
    watches: Vec<i32>,
    /// Changed, and not yet told.
    changed: BTreeSet<PathBuf>,
    /// Nobody is told before: an agent that makes hidden files all day must not keep its warden busy.
    not_before: Instant,
}

#[derive(Clone, PartialEq)]
struct Directory {
    root: PathBuf,
    path: PathBuf,
}

impl Campaigns {
    fn obey(&mut self, order: Order, inotify: &Receiver) {
        match order {
            Order::Watch(watched) => self.watch(watched),
            Order::Forget(session) => self.forget(session, inotify),
            Order::Found { root, dirs } => self.found(&root, dirs, inotify),
        }
    }

    fn watch(&mut self, watched: Watched) {
        let (root, patterns) = (watched.root.clone(), watched.patterns.clone());
        match self.all.get_mut(&root) {
            Some(campaign) => {
                campaign.sessions.retain(|session| session.session != watched.session);
                campaign.sessions.push(watched);
            }
            None => {
                let Ok(opened) = File::open(&root) else { return };
                let campaign = Campaign {
                    root: opened.into(),
                    sessions: vec![watched],
                    watches: Vec::new(),
                    changed: BTreeSet::new(),
                    not_before: Instant::now(),
                };
                self.all.insert(root.clone(), campaign);
                self.watcher.walk(&root, PathBuf::new(), patterns);
            }
        }
    }

    fn forget(&mut self, session: SessionId, inotify: &Receiver) {
        let all = &mut self.all;
        all.values_mut().for_each(|campaign| campaign.sessions.retain(|watched| watched.session != session));
        let over: Vec<PathBuf> = all
            .iter()
            .filter(|(_, campaign)| campaign.sessions.is_empty())
            .map(|(root, _)| root.clone())
            .collect();
        for root in over {
            self.watcher.gaps().campaigns.remove(&root);
            let watches = all.remove(&root).map(|campaign| campaign.watches).unwrap_or_default();
            for watch in watches {
                let Some(dirs) = self.dirs.get_mut(&watch) else { continue };
                dirs.retain(|dir| dir.root != root);
                if dirs.is_empty() {
                    self.dirs.remove(&watch);
                    let _ = inotify::remove_watch(inotify, watch);
                }
            }
        }
    }

    fn found(&mut self, root: &Path, dirs: Vec<PathBuf>, inotify: &Receiver) {
        let Some(campaign) = self.all.get_mut(root) else { return };
        for path in dirs {
            let is_full = self.dirs.len() >= WATCHED_DIRECTORIES
                || campaign.watches.len() >= WATCHED_DIRECTORIES_OF_CAMPAIGN;
            if is_full {
                let why = "it has more directories than are watched".to_owned();
                self.watcher.gaps().campaigns.insert(root.to_owned(), why);
                return;
            }
            match add_watch(inotify, &campaign.root, &path) {
                Ok(watch) => {
                    let dirs = self.dirs.entry(watch).or_default();
                    let dir = Directory { root: root.to_owned(), path };
                    if !dirs.contains(&dir) {
                        dirs.push(dir);
                        campaign.watches.push(watch);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let why = format!("a directory cannot be watched: {error}");
                    self.watcher.gaps().campaigns.insert(root.to_owned(), why);
                    return;
                }
            }
        }
    }

    /// Takes in what the kernel has to say. An overflow costs what was lost only: wardens look for themselves.
    fn read(&mut self, inotify: &Receiver) {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = inotify.try_read(&mut buffer) {
            let mut rest = &buffer[..count];
            while let Some((notice, after)) = Notice::take(rest) {
                self.heed(&notice);
                rest = after;
            }
        }
    }

    fn heed(&mut self, notice: &Notice<'_>) {
        if notice.flags.contains(ReadFlags::IGNORED) {
            self.dirs.remove(&notice.watch);
            return;
        }
        if notice.name.as_os_str().is_empty() {
            return;
        }
        let is_dir = notice.flags.contains(ReadFlags::ISDIR);
        for dir in self.dirs.get(&notice.watch).cloned().unwrap_or_default() {
            let path = dir.path.join(notice.name);
            let Some(campaign) = self.all.get_mut(&dir.root) else { continue };
            if let Some(session) = campaign.sessions.first().filter(|_| is_dir)
                && !campaign_files::is_passed_over(notice.name)
            {
                self.watcher.walk(&dir.root, path.clone(), session.patterns.clone());
            }
            campaign.change(path, is_dir);
        }
    }

    fn due(&self) -> Option<Instant> {
        let waiting = self.all.values().filter(|campaign| !campaign.changed.is_empty());
        waiting.map(|campaign| campaign.not_before).min()
    }

    fn tell(&mut self) {
        let now = Instant::now();
        for campaign in self.all.values_mut() {
            if campaign.changed.is_empty() || campaign.not_before > now {
                continue;
            }
            let paths: Vec<PathBuf> = std::mem::take(&mut campaign.changed).into_iter().collect();
            campaign.not_before = now + REMASK_PAUSE;
            for session in &campaign.sessions {
                // One that is too busy to hear it has a warden that looks.
                let _ = session.commands.try_send(Command::Remask { paths: paths.clone() });
            }
        }
    }
}

impl Campaign {
    fn change(&mut self, path: PathBuf, is_dir: bool) {
        if is_dir || self.sessions.iter().any(|session| session.patterns.hide(&path)) {
            self.changed.insert(path);
        }
        if self.changed.len() > REMASK_PATHS {
            // All of it.
            self.changed = BTreeSet::from([PathBuf::new()]);
        }
    }
}

/// One thing that the kernel noticed: `watch i32 | flags u32 | cookie u32 | length u32 | name, filled up with zeroes`.
struct Notice<'a> {
    watch: i32,
    flags: ReadFlags,
    name: &'a Path,
}

impl<'a> Notice<'a> {
    fn take(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<16>()?;
        let number = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let (name, after) = rest.split_at_checked(u32::from_ne_bytes(number(12)) as usize)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let notice = Self {
            watch: i32::from_ne_bytes(number(0)),
            flags: ReadFlags::from_bits_retain(u32::from_ne_bytes(number(4))),
            name: Path::new(OsStr::from_bytes(name)),
        };
        Some((notice, after))
    }
}

/// Watches a directory below a root, whatever stands at its path now: never one that a link leads to.
fn add_watch(inotify: &Receiver, root: impl AsFd, path: &Path) -> io::Result<i32> {
    let dir = open_dir(root, path)?;
    let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::EXCL_UNLINK;
    Ok(inotify::add_watch(inotify, format!("/proc/self/fd/{}", dir.as_raw_fd()), flags)?)
}

fn open_dir(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(root, path, flags, Mode::empty(), resolve)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_taken_one_by_one_and_none_of_half_a_one() {
        let mut bytes = Vec::new();
        for (watch, name) in [(7_i32, &b".env\0\0\0\0"[..]), (8, b"")] {
            bytes.extend_from_slice(&watch.to_ne_bytes());
            bytes.extend_from_slice(&ReadFlags::CREATE.bits().to_ne_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&u32::try_from(name.len()).unwrap().to_ne_bytes());
            bytes.extend_from_slice(name);
        }
        let (first, rest) = Notice::take(&bytes).unwrap();
        assert_eq!((first.watch, first.name, first.flags), (7, Path::new(".env"), ReadFlags::CREATE));
        let (second, rest) = Notice::take(rest).unwrap();
        assert_eq!((second.watch, second.name, rest.len()), (8, Path::new(""), 0));
        assert!(Notice::take(&bytes[..20]).is_none());
    }
}
