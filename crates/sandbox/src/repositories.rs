//! Where git's directories are: in a `.git`, or where one that is a file or a link says, and what their configuration
//! brings in from elsewhere in the campaign.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use ostler_domain::git_config::{self, directory_named_by};
use ostler_domain::limits::TAMPER_FILE_BYTES;
use rustix::fs::{FileType, OFlags, fstat, readlinkat};

use crate::mounts::{handle_beneath, open_beneath};

/// Everything below the campaign's root.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) files: Vec<PathBuf>,
    /// And what they say.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
}

/// Paths below the campaign's root that a configuration brings in.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) hooks: Vec<PathBuf>,
    pub(crate) includes: Vec<PathBuf>,
    pub(crate) has_worktree_config: bool,
}

impl Repositories {
    /// What is behind each `.git`.
    pub(crate) fn behind(root: BorrowedFd<'_>, root_path: &Path, git: &[PathBuf]) -> Repositories {
        let mut found = Repositories::default();
        for path in git {
            let around = path.parent().unwrap_or(Path::new(""));
            match kind(root, path) {
                Some(FileType::Directory) => found.directories.push(path.clone()),
                // The campaign's own cannot be put back in time: it is refused.
                Some(FileType::Symlink) if path != Path::new(".git") => {
                    let Some(target) = link(root, path) else { continue };
                    found.directories.extend(directory(root, root_path, around, &target));
                    found.links.insert(path.clone(), target);
                }
                Some(_) => {
                    let text = text(root, path).unwrap_or_default();
                    let target = directory_named_by(&text).map(Path::new);
                    found.directories.extend(target.and_then(|to| directory(root, root_path, around, to)));
                    found.files.push(path.clone());
                }
                None => {}
            }
        }
        found.directories.sort_unstable();
        found.directories.dedup();
        found
    }
}

/// What the configuration in this directory of git's names. Hooks are looked for from the work tree, which is the
/// directory around a `.git`, and may be anywhere for others: then from both.
pub(crate) fn named_by(root: BorrowedFd<'_>, root_path: &Path, git: &Path) -> Named {
    let config = text(root, &git.join("config")).unwrap_or_default();
    let git_config::Named { hooks, includes, has_worktree_config } = git_config::named(&config);
    let around = git.parent().unwrap_or(Path::new(""));
    let below = |from: &Path, name: &String| below_root(root_path, from, Path::new(name));
    Named {
        hooks: hooks.iter().filter_map(|name| below(around, name)).collect(),
        includes: includes.iter().filter_map(|name| below(git, name)).collect(),
        has_worktree_config,
    }
}

/// The directory that a path leads to, if it is one of the campaign's.
fn directory(root: BorrowedFd<'_>, root_path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let path = below_root(root_path, from, to)?;
    kind(root, &path)?.is_dir().then_some(path)
}

/// A path, as seen from a directory below the root, as one below the root itself; none if it leads out of it or to it.
fn below_root(root_path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let whole = root_path.join(from).join(to);
    let mut plain = PathBuf::new();
    for component in whole.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    let below = plain.strip_prefix(root_path).ok()?;
    (!below.as_os_str().is_empty()).then(|| below.to_owned())
}

fn kind(root: BorrowedFd<'_>, path: &Path) -> Option<FileType> {
    let found = handle_beneath(root, path).and_then(|handle| Ok(fstat(handle)?)).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

fn link(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let handle = handle_beneath(root, path).ok()?;
    let target = readlinkat(&handle, "", Vec::new()).ok()?;
    Some(std::ffi::OsString::from_vec(target.into_bytes()).into())
}

/// The beginning of a regular file; nobody is waited for.
fn text(root: BorrowedFd<'_>, path: &Path) -> Option<String> {
    let file = open_beneath(root, path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(TAMPER_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_the_campaign_or_nowhere() {
        let below = |from: &str, to: &str| below_root(Path::new("/camp"), Path::new(from), Path::new(to));
        assert_eq!(below("sub", "../sep"), Some("sep".into()));
        assert_eq!(below("sub", "/camp/sep/./x"), Some("sep/x".into()));
        assert_eq!(below("", ".githooks"), Some(".githooks".into()));
        for outside in ["..", "../..", "/etc", "../../camp2/x", "/camp"] {
            assert_eq!(below("sub", outside), None, "{outside}");
        }
    }
}
