//! Where git's directories are: in a `.git`, or where one that is a file or a link says, or bare ones; and what their
//! configuration brings in from elsewhere in the campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use ostler_domain::git_config::{self, directory_named_by};
use ostler_domain::limits::TAMPER_FILE_BYTES;
use rustix::fs::{FileType, OFlags, fstat};

use crate::links::follow;
use crate::mounts::{handle_beneath, open_beneath};

/// Names another directory as the one with the configuration.
pub(crate) const COMMONDIR: &str = "commondir";
/// In a directory of git's: those of its further work trees, which may be outside.
pub(crate) const WORKTREES: &str = "worktrees";
/// What a work tree has of its own, if the configuration says so.
pub(crate) const CONFIG_WORKTREE: &str = "config.worktree";

/// Everything below the campaign's root.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    pub(crate) directories: BTreeSet<PathBuf>,
    pub(crate) files: Vec<PathBuf>,
    /// On the way to them, and what they say.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    /// Where the work trees of each directory are.
    work_trees: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

/// What a configuration brings in, below the campaign's root.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) hooks: BTreeSet<PathBuf>,
    pub(crate) includes: BTreeSet<PathBuf>,
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    pub(crate) has_worktree_config: bool,
    /// Hooks lie in the campaign's root, among everything else.
    pub(crate) in_root: bool,
}

/// The campaign as it is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) path: &'a Path,
}

impl Repositories {
    /// What is behind each `.git`, and each bare one.
    pub(crate) fn behind(place: Place<'_>, git: &[PathBuf]) -> Repositories {
        let mut found = Repositories::default();
        for path in git {
            let around = path.parent().unwrap_or(Path::new(""));
            match place.kind(path) {
                Some(FileType::Directory) => found.add(place, path.clone(), around),
                // The campaign's own cannot be put back in time: it is refused.
                Some(FileType::Symlink) if path != Path::new(".git") => {
                    found.add_behind(place, Path::new(""), path, around);
                }
                Some(_) => {
                    let text = place.text(path).unwrap_or_default();
                    if let Some(to) = directory_named_by(&text) {
                        found.add_behind(place, around, Path::new(to), around);
                    }
                    found.files.push(path.clone());
                }
                None => {}
            }
        }
        found
    }

    fn add_behind(&mut self, place: Place<'_>, from: &Path, to: &Path, around: &Path) {
        let Some(led) = follow(place.root, place.path, from, to) else { return };
        self.links.extend(led.by);
        if place.kind(&led.to).is_some_and(FileType::is_dir) {
            self.add(place, led.to, around);
        }
    }

    fn add(&mut self, place: Place<'_>, directory: PathBuf, around: &Path) {
        // A work tree beside the first one obeys the configuration of that one.
        let shared = place.shared(&directory);
        for git in shared.into_iter().chain([directory.clone()]) {
            self.work_trees.entry(git).or_default().insert(around.to_owned());
        }
        self.directories.insert(directory);
    }

    /// What the configuration of one of the directories names, and what is brought in by that in turn. A relative path
    /// to hooks is looked for from each of its work trees, and from itself, in case it is bare.
    pub(crate) fn named_by(&self, place: Place<'_>, git: &Path) -> Named {
        let mut named = Named::default();
        let bases: BTreeSet<&Path> =
            self.work_trees.get(git).into_iter().flatten().map(PathBuf::as_path).chain([git]).collect();
        let own = place.entries(&git.join(WORKTREES)).into_iter().map(|tree| tree.join(CONFIG_WORKTREE));
        let mut waiting: Vec<PathBuf> = own.chain([git.join(CONFIG_WORKTREE), git.join("config")]).collect();
        let mut read = BTreeSet::new();
        while let Some(config) = waiting.pop() {
            if !read.insert(config.clone()) {
                continue;
            }
            let found = git_config::named(&place.text(&config).unwrap_or_default());
            named.has_worktree_config |= found.has_worktree_config;
            for (name, base) in found.hooks.iter().flat_map(|name| bases.iter().map(move |base| (name, base)))
            {
                match place.follow(base, name) {
                    Some(led) => {
                        named.links.extend(led.by);
                        named.hooks.insert(led.to);
                    }
                    None => named.in_root |= place.is_root(base, name),
                }
            }
            let beside = config.parent().unwrap_or(Path::new(""));
            for led in found.includes.iter().filter_map(|name| place.follow(beside, name)) {
                named.links.extend(led.by);
                named.includes.insert(led.to.clone());
                waiting.push(led.to);
            }
        }
        named
    }
}

impl Place<'_> {
    fn follow(&self, from: &Path, name: &str) -> Option<crate::links::Led> {
        // In a home, or beside the program: in no campaign.
        let is_elsewhere = name.is_empty() || name.starts_with('~') || name.starts_with("%(prefix)");
        if is_elsewhere { None } else { follow(self.root, self.path, from, Path::new(name)) }
    }

    /// Whether a path leads to the campaign's root.
    fn is_root(&self, from: &Path, name: &str) -> bool {
        // Something in it is in the campaign, if it is.
        let below = follow(self.root, self.path, from, &Path::new(name).join("x"));
        below.is_some_and(|led| led.to == Path::new("x"))
    }

    /// The directory whose configuration this one shares, if there is another.
    pub(crate) fn shared(&self, directory: &Path) -> Option<PathBuf> {
        let text = self.text(&directory.join(COMMONDIR))?;
        self.follow(directory, text.trim()).map(|led| led.to).filter(|shared| shared != directory)
    }

    /// Whether the directory of a further work tree says that the tree is outside of the campaign.
    pub(crate) fn is_elsewhere(&self, worktree: &Path) -> bool {
        self.tree_of(worktree).is_some_and(|tree| self.follow(worktree, &tree).is_none())
    }

    /// The `.git` of the tree that the directory of a further work tree names.
    pub(crate) fn tree_of(&self, worktree: &Path) -> Option<String> {
        Some(self.text(&worktree.join("gitdir"))?.trim().to_owned())
    }

    pub(crate) fn kind(&self, path: &Path) -> Option<FileType> {
        let found = handle_beneath(self.root, path).and_then(|handle| Ok(fstat(handle)?)).ok()?;
        Some(FileType::from_raw_mode(found.st_mode))
    }

    pub(crate) fn entries(&self, path: &Path) -> Vec<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let Ok(dir) = open_beneath(self.root, path, flags) else { return Vec::new() };
        let entries = rustix::fs::Dir::new(dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()));
        names.filter(|name| name != "." && name != "..").map(|name| path.join(name)).collect()
    }

    /// The beginning of a regular file; nobody is waited for.
    fn text(&self, path: &Path) -> Option<String> {
        let file =
            open_beneath(self.root, path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK).ok()?;
        if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(TAMPER_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
