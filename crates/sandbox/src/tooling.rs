//! Files in a campaign that make programs of the host run code: read-only inside, and compared at the end.
//!
//! A mount point cannot be renamed or deleted. So each protected file is one, and so is each directory between it and
//! the campaign's root, or an agent would move the directory away and make another.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ostler_domain::confinement::{self, Protect};
use ostler_domain::limits::{OWN_TREES, PLACEHOLDER_WAIT, TAMPER_ENTRIES};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, linkat, mkdirat, openat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::fingerprint::{Fingerprint, fingerprint};
use crate::git_links::GitLinks;
use crate::links::follow;
use crate::log::log;
use crate::mounts::{self, READ_ONLY, WRITABLE};
use crate::own_trees;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::repositories::{COMMONDIR, CONFIG_WORKTREE, Place, Repositories, WORKTREES};

/// In the campaign's root: settings of editors and agents, which run commands when the directory is opened.
const TOP: [(&str, Placeholder); 8] = [
    (".vscode", Placeholder::Directory),
    (".idea", Placeholder::Directory),
    (".claude", Placeholder::Directory),
    (".codex", Placeholder::Directory),
    (".husky", Placeholder::Directory),
    (".mcp.json", Placeholder::File("{}\n")),
    (".envrc", Placeholder::File("")),
    (".gitmodules", Placeholder::File("")),
];

/// In each `.git`.
const IN_GIT: [(&str, Placeholder); 5] = [
    ("config", Placeholder::File("")),
    (HOOKS, Placeholder::Directory),
    ("info/attributes", Placeholder::File("")),
    (CONFIG_WORKTREE, Placeholder::File("")),
    ("modules", Placeholder::Directory),
];

/// Names its own directory as the one with the configuration.
const COMMONDIR_TEXT: &str = ".\n";

/// In each directory of a further work tree.
const IN_WORKTREE: [&str; 3] = [COMMONDIR, "gitdir", CONFIG_WORKTREE];
const HOOKS: &str = "hooks";

/// What git runs of a directory with hooks.
const HOOK_NAMES: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

#[derive(Debug, Clone, Copy)]
enum Placeholder {
    Directory,
    File(&'static str),
}

pub(crate) struct Tooling {
    root: OwnedFd,
    root_path: PathBuf,
    before: BTreeMap<PathBuf, Before>,
    made: Vec<Made>,
    links: GitLinks,
    /// The file systems in memory with which the agent goes on in trees of its own.
    own_trees: BTreeSet<u64>,
    /// Every `.git` that was there, and the directory that it stood for, if there was one.
    repositories: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Links that were removed, or put back.
    removed: BTreeSet<PathBuf>,
}

/// What was there when the agent started.
struct Before {
    exists: bool,
    /// What wardens put there. It comes and goes with the sessions of a campaign, and is as good as nothing.
    placeholder: Option<Placeholder>,
    print: Option<Fingerprint>,
}

/// What a warden has made so that nobody inside can. All sessions of a campaign hold a lock on it; the last one removes
/// it.
struct Made {
    path: PathBuf,
    placeholder: Placeholder,
    lock: OwnedFd,
}

impl Tooling {
    /// Protects what the settings ask for. `git`: every `.git` below the root.
    pub(crate) fn protect(
        root_path: &Path,
        settings: &confinement::Tooling,
        git: &[PathBuf],
    ) -> Result<Tooling, Refusal> {
        let root = mounts::handle(root_path).or_refuse(Stage::Tooling, "opening the root")?;
        let mut tooling = Tooling {
            root,
            root_path: root_path.to_owned(),
            before: BTreeMap::new(),
            made: Vec::new(),
            links: GitLinks::default(),
            own_trees: BTreeSet::new(),
            repositories: BTreeMap::new(),
            removed: BTreeSet::new(),
        };
        let is_excepted = |path: &Path| settings.except.iter().any(|except| path.starts_with(except));
        let mut names: Vec<(PathBuf, Option<Placeholder>)> =
            TOP.map(|(name, placeholder)| (name.into(), Some(placeholder))).to_vec();
        let place = Place { root: tooling.root.as_fd(), path: root_path };
        let repositories = Repositories::behind(place, git);
        let each = git.iter().map(|path| (path.clone(), directories_behind(place, path))).collect();
        let mut links = repositories.links.clone();
        let mut pinned: Vec<PathBuf> = repositories.directories.iter().cloned().collect();
        pinned.retain(|path| !is_excepted(path));
        names.extend(repositories.files.iter().map(|path| (path.clone(), None)));
        let mut absent = Vec::new();
        for path in &pinned {
            names.extend(IN_GIT.map(|(name, placeholder)| (path.join(name), Some(placeholder))));
            names.push((path.join(COMMONDIR), None));
            let worktrees = place.entries(&path.join(WORKTREES));
            for worktree in &worktrees {
                names.extend(IN_WORKTREE.map(|name| (worktree.join(name), None)));
            }
            absent.push((path.join(COMMONDIR), Placeholder::File(COMMONDIR_TEXT)));
            absent.push((path.join(HOOKS), Placeholder::Directory));
            let named = repositories.named_by(place, path);
            if named.has_worktree_config {
                let all = worktrees.iter().chain([path]).map(|git| git.join(CONFIG_WORKTREE));
                absent.extend(all.map(|name| (name, Placeholder::File(""))));
            }
            // These may be files of somebody's, even if they are empty: only where there are none.
            let hooks = named.hooks.iter().map(|name| (name.clone(), Placeholder::Directory));
            let includes = named.includes.iter().map(|name| (name.clone(), Placeholder::File("")));
            absent.extend(hooks.chain(includes).filter(|(name, _)| place.kind(name).is_none()));
            links.extend(named.links);
            if named.in_root {
                names.extend(HOOK_NAMES.map(|name| (name.into(), None)));
            }
            for linked in named.hooks.iter().chain([&path.join(HOOKS)]).flat_map(|dir| place.entries(dir)) {
                // What a hook leads to is run as if it lay there.
                let Some(led) = follow(place.root, root_path, Path::new(""), &linked) else { continue };
                if led.to != linked {
                    links.extend(led.by.into_iter().filter(|(link, _)| *link != linked));
                    names.push((led.to, None));
                }
            }
            names.extend(named.hooks.into_iter().chain(named.includes).map(|name| (name, None)));
        }
        tooling.repositories = each;
        let placeholders: BTreeMap<PathBuf, Placeholder> = absent.iter().cloned().collect();
        absent.retain(|(name, _)| settings.protect != Protect::Off && !is_excepted(name));
        for (name, placeholder) in absent {
            let made = tooling.make(&name, placeholder).or_refuse(Stage::Tooling, name.display())?;
            tooling.made.extend(made);
        }
        names.retain(|(name, _)| !is_excepted(name));
        if settings.protect == Protect::Always {
            for (name, placeholder) in &names {
                let Some(placeholder) = placeholder else { continue };
                match tooling.fill(name, *placeholder) {
                    // Nobody inside makes it in a root that is read-only.
                    Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
                    filled => filled.or_refuse(Stage::Tooling, format_args!("making {}", name.display()))?,
                }
            }
        }
        for (name, placeholder) in &names {
            // Only what wardens make under this policy is theirs; anything else an agent made, however alike.
            let always = placeholder.filter(|_| settings.protect == Protect::Always);
            let placeholder = always.or_else(|| placeholders.get(name).copied());
            let print = tooling.print(name, placeholder);
            let exists = print.is_some() || tooling.is_there(name);
            tooling.before.insert(name.clone(), Before { exists, placeholder, print });
        }
        if settings.protect != Protect::Off {
            tooling.links = GitLinks::find(tooling.root.as_fd(), pinned.clone(), links);
            tooling.make_read_only(pinned)?;
            tooling.close_work_trees()?;
        }
        Ok(tooling)
    }

    /// What git knows of work trees outside of the campaign is closed, also of those that are made meanwhile: others work in
    /// them, and git there believes it. Of a tree in the sandbox's own memory the agent goes on with a copy.
    fn close_work_trees(&mut self) -> Result<(), Refusal> {
        let place = Place { root: self.root.as_fd(), path: &self.root_path };
        let all = self.links.git().iter().flat_map(|git| place.entries(&git.join(WORKTREES)));
        let is_open = |tree: &PathBuf| {
            place.is_elsewhere(tree) && !own_trees::is_covered(place.root, tree, &self.own_trees)
        };
        let open: Vec<PathBuf> = all.filter(is_open).collect();
        for entry in open {
            let tree = place.tree_of(&entry).filter(|_| self.own_trees.len() < OWN_TREES);
            if tree.is_some_and(|tree| own_trees::is_here(&tree, &self.root_path.join(&entry))) {
                match own_trees::cover_with_copy(place.root, &entry) {
                    Ok(memory) => {
                        self.own_trees.insert(memory);
                        continue;
                    }
                    Err(error) => log!("warden: {} is not copied, and is closed: {error}", entry.display()),
                }
            }
            self.over_itself(&entry, READ_ONLY)?;
        }
        Ok(())
    }

    fn make_read_only(&self, mut pinned: Vec<PathBuf>) -> Result<(), Refusal> {
        let existing: Vec<&PathBuf> =
            self.before.iter().filter(|(_, before)| before.exists).map(|(name, _)| name).collect();
        // Those above, or another would be put in their place; from the outermost on.
        let above: Vec<PathBuf> = existing
            .iter()
            .copied()
            .chain(&pinned)
            .flat_map(|name| name.ancestors().skip(1))
            .filter(|above| !above.as_os_str().is_empty())
            .map(Path::to_owned)
            .collect();
        pinned.extend(above);
        pinned.sort();
        pinned.dedup();
        for path in &pinned {
            self.over_itself(path, WRITABLE)?;
        }
        existing.into_iter().try_for_each(|name| self.over_itself(name, READ_ONLY))
    }

    fn over_itself(&self, path: &Path, attributes: rustix::mount::MountAttrFlags) -> Result<(), Refusal> {
        let shown = self.root_path.join(path);
        let doing = || format!("protecting {}", shown.display());
        let handle = mounts::handle_beneath(self.root.as_fd(), path).or_refuse(Stage::Tooling, doing())?;
        let found = fstat(&handle).or_refuse(Stage::Tooling, doing())?;
        if FileType::from_raw_mode(found.st_mode).is_symlink() {
            return Err(Refusal::new(
                Stage::Tooling,
                format!("{} is a link, which cannot be protected", shown.display()),
                "put what it leads to in its place, or do without: ostler campaign set NAME protect_tooling=off",
            ));
        }
        mounts::bind(&handle, &handle, attributes).or_refuse(Stage::Tooling, doing())
    }

    /// Makes sure that there is one, and locks it if it is of our making.
    fn make(&self, path: &Path, placeholder: Placeholder) -> io::Result<Option<Made>> {
        loop {
            match self.fill(path, placeholder) {
                // Where we may not make one, the agent may not either.
                Err(error) if is_closed(&error) => return Ok(None),
                filled => filled?,
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let lock = match mounts::open_beneath(self.root.as_fd(), path, flags) {
                Ok(lock) => lock,
                // The last session has just removed it: nobody has one any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return Ok(None),
            };
            if !placeholder.is(&lock) {
                return Ok(None);
            }
            lock_shared(&lock)?;
            // The last session may have removed it while we waited.
            let there =
                mounts::handle_beneath(self.root.as_fd(), path).and_then(|there| Ok(fstat(there)?.st_ino));
            if there.is_ok_and(|inode| fstat(&lock).is_ok_and(|ours| ours.st_ino == inode)) {
                return Ok(Some(Made { path: path.to_owned(), placeholder, lock }));
            }
        }
    }

    /// What is there, where it is more than what a warden would put there.
    fn print(&self, path: &Path, placeholder: Option<Placeholder>) -> Option<Fingerprint> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let is_ours = placeholder.is_some_and(|placeholder| {
            mounts::open_beneath(self.root.as_fd(), path, flags).is_ok_and(|found| placeholder.is(&found))
        });
        if is_ours { None } else { fingerprint(self.root.as_fd(), path) }
    }

    fn is_there(&self, path: &Path) -> bool {
        mounts::handle_beneath(self.root.as_fd(), path).is_ok()
    }

    fn fill(&self, path: &Path, placeholder: Placeholder) -> io::Result<()> {
        if self.is_there(path) {
            return Ok(());
        }
        let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        if !parent.as_os_str().is_empty() {
            self.fill(parent, Placeholder::Directory)?;
        }
        let parent = mounts::handle_beneath(self.root.as_fd(), parent)?;
        let made = match placeholder {
            Placeholder::Directory => mkdirat(&parent, name, Mode::from_raw_mode(0o755)),
            Placeholder::File(text) => make_whole(&parent, name, text),
        };
        match made {
            // Another session's warden was quicker.
            Err(Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Takes away links that git on the host would write through, and puts back those by which it finds repositories.
    pub(crate) fn put_right(&mut self) {
        for link in self.links.put_right(self.root.as_fd()) {
            log!("warden: put right {}, a link that git on the host would follow", link.display());
            if self.removed.len() < TAMPER_ENTRIES {
                self.removed.insert(link);
            }
        }
        // Behind the links, which nobody takes away once it is closed. One that is just being made, or just going, is
        // looked at again soon.
        if let Err(refusal) = self.close_work_trees() {
            log!("warden: {refusal}");
        }
    }

    /// Which of them are not what they were, whoever changed them.
    pub(crate) fn changed(&self) -> Vec<String> {
        let is_changed =
            |(name, before): &(&PathBuf, &Before)| self.print(name, before.placeholder) != before.print;
        let changed = self.before.iter().filter(is_changed).map(|(name, _)| name);
        changed.chain(&self.removed).map(|name| name.display().to_string()).collect()
    }

    /// Repositories that were not there: their configuration is whatever their maker wanted, and git on the host obeys
    /// it, also from the one around them.
    pub(crate) fn new_repositories(&self, found: &[PathBuf]) -> Vec<String> {
        // A work tree of a known one obeys that one's configuration, unless it has more of its own.
        let place = Place { root: self.root.as_fd(), path: &self.root_path };
        let is_known = |dir: &PathBuf| {
            let has_own = place.kind(&dir.join(CONFIG_WORKTREE)).is_some();
            let git = dir.parent().and_then(Path::parent).unwrap_or(Path::new(""));
            let is_its_tree = *dir == git.join(WORKTREES).join(dir.file_name().unwrap_or_default());
            let obeys = is_its_tree && !has_own && place.shared(dir).is_some_and(|shared| shared == git);
            self.links.git().contains(dir) || (obeys && self.links.git().iter().any(|known| known == git))
        };
        let is_new = |path: &&PathBuf| {
            let (before, now) = (self.repositories.get(*path), directories_behind(place, path));
            let obeys_known = !now.is_empty() && now.iter().all(is_known);
            before.is_none_or(|before| *before != now && !now.is_empty()) && !obeys_known
        };
        found.iter().filter(is_new).map(|path| path.display().to_string()).collect()
    }

    /// Removes what was made for a time, unless another session still needs it.
    pub(crate) fn clean_up(self) {
        // What lies in another was made later.
        for Made { path, placeholder, lock } in self.made.iter().rev() {
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() || !placeholder.is(lock) {
                continue;
            }
            let path = self.root_path.join(path);
            // It is a mount point of ours, and nobody is left inside.
            let removed = unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                .map_err(io::Error::from)
                .and_then(|()| match placeholder {
                    Placeholder::File(_) => std::fs::remove_file(&path),
                    Placeholder::Directory => std::fs::remove_dir(&path),
                });
            if let Err(error) = removed {
                log!("warden: {} stays: {error}", path.display());
            }
        }
    }
}

fn directories_behind(place: Place<'_>, path: &PathBuf) -> BTreeSet<PathBuf> {
    Repositories::behind(place, std::slice::from_ref(path)).directories
}

/// Only an ending session holds it for itself, and not for long. Should somebody else do so, they must not hold us up.
fn lock_shared(file: &OwnedFd) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let deadline = Instant::now() + PLACEHOLDER_WAIT;
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            locked => return Ok(locked?),
        }
    }
}

/// Makes a file that has its text from the first moment at which anybody can see it: another session's warden would take
/// one that is still empty for somebody's own.
fn make_whole(parent: &OwnedFd, name: &OsStr, text: &str) -> rustix::io::Result<()> {
    let mode = Mode::from_raw_mode(0o644);
    let unnamed = openat(parent, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode);
    if let Ok(file) = &unnamed {
        rustix::io::write(file, text.as_bytes())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match linkat(CWD, path.as_str(), parent, name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => return Err(Errno::EXIST),
            Err(_) => {}
        }
    }
    // Not every file system has files without a name.
    let other = format!(".ostler-{}-{}", std::process::id(), name.to_string_lossy());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(parent, other.as_str(), flags, mode)?;
    let made = rustix::io::write(&file, text.as_bytes())
        .and_then(|_| renameat_with(parent, other.as_str(), parent, name, RenameFlags::NOREPLACE));
    if made.is_err() {
        let _ = unlinkat(parent, other.as_str(), AtFlags::empty());
    }
    made
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

impl Placeholder {
    /// Whether this is one, or something that somebody has put there for a use.
    fn is(self, opened: &OwnedFd) -> bool {
        match self {
            Placeholder::Directory => rustix::fs::Dir::read_from(opened)
                .is_ok_and(|mut dir| dir.all(|entry| entry.is_ok_and(|entry| is_dot(entry.file_name())))),
            Placeholder::File(text) => {
                let mut found = [0; COMMONDIR_TEXT.len() + 1];
                let is_file =
                    fstat(opened).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file());
                is_file
                    && rustix::io::pread(opened, &mut found, 0)
                        .is_ok_and(|len| &found[..len] == text.as_bytes())
            }
        }
    }
}

fn is_dot(name: &std::ffi::CStr) -> bool {
    name == c"." || name == c".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_speaks_of_the_same_files() {
        assert_eq!(TOP.map(|(name, _)| name), confinement::TOOLING_TOP);
        assert_eq!(IN_GIT.map(|(name, _)| name), confinement::TOOLING_IN_GIT);
    }

    #[test]
    fn a_placeholder_has_its_text_when_it_is_first_seen() {
        let dir = tempfile::tempdir().unwrap();
        let parent = OwnedFd::from(std::fs::File::open(dir.path()).unwrap());
        let path = dir.path().join(COMMONDIR);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    if let Ok(text) = std::fs::read_to_string(&path) {
                        assert_eq!(text, COMMONDIR_TEXT);
                    }
                }
            });
            for _ in 0..2000 {
                make_whole(&parent, OsStr::new(COMMONDIR), COMMONDIR_TEXT).unwrap();
                let again = make_whole(&parent, OsStr::new(COMMONDIR), COMMONDIR_TEXT);
                assert_eq!(again, Err(Errno::EXIST));
                std::fs::remove_file(&path).unwrap();
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
