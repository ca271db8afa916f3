//! Links in the campaign: where they lead, and putting back those that others rely on. Nothing can be mounted on one.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, OFlags, RenameFlags, fstat, readlinkat, renameat_with, symlinkat};
use rustix::io::Errno;

use crate::log::log;
use crate::mounts::{handle_beneath, open_beneath};

/// As many as the kernel follows.
const FOLLOWED: usize = 40;
/// How often what was put in a link's place is set aside before it is left where it is.
const SET_ASIDE: usize = 1_000;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Led {
    /// Below the campaign's root, whether something is there or not.
    pub(crate) to: PathBuf,
    /// The links on the way, and what they say.
    pub(crate) by: Vec<(PathBuf, PathBuf)>,
}

/// Follows a path, as seen from a directory below the root; none if it leads out of the campaign, or to its root.
pub(crate) fn follow(root: BorrowedFd<'_>, root_path: &Path, from: &Path, path: &Path) -> Option<Led> {
    let mut at = root_path.join(from);
    let mut by = Vec::new();
    let mut waiting: VecDeque<OsString> = steps(path).collect();
    while let Some(step) = waiting.pop_front() {
        match step.as_bytes() {
            b"/" => at = PathBuf::from("/"),
            b".." => drop(at.pop()),
            _ => {
                at.push(&step);
                let Ok(below) = at.strip_prefix(root_path) else { continue };
                let Some(said) = link(root, below) else { continue };
                by.push((below.to_owned(), said.clone()));
                if by.len() > FOLLOWED {
                    return None;
                }
                at.pop();
                steps(&said).rev().for_each(|step| waiting.push_front(step));
            }
        }
    }
    let to = at.strip_prefix(root_path).ok().filter(|to| !to.as_os_str().is_empty())?;
    Some(Led { to: to.to_owned(), by })
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(OsString::from("/")),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Normal(name) => Some(name.to_owned()),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// What a link says; none if it is something else.
pub(crate) fn link(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let handle = handle_beneath(root, path).ok()?;
    if !FileType::from_raw_mode(fstat(&handle).ok()?.st_mode).is_symlink() {
        return None;
    }
    let said = readlinkat(&handle, "", Vec::new()).ok()?;
    Some(OsString::from_vec(said.into_bytes()).into())
}

/// Whether the link did not say `target`, and does again. What was put in its place is set aside beside it.
pub(crate) fn put_back(root: BorrowedFd<'_>, path: &Path, target: &Path) -> bool {
    if link(root, path).is_some_and(|said| said == target) {
        return false;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let Ok(dir) = open_beneath(root, parent, flags) else { return false };
    for number in 0..SET_ASIDE {
        let mut aside = name.to_owned();
        aside.push(format!("-put-aside-{number}"));
        match renameat_with(&dir, name, &dir, &aside, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => break,
            Err(Errno::EXIST) => {}
            Err(errno) => {
                log!("warden: {} cannot be put back: {errno}", path.display());
                return true;
            }
        }
    }
    if let Err(errno) = symlinkat(target, &dir, name) {
        log!("warden: {} cannot be put back: {errno}", path.display());
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_lead_into_the_campaign_or_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let root_path = dir.path().canonicalize().unwrap();
        let root = fs::File::open(&root_path).unwrap();
        fs::create_dir_all(root_path.join("real/deep")).unwrap();
        symlink("real", root_path.join("one")).unwrap();
        symlink("../one/deep", root_path.join("real/two")).unwrap();
        symlink(root_path.join("one"), root_path.join("three")).unwrap();
        symlink("four", root_path.join("four")).unwrap();
        symlink("/etc", root_path.join("out")).unwrap();
        let lead =
            |from: &str, path: &str| follow(root.as_fd(), &root_path, Path::new(from), Path::new(path));
        let to = |from: &str, path: &str| lead(from, path).map(|led| led.to);
        assert_eq!(to("sub", "../sep"), Some("sep".into()));
        assert_eq!(to("sub", "./x/."), Some("sub/x".into()));
        assert_eq!(to("", ".githooks"), Some(".githooks".into()));
        assert_eq!(to("", "one/none"), Some("real/none".into()));
        assert_eq!(to("", "three/two/x"), Some("real/deep/x".into()));
        assert_eq!(to("real", root_path.join("one").to_str().unwrap()), Some("real".into()));
        for outside in ["..", "../..", "/etc", "../../camp2/x", "real/..", "four", "out/passwd"] {
            assert_eq!(lead("", outside), None, "{outside}");
        }
        let by = lead("real", "two").unwrap().by;
        assert_eq!(
            by,
            [("real/two".into(), "../one/deep".into()), ("one".into(), "real".into())]
                as [(PathBuf, PathBuf); 2]
        );
    }

    #[test]
    fn a_link_is_put_back_whatever_stands_there() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("sub/.git");
        fs::create_dir(dir.path().join("sub")).unwrap();
        symlink("../real", &link).unwrap();
        let root = fs::File::open(dir.path()).unwrap();
        let put_back = || put_back(root.as_fd(), Path::new("sub/.git"), Path::new("../real"));
        assert!(!put_back());
        let changes: [&dyn Fn(); 4] = [
            &|| fs::remove_file(&link).unwrap(),
            &|| fs::remove_file(&link).and_then(|()| symlink("../other", &link)).unwrap(),
            &|| fs::remove_file(&link).and_then(|()| fs::create_dir(&link)).unwrap(),
            &|| fs::remove_file(&link).and_then(|()| fs::write(&link, "gitdir: ../other")).unwrap(),
        ];
        for change in changes {
            change();
            assert!(put_back());
            assert_eq!(fs::read_link(&link).unwrap(), PathBuf::from("../real"));
        }
    }
}
