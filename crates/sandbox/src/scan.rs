//! A look through the campaign: hidden files under whatever name, and git's directories.
//!
//! Others may be changing it at the same time. Each directory is opened below the root without following a link, and
//! what vanishes is not there.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ostler_domain::limits::{SCAN_ENTRIES, SCAN_TIME};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::mounts::open_beneath;
use crate::patterns::Patterns;
use crate::refusal::{Refusal, Stage};

/// A file, whatever it is called.
pub(crate) type Inode = (u64, u64);

#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Paths below the root that are to be covered, or are.
    pub(crate) hidden: Vec<PathBuf>,
    /// `.git`, directory or file.
    pub(crate) git: Vec<PathBuf>,
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
        let mut walk = Walk { scan: self, found: Found::default(), entries: 0, began: Instant::now() };
        let known = linked.len();
        walk.all(from, |walk, dir, path, kind| walk.by_name(dir, path, kind, linked))?;
        // Only now is it known which files have other names; most campaigns have none, and are spared the second walk.
        if known > 0 || !linked.is_empty() {
            walk.all(from, |walk, dir, path, kind| walk.by_inode(dir, path, kind, linked))?;
        }
        Ok(walk.found)
    }
}

struct Walk<'a> {
    scan: &'a Scan<'a>,
    found: Found,
    entries: usize,
    began: Instant,
}

/// Whether to go on below an entry.
type Descend = bool;

impl Walk<'_> {
    fn all(
        &mut self,
        from: &Path,
        mut visit: impl FnMut(&mut Self, &OwnedFd, &Path, FileType) -> Descend,
    ) -> Result<(), Refusal> {
        let mut waiting = vec![from.to_owned()];
        while let Some(path) = waiting.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let dir = match open_beneath(self.scan.root, &path, flags) {
                Ok(dir) => dir,
                Err(error) if is_out_of_reach(&error) => continue,
                Err(error) => return Err(unsearchable(&path, &error)),
            };
            let entries = Dir::read_from(&dir).map_err(|errno| unsearchable(&path, &errno.into()))?;
            for entry in entries {
                let entry = entry.map_err(|errno| unsearchable(&path, &errno.into()))?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                self.count(&path)?;
                let below = path.join(OsStr::from_bytes(name));
                let kind = match entry.file_type() {
                    FileType::Unknown => match statat(&dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(_) => continue,
                    },
                    kind => kind,
                };
                if visit(self, &dir, &below, kind) && kind.is_dir() {
                    waiting.push(below);
                }
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
                self.found.hidden.extend(self.target(path));
                return false;
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
        if path.file_name().is_some_and(|name| name == ".git") && !kind.is_symlink() {
            self.found.git.push(path.to_owned());
            // Branches and objects may have any name.
            return false;
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

/// Gone, replaced, or closed to the agent as well.
fn is_out_of_reach(error: &io::Error) -> bool {
    const EXPECTED: [Errno; 5] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::ACCESS, Errno::XDEV];
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
