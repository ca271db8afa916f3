//! A look through the campaign: hidden files under whatever name, and git's directories.
//!
//! Others may be changing it at the same time. Each directory is opened below the root without following a link. A
//! directory that is moved from where we have yet to look to where we have been is not seen: so when all is seen, each
//! directory is asked whether it is still there and still holds the same ones, and if not, the look does not count.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ostler_domain::hidden::Patterns;
use ostler_domain::limits::{SCAN_ENTRIES, SCAN_PATH_BYTES, SCAN_TIME};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, statat};
use rustix::io::Errno;

use crate::links::follow;
use crate::mounts::open_beneath;
use crate::refusal::{Refusal, Stage};

/// A file, whatever it is called.
pub(crate) type Inode = (u64, u64);

#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Paths below the root that are to be covered, or are.
    pub(crate) hidden: Vec<PathBuf>,
    /// Links with hidden names and those on the way from them, and what they say. What they lead to is hidden only as
    /// long as they are there.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    /// What must stay where it is, as it is hidden for its place: these links, what they lead to, and what the campaign
    /// names by its path.
    pub(crate) placed: Vec<PathBuf>,
    /// `.git`, directory, file or link; and bare repositories.
    pub(crate) git: Vec<PathBuf>,
    /// Directories that cannot be looked into. Who is inside may have ways that we have not: they are to be covered as
    /// a whole.
    pub(crate) closed: Vec<PathBuf>,
    /// Nothing was moved during the look, so nothing was missed.
    pub(crate) is_whole: bool,
}

pub(crate) struct Scan<'a> {
    pub(crate) root: BorrowedFd<'a>,
    /// Where the root is; the agent sees it in the same place, so links lead where they lead for it.
    pub(crate) root_path: &'a Path,
    pub(crate) patterns: &'a Patterns,
    /// Files of our own that cover others.
    pub(crate) masks: u64,
}

impl Scan<'_> {
    /// Looks through everything below `from`. `linked` holds hidden files with several names that are known already,
    /// and gains those that are met.
    pub(crate) fn look(&self, from: &Path, linked: &mut HashSet<Inode>) -> Result<Found, Refusal> {
        let mut walk = Walk::new(self);
        walk.all(from, |walk, dir, path, kind| walk.by_name(dir, path, kind, linked))?;
        // Only now is it known which files have other names; most campaigns have none, and are spared the second walk.
        if !linked.is_empty() {
            let mut second = Walk::new(self);
            second.all(from, |walk, dir, path, kind| walk.by_inode(dir, path, kind, linked))?;
            walk.found.hidden.append(&mut second.found.hidden);
            walk.found.closed.append(&mut second.found.closed);
            walk.something_moved |= second.something_moved;
            walk.visits.append(&mut second.visits);
        }
        walk.found.is_whole = !walk.something_moved && walk.is_as_it_was();
        Ok(walk.found)
    }
}

struct Walk<'a> {
    scan: &'a Scan<'a>,
    found: Found,
    visits: Vec<Visit>,
    something_moved: bool,
    entries: usize,
    began: Instant,
    began_at: SystemTime,
}

/// A directory as it was before its entries were read.
struct Visit {
    path: PathBuf,
    inode: Inode,
    changed_at: Duration,
}

/// Some kernels give the same time to all changes within a tick.
const TICK: Duration = Duration::from_millis(20);

/// Whether to go on below an entry.
type Descend = bool;

impl<'a> Walk<'a> {
    fn new(scan: &'a Scan<'a>) -> Walk<'a> {
        Walk {
            scan,
            found: Found::default(),
            visits: Vec::new(),
            something_moved: false,
            entries: 0,
            began: Instant::now(),
            began_at: SystemTime::now(),
        }
    }

    /// Whether each directory is where it was, and holds no directory and no open hidden file that was not seen.
    fn is_as_it_was(&self) -> bool {
        let seen: HashSet<Inode> = self.visits.iter().map(|visit| visit.inode).collect();
        let began_at = self.began_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.visits.iter().all(|visit| {
            let Ok(dir) = open_beneath(self.scan.root, &visit.path, DIRECTORY) else { return false };
            let Ok(now) = fstat(&dir) else { return false };
            let untouched = changed_at(&now) == visit.changed_at && visit.changed_at + TICK < began_at;
            (now.st_dev, now.st_ino) == visit.inode
                && (untouched || self.holds_nothing_new(&dir, &visit.path, &seen))
        })
    }

    fn holds_nothing_new(&self, dir: &OwnedFd, path: &Path, seen: &HashSet<Inode>) -> bool {
        let Ok(entries) = Dir::read_from(dir) else { return false };
        entries.flatten().all(|entry| {
            let name = entry.file_name().to_bytes();
            let below = path.join(OsStr::from_bytes(name));
            let is_hidden = self.scan.patterns.hide(&below);
            if name == b"." || name == b".." || (!is_hidden && is_plain(entry.file_type())) {
                return true;
            }
            match statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) if is_hidden => {
                    found.st_dev == self.scan.masks
                        || FileType::from_raw_mode(found.st_mode).is_symlink()
                        || is_branch(dir, &below)
                }
                Ok(found) => {
                    !FileType::from_raw_mode(found.st_mode).is_dir()
                        || seen.contains(&(found.st_dev, found.st_ino))
                }
                Err(_) => false,
            }
        })
    }

    fn all(
        &mut self,
        from: &Path,
        mut visit: impl FnMut(&mut Self, &OwnedFd, &Path, FileType) -> Descend,
    ) -> Result<(), Refusal> {
        let mut waiting = vec![from.to_owned()];
        while let Some(path) = waiting.pop() {
            let dir = match open_beneath(self.scan.root, &path, DIRECTORY) {
                Ok(dir) => dir,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path != from => {
                    self.found.closed.push(path);
                    continue;
                }
                Err(error) if is_gone(&error) => {
                    self.something_moved = true;
                    continue;
                }
                Err(error) => return Err(unsearchable(&path, &error)),
            };
            let before = fstat(&dir).map_err(|errno| unsearchable(&path, &errno.into()))?;
            self.visits.push(Visit {
                path: path.clone(),
                inode: (before.st_dev, before.st_ino),
                changed_at: changed_at(&before),
            });
            let entries = Dir::read_from(&dir).map_err(|errno| unsearchable(&path, &errno.into()))?;
            let mut of_git = 0;
            for entry in entries {
                let entry = entry.map_err(|errno| unsearchable(&path, &errno.into()))?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                self.count(&path)?;
                of_git += usize::from(IN_BARE.contains(&name));
                let below = path.join(OsStr::from_bytes(name));
                let kind = match entry.file_type() {
                    FileType::Unknown => match statat(&dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(_) => continue,
                    },
                    kind => kind,
                };
                if visit(self, &dir, &below, kind) && kind.is_dir() {
                    let is_too_deep = below.as_os_str().len() > SCAN_PATH_BYTES;
                    let list = if is_too_deep { &mut self.found.hidden } else { &mut waiting };
                    list.push(below);
                }
            }
            let has_name = path.file_name().is_some_and(|name| name != ".git");
            if of_git == IN_BARE.len() && has_name {
                self.found.git.push(path);
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &Path) -> Result<(), Refusal> {
        const LOOK_AT_CLOCK: usize = 1_024;
        self.entries += 1;
        let too_long = self.entries.is_multiple_of(LOOK_AT_CLOCK) && self.began.elapsed() > SCAN_TIME;
        if self.entries <= SCAN_ENTRIES && !too_long {
            return Ok(());
        }
        let limit = if too_long { format!("{SCAN_TIME:?}") } else { format!("{SCAN_ENTRIES} entries") };
        let message = format!(
            "looking for hidden files reached its limit of {limit} in {}",
            self.scan.root_path.join(path).display()
        );
        Err(Refusal::new(
            Stage::Hidden,
            message,
            "move that directory out of the campaign, or choose a smaller root",
        ))
    }

    fn by_name(
        &mut self,
        dir: &OwnedFd,
        path: &Path,
        kind: FileType,
        linked: &mut HashSet<Inode>,
    ) -> Descend {
        if self.scan.patterns.hide(path) {
            if kind.is_symlink() {
                if let Some(target) = self.target(path) {
                    let led = follow(self.scan.root, self.scan.root_path, Path::new(""), path);
                    self.found.links.extend(led.into_iter().flat_map(|led| led.by));
                    self.found.placed.extend(self.found.links.keys().cloned().chain([target.clone()]));
                    self.found.hidden.push(target);
                }
                return false;
            }
            if is_branch(dir, path) {
                return false;
            }
            if self.scan.patterns.hide_place(path) {
                self.found.placed.push(path.to_owned());
            }
            let name = path.file_name().unwrap_or_default();
            if let Ok(found) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                && kind.is_file()
                && found.st_nlink > 1
                && found.st_dev != self.scan.masks
            {
                linked.insert((found.st_dev, found.st_ino));
            }
            self.found.hidden.push(path.to_owned());
            return false;
        }
        if path.file_name().is_some_and(|name| name == ".git") {
            self.found.git.push(path.to_owned());
        }
        true
    }

    fn by_inode(&mut self, dir: &OwnedFd, path: &Path, kind: FileType, linked: &HashSet<Inode>) -> Descend {
        if self.scan.patterns.hide(path) {
            return false;
        }
        if kind.is_file()
            && let Ok(found) = statat(dir, path.file_name().unwrap_or_default(), AtFlags::SYMLINK_NOFOLLOW)
            && linked.contains(&(found.st_dev, found.st_ino))
        {
            self.found.hidden.push(path.to_owned());
        }
        true
    }

    /// What a link leads to, if that is in the campaign. It is opened again without links before it is covered.
    fn target(&self, link: &Path) -> Option<PathBuf> {
        let target = std::fs::canonicalize(self.scan.root_path.join(link)).ok()?;
        let below = target.strip_prefix(self.scan.root_path).ok()?;
        (!below.as_os_str().is_empty()).then(|| below.to_owned())
    }
}

/// What git takes a directory for a repository by.
const IN_BARE: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];

/// Branches may have any name. Whether this is a record of git's of where one is or was, which nothing else looks like.
fn is_branch(dir: &OwnedFd, path: &Path) -> bool {
    let mut above = path.components().rev().skip(1);
    if !above.any(|part| part.as_os_str() == "refs") {
        return false;
    }
    let name = path.file_name().unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, name, flags, Mode::empty()) else { return false };
    if !fstat(&file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file()) {
        return false;
    }
    let mut text = Vec::new();
    let read = std::fs::File::from(file).take(BRANCH_BYTES).read_to_end(&mut text).is_ok();
    let is_commit = |word: &[u8]| matches!(word.len(), 40 | 64) && word.iter().all(u8::is_ascii_hexdigit);
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).peekable();
    read && lines.peek().is_some()
        && lines.all(|line| is_commit(line.split(|byte| *byte == b' ').next().unwrap_or_default()))
}

/// Of a longer one, this much is looked at, and so it is none.
const BRANCH_BYTES: u64 = 1024 * 1024;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

fn changed_at(found: &Stat) -> Duration {
    Duration::new(found.st_ctime.unsigned_abs(), u32::try_from(found.st_ctime_nsec).unwrap_or(0))
}

/// Neither a directory nor, as far as can be told, one that is not known to be.
fn is_plain(kind: FileType) -> bool {
    !matches!(kind, FileType::Directory | FileType::Unknown)
}

/// Gone, or replaced by something else.
fn is_gone(error: &io::Error) -> bool {
    const EXPECTED: [Errno; 4] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV];
    error.raw_os_error().is_some_and(|raw| EXPECTED.contains(&Errno::from_raw_os_error(raw)))
}

fn unsearchable(path: &Path, error: &io::Error) -> Refusal {
    Refusal {
        errno: error.raw_os_error(),
        ..Refusal::new(
            Stage::Hidden,
            format!("looking for hidden files in {}: {error}", path.display()),
            "move that directory out of the campaign",
        )
    }
}
