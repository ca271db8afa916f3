//! Covers hidden files, so that inside they can be neither read, renamed, linked nor deleted; and covers them again when
//! somebody outside has replaced them.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ostler_domain::hidden::Patterns;
use ostler_domain::limits::{MASK_LOOKS, MASK_TIME, MASKS};
use rustix::fs::{FileType, fstat};
use rustix::process::geteuid;

use crate::links;
use crate::mounts::{self, NOTHING, WRITABLE};
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::root::{MASK_DIR, MASK_FILE};
use crate::scan::{Found, Inode, Scan};

/// Looks at a campaign that is being changed while the agent runs; the next ones come soon.
const LOOKS_IN_PASSING: usize = 5;

pub(crate) struct Masks {
    root: OwnedFd,
    /// The root without masks, for who looks at everything when nobody is left inside.
    bare: OwnedFd,
    root_path: PathBuf,
    patterns: Patterns,
    file: OwnedFd,
    dir: OwnedFd,
    device: u64,
    linked: HashSet<Inode>,
    /// Directories that are mount points, so that nobody moves what is in them.
    fixed: HashSet<PathBuf>,
    /// Hidden when the agent was started.
    closed: Vec<PathBuf>,
    /// Links with hidden names, as they were when the agent was started, and what they said.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Masks that were put in place, some of them over files that are gone since.
    placed: usize,
    breach: Option<String>,
}

fn owner(root: BorrowedFd<'_>, path: &Path) -> Option<u32> {
    let found = mounts::handle_beneath(root, path).and_then(|handle| Ok(fstat(handle)?));
    found.ok().map(|found| found.st_uid)
}

/// What came of a word that something had changed.
pub(crate) struct Changed {
    pub(crate) covered: usize,
    pub(crate) look_at_all: bool,
}

impl Masks {
    /// For the root at `root_path`, as it is seen inside.
    pub(crate) fn new(root_path: &Path, patterns: Patterns) -> Result<Masks, Refusal> {
        let open = |path: &Path| {
            mounts::handle(path).or_refuse(Stage::Hidden, format_args!("opening {}", path.display()))
        };
        let file = open(Path::new(MASK_FILE))?;
        let device = fstat(&file).or_refuse(Stage::Hidden, "looking at a mask")?.st_dev;
        let root = open(root_path)?;
        let bare = mounts::bare(&root).or_refuse(Stage::Hidden, "opening the root a second time")?;
        Ok(Masks {
            root,
            bare,
            root_path: root_path.to_owned(),
            patterns,
            file,
            dir: open(Path::new(MASK_DIR))?,
            device,
            linked: HashSet::new(),
            fixed: HashSet::new(),
            closed: Vec::new(),
            links: BTreeMap::new(),
            placed: 0,
            breach: None,
        })
    }

    /// Covers everything. A directory that is swapped at the wrong moment can put a mask on the wrong file: so it is
    /// done when two looks in a row, from which nothing can have hidden by moving, find nothing open.
    pub(crate) fn cover_all(&mut self) -> Result<Found, Refusal> {
        let began = Instant::now();
        let mut found = self.look(Path::new(""))?;
        let mut clean_looks = 0;
        for _ in 0..MASK_LOOKS {
            let covered = self.cover_found(&found)?;
            self.breach = None;
            clean_looks = if covered == 0 && found.is_whole { clean_looks + 1 } else { 0 };
            if clean_looks == 2 {
                self.links = found.links.clone();
                self.closed = found.hidden.iter().chain(&found.closed).cloned().collect();
                return Ok(found);
            }
            if began.elapsed() > MASK_TIME {
                break;
            }
            found = self.look(Path::new(""))?;
        }
        Err(Refusal::new(
            Stage::Hidden,
            "hidden files keep moving while the sandbox is being made",
            "wait until other programs and sessions are done with moving directories in this campaign",
        ))
    }

    /// Looks once more and covers what is new; returns how many were.
    pub(crate) fn cover_again(&mut self) -> Result<usize, Refusal> {
        self.cover_below(Path::new(""))
    }

    /// Covers what is new at and below paths of the campaign. What may have other names, or be reached by another way,
    /// takes a look at everything.
    pub(crate) fn cover_changed(&mut self, paths: &[PathBuf]) -> Result<Changed, Refusal> {
        let mut changed = Changed { covered: 0, look_at_all: false };
        for path in paths {
            if self.patterns.hide(path) {
                changed.look_at_all |= self.may_have_other_names(path);
                let path = std::slice::from_ref(path);
                changed.covered += self.cover(path).or_refuse(Stage::Hidden, "covering hidden files")?;
            } else if path.as_os_str().is_empty() {
                changed.look_at_all = true;
            } else {
                changed.covered += self.cover_below(path)?;
            }
        }
        Ok(changed)
    }

    fn may_have_other_names(&self, path: &Path) -> bool {
        let Ok(target) = mounts::handle_beneath(self.root.as_fd(), path) else { return false };
        fstat(&target).is_ok_and(|found| {
            FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_nlink > 1
        })
    }

    fn cover_below(&mut self, path: &Path) -> Result<usize, Refusal> {
        let mut covered = 0;
        for _ in 0..LOOKS_IN_PASSING {
            let found = self.look(path)?;
            let new = self.cover_found(&found)?;
            covered += new;
            if new == 0 && found.is_whole {
                break;
            }
        }
        Ok(covered)
    }

    /// Puts back links with hidden names, by which the next sandbox finds what they lead to; and says which.
    pub(crate) fn put_links_back(&self) -> Vec<PathBuf> {
        let changed = self.links.iter().filter(|(path, said)| links::put_back(self.root.as_fd(), path, said));
        changed.map(|(path, _)| path.clone()).collect()
    }

    /// Makes each directory above a mount point, from the outermost on.
    fn fix(&mut self, path: &Path) -> io::Result<()> {
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).filter(|above| *above != Path::new("")).collect();
        above.reverse();
        for dir in above {
            if self.fixed.contains(dir) {
                continue;
            }
            // What vanished holds nothing any more.
            let Ok(handle) = mounts::handle_beneath(self.root.as_fd(), dir) else { return Ok(()) };
            mounts::bind(&handle, &handle, WRITABLE)?;
            self.fixed.insert(dir.to_owned());
        }
        Ok(())
    }

    /// Covers what a look has found.
    fn cover_found(&mut self, found: &Found) -> Result<usize, Refusal> {
        for path in &found.placed {
            self.fix(path)
                .or_refuse(Stage::Hidden, format_args!("keeping {} in its place", path.display()))?;
        }
        let covering = |covered: io::Result<usize>| covered.or_refuse(Stage::Hidden, "covering hidden files");
        let mut covered = covering(self.cover(&found.hidden))?;
        for path in &found.closed {
            let is_agents = owner(self.root.as_fd(), path) == Some(geteuid().as_raw());
            let new = covering(self.cover(std::slice::from_ref(path)))?;
            if new > 0 && is_agents {
                // Who has closed it may have it open, and see through that what appears in it.
                self.breach =
                    Some(format!("{} was closed to those who look for hidden files", path.display()));
            }
            covered += new;
        }
        Ok(covered)
    }

    /// Why what is hidden may be seen all the same, since the agent runs.
    pub(crate) fn breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    /// The campaign as it is outside.
    pub(crate) fn bare(&self) -> BorrowedFd<'_> {
        self.bare.as_fd()
    }

    /// Every repository outside of what nobody could get into.
    pub(crate) fn look_at_git(&self) -> Result<Vec<PathBuf>, Refusal> {
        let patterns = Patterns::none();
        let scan =
            Scan { root: self.bare(), root_path: &self.root_path, patterns: &patterns, masks: self.device };
        let mut git = scan.look(Path::new(""), &mut HashSet::new())?.git;
        git.retain(|path| !self.closed.iter().any(|closed| path.starts_with(closed)));
        Ok(git)
    }

    fn look(&mut self, from: &Path) -> Result<Found, Refusal> {
        let scan = Scan {
            root: self.root.as_fd(),
            root_path: &self.root_path,
            patterns: &self.patterns,
            masks: self.device,
        };
        scan.look(from, &mut self.linked)
    }

    /// Covers those that are open, and returns how many were.
    fn cover(&mut self, paths: &[PathBuf]) -> io::Result<usize> {
        let mut covered = 0;
        for path in paths {
            // What vanished is not there to be read; what became a link is found by the next look.
            let Ok(target) = mounts::handle_beneath(self.root.as_fd(), path) else { continue };
            let found = fstat(&target)?;
            let kind = FileType::from_raw_mode(found.st_mode);
            if found.st_dev == self.device || kind.is_symlink() {
                continue;
            }
            if self.placed >= MASKS {
                let why = format!("there are more than {MASKS} of them");
                self.breach = Some(format!("hidden files cannot be covered: {why}"));
                return Err(io::Error::other(why));
            }
            let mask = if kind.is_dir() { &self.dir } else { &self.file };
            match mounts::bind(mask, target, NOTHING) {
                Ok(()) => {
                    covered += 1;
                    self.placed += 1;
                }
                // Deleted between the look and the mount.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(covered)
    }
}
