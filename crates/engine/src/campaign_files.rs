//! A campaign's files as the daemon looks at them: never through a link, never for long, and nothing is believed of them.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::Instant,
};

use ostler_domain::{
    git_index,
    hidden::Patterns,
    limits::{GIT_INDEX_BYTES, WALK_ENTRIES, WALK_TIME},
};
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

/// Directories full of what tools fetch and make; wardens look through them, and nobody watches them.
const PASSED_OVER: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", ".cache"];

pub(crate) fn is_passed_over(name: &Path) -> bool {
    PASSED_OVER.iter().any(|passed| name == Path::new(passed))
}

/// Directories at and below `from`, those with hidden files in them first, at most so many.
pub(crate) fn directories(root: &Path, from: &Path, patterns: &Patterns, most: usize) -> Vec<PathBuf> {
    let (mut with_hidden, mut others) = (Vec::new(), Vec::new());
    let Ok(root) = File::open(root) else { return with_hidden };
    let began = Instant::now();
    let mut entries = 0;
    let mut to_visit = VecDeque::from([from.to_owned()]);
    while let Some(path) = to_visit.pop_front() {
        let Ok(dir) = open(&root, &path, OFlags::RDONLY | OFlags::DIRECTORY) else { continue };
        let Ok(listed) = Dir::read_from(&dir) else { continue };
        let mut has_hidden = false;
        for entry in listed.flatten() {
            entries += 1;
            let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
            if name == Path::new(".") || name == Path::new("..") {
                continue;
            }
            let below = path.join(name);
            has_hidden |= patterns.hide(&below);
            let is_dir = entry.file_type() == FileType::Directory;
            if is_dir && !is_passed_over(name) && to_visit.len() < most {
                to_visit.push_back(below);
            }
        }
        if has_hidden {
            with_hidden.push(path)
        } else {
            others.push(path)
        }
        if entries > WALK_ENTRIES || began.elapsed() > WALK_TIME || with_hidden.len() + others.len() >= most {
            break;
        }
    }
    with_hidden.append(&mut others);
    with_hidden
}

/// Hidden files whose content is in git's history all the same, as far as the root's own index says.
pub(crate) fn tracked_hidden(root: &Path, patterns: &Patterns) -> Vec<String> {
    let Ok(index) = read_index(root) else { return Vec::new() };
    let mut tracked = Vec::new();
    // An index that is not understood to its end has said what it could.
    let _ = git_index::each_path(&index, |path| {
        let path = Path::new(OsStr::from_bytes(path));
        if patterns.hide(path) && tracked.len() < git_index::MOST_NAMED {
            tracked.push(path.to_string_lossy().into_owned());
        }
    });
    tracked
}

fn read_index(root: &Path) -> io::Result<Vec<u8>> {
    // Not blocking: somebody may have put a pipe there.
    let file = open(File::open(root)?, Path::new(".git/index"), OFlags::RDONLY | OFlags::NONBLOCK)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::from(file).take(GIT_INDEX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(root: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_with_hidden_files_come_first_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        for dir in ["a/b", "node_modules/x", ".git"] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        std::fs::write(root.path().join("a/b/.env"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("etc")).unwrap();
        let found = directories(root.path(), Path::new(""), &Patterns::new(&[]), 100);
        assert_eq!(found, ["a/b", "", "a"].map(PathBuf::from));
        assert_eq!(directories(root.path(), Path::new("a"), &Patterns::new(&[]), 1), [PathBuf::from("a")]);
        assert!(directories(root.path(), Path::new("etc"), &Patterns::new(&[]), 9).is_empty());
    }

    #[test]
    fn a_pipe_in_the_place_of_the_index_holds_nobody_up() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert!(tracked_hidden(root.path(), &Patterns::new(&[])).is_empty());
        let path = root.path().join(".git/index");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|made| made.success()) {
            assert!(tracked_hidden(root.path(), &Patterns::new(&[])).is_empty());
        }
    }
}
