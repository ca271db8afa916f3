//! The repository of which the root is a work tree, and which lies elsewhere: what of it stays as it is, what of it is
//! hidden, and the links that an agent leaves where git on the host would follow them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ostler_domain::confinement::{GIT_ENTRY_FIXED, GitDirectory};
use ostler_domain::hidden::Patterns;
use ostler_domain::limits::TAMPER_ENTRIES;
use rustix::fs::{FileType, fstat};

use crate::git_links::GitLinks;
use crate::log::log;
use crate::masks::Masks;
use crate::mounts::{self, READ_ONLY};
use crate::refusal::{OrRefuse, Refusal, Stage};

pub(crate) struct Repository {
    path: PathBuf,
    root: OwnedFd,
    links: GitLinks,
    masks: Masks,
    removed: BTreeSet<PathBuf>,
}

impl Repository {
    /// Protects it. The mounts of the root are in place.
    pub(crate) fn protect(git: &GitDirectory, hidden: &[String]) -> Result<Repository, Refusal> {
        // Its names are hidden by where they are in the campaign, of which nothing else is here.
        let campaign = git.path.parent().unwrap_or(Path::new("/"));
        let mut masks = Masks::new(campaign, Patterns::new(hidden))?;
        masks.cover_all()?;
        // Behind the masks: to keep one in its place, what is above it may have been mounted on itself.
        let root = mounts::handle(&git.path).or_refuse(Stage::Tooling, "opening the repository")?;
        if git.commits {
            GIT_ENTRY_FIXED.iter().try_for_each(|name| fix(&root, &git.own().join(name)))?;
        }
        let links = GitLinks::find(root.as_fd(), git.written(), BTreeMap::new());
        Ok(Repository { path: git.path.clone(), root, links, masks, removed: BTreeSet::new() })
    }

    /// Covers hidden files that are new; returns how many were.
    pub(crate) fn cover_again(&mut self) -> Result<usize, Refusal> {
        self.masks.cover_again()
    }

    pub(crate) fn breach(&self) -> Option<&str> {
        self.masks.breach()
    }

    /// Takes away links that git on the host would write through.
    pub(crate) fn put_right(&mut self) {
        for link in self.links.put_right(self.root.as_fd()) {
            log!("warden: took away {}, a link that git on the host would follow", link.display());
            if self.removed.len() < TAMPER_ENTRIES {
                self.removed.insert(link);
            }
        }
    }

    /// What was put right.
    pub(crate) fn changed(&self) -> impl Iterator<Item = String> + '_ {
        self.removed.iter().map(|link| self.path.join(link).display().to_string())
    }
}

/// Whoever could change it would have git on the host read another configuration.
fn fix(root: &OwnedFd, path: &Path) -> Result<(), Refusal> {
    let doing = || format!("protecting {} of the repository", path.display());
    let handle = mounts::handle_beneath(root.as_fd(), path).or_refuse(Stage::Tooling, doing())?;
    let found = fstat(&handle).or_refuse(Stage::Tooling, doing())?;
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(Refusal::new(
            Stage::Tooling,
            format!("{} of the repository is no file, so that it cannot be protected", path.display()),
            "remove it, and start again: it is made anew",
        ));
    }
    mounts::bind(&handle, &handle, READ_ONLY).or_refuse(Stage::Tooling, doing())
}
