//! Links in git's directories. Git on the host follows them when it writes: a message, a list of what was fetched, a
//! log of a branch would end up in any file of the user's. Git itself makes none, so those that appear while the agent
//! runs are taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_domain::limits::SCAN_ENTRIES;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat, unlinkat};

use crate::links::put_back;
use crate::log::log;
use crate::mounts::open_beneath;

/// Named by what is in them, and written under names that nobody else chooses.
const OBJECTS: &str = "objects";

/// The links below git's directories, as they were found.
#[derive(Debug, Default)]
pub(crate) struct GitLinks {
    /// Directories of git's below the root.
    git: Vec<PathBuf>,
    known: BTreeSet<PathBuf>,
    /// Links that lead to repositories and to what they run, and what they say.
    repositories: BTreeMap<PathBuf, PathBuf>,
}

impl GitLinks {
    pub(crate) fn find(
        root: BorrowedFd<'_>,
        git: Vec<PathBuf>,
        repositories: BTreeMap<PathBuf, PathBuf>,
    ) -> GitLinks {
        let known = links(root, &git).into_iter().collect();
        GitLinks { git, known, repositories }
    }

    /// The directories of git's.
    pub(crate) fn git(&self) -> &[PathBuf] {
        &self.git
    }

    /// Removes new links, puts back those that lead to repositories, and says which.
    pub(crate) fn put_right(&self, root: BorrowedFd<'_>) -> Vec<PathBuf> {
        let mut changed = self.remove_new(root);
        let led_away = self.repositories.iter().filter(|(path, target)| put_back(root, path, target));
        changed.extend(led_away.map(|(path, _)| path.clone()));
        changed
    }

    /// Removes those that were not there, and says which. Whoever has made one may make it again, until nobody is left
    /// inside.
    fn remove_new(&self, root: BorrowedFd<'_>) -> Vec<PathBuf> {
        let new = links(root, &self.git).into_iter().filter(|path| !self.known.contains(path));
        new.filter(|path| remove(root, path)).collect()
    }
}

fn links(root: BorrowedFd<'_>, git: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries = 0;
    let mut waiting = git.to_vec();
    while let Some(path) = waiting.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let Ok(dir) = open_beneath(root, &path, flags) else { continue };
        for entry in Dir::read_from(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            entries += 1;
            if entries > SCAN_ENTRIES {
                log!("warden: more than {SCAN_ENTRIES} files in git's directories: not all were looked at");
                return found;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                kind => kind,
            };
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            let is_object_store = path.file_name().is_some_and(|name| name == OBJECTS);
            match kind {
                FileType::Symlink => found.push(below),
                FileType::Directory
                    if !is_object_store && name.to_bytes() != b"." && name.to_bytes() != b".." =>
                {
                    waiting.push(below);
                }
                _ => {}
            }
        }
    }
    found
}

fn remove(root: BorrowedFd<'_>, path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    // What was a link may have become something else, which is not ours to remove.
    open_beneath(root, parent, flags).is_ok_and(|dir| {
        statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
            && unlinkat(&dir, name, AtFlags::empty()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_new_links_go() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for made in [".git/logs/refs", ".git/objects/ab", "sub/.git"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        symlink("elsewhere", at(".git/refs")).unwrap();
        fs::write(at(".git/index"), "").unwrap();
        let root = fs::File::open(dir.path()).unwrap();
        let links = GitLinks::find(root.as_fd(), vec![".git".into(), "sub/.git".into()], BTreeMap::new());
        assert_eq!(links.put_right(root.as_fd()), Vec::<PathBuf>::new());

        let new = [".git/COMMIT_EDITMSG", ".git/logs/refs/heads", ".git/objects/pack", "sub/.git/FETCH_HEAD"];
        for name in new {
            symlink("/etc/passwd", at(name)).unwrap();
        }
        // Nobody writes through these.
        symlink("/etc/passwd", at("sub/link")).unwrap();
        let mut removed = links.put_right(root.as_fd());
        removed.sort_unstable();
        assert_eq!(removed, new.map(PathBuf::from));
        assert!(at(".git/refs").is_symlink() && at("sub/link").is_symlink() && at(".git/index").is_file());
        assert!(new.iter().all(|name| !at(name).is_symlink()));
    }
}
