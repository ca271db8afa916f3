//! What a file or directory is, in a few bytes: to be compared with what it is later.

use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ostler_domain::limits::{TAMPER_ENTRIES, TAMPER_FILE_BYTES};
use rustix::fs::{Dir, FileType, OFlags, fstat, readlinkat};
use sha2::{Digest, Sha256};

use crate::mounts::{handle_beneath, open_beneath};

pub(crate) type Fingerprint = [u8; 32];

/// In git's directories: what changes with every commit, and runs nothing.
const NOT_COMPARED: [&str; 4] = ["objects", "refs", "logs", "lfs"];

/// The fingerprint of what is at `path` below `root`; none if nothing is.
pub(crate) fn fingerprint(root: BorrowedFd<'_>, path: &Path) -> Option<Fingerprint> {
    let mut hasher = Sha256::new();
    let mut waiting = vec![path.to_owned()];
    let mut entries = 0;
    while let Some(at) = waiting.pop() {
        entries += 1;
        let exists = add(root, path, &at, &mut hasher, &mut waiting);
        if at == path {
            exists?;
        }
        if entries > TAMPER_ENTRIES {
            break;
        }
    }
    Some(hasher.finalize().into())
}

fn add(
    root: BorrowedFd<'_>,
    top: &Path,
    at: &Path,
    hasher: &mut Sha256,
    waiting: &mut Vec<PathBuf>,
) -> Option<()> {
    let handle = handle_beneath(root, at).ok()?;
    let found = fstat(&handle).ok()?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let name = at.strip_prefix(top).unwrap_or(at).as_os_str().as_bytes();
    hasher.update((name.len() as u64).to_le_bytes());
    hasher.update(name);
    hasher.update(found.st_mode.to_le_bytes());
    match kind {
        FileType::RegularFile => {
            hasher.update(found.st_size.to_le_bytes());
            // Not a device, and not a pipe that would keep us waiting: if it has become one, it is not read.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let mut bytes = Vec::new();
            if let Ok(file) = open_beneath(root, at, flags)
                && fstat(&file).is_ok_and(|again| again.st_ino == found.st_ino)
            {
                let _ = std::fs::File::from(file).take(TAMPER_FILE_BYTES).read_to_end(&mut bytes);
            }
            hasher.update(&bytes);
        }
        FileType::Symlink => {
            if let Ok(target) = readlinkat(&handle, "", Vec::new()) {
                hasher.update(target.as_bytes());
            }
        }
        FileType::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let entries =
                open_beneath(root, at, flags).map(|dir| Dir::new(dir).into_iter().flatten().flatten());
            let mut names: Vec<PathBuf> = entries
                .into_iter()
                .flatten()
                .map(|entry| std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
                .filter(|name| name != "." && name != "..")
                .filter(|name| !NOT_COMPARED.iter().any(|skipped| name == skipped))
                .map(|name| at.join(name))
                .collect();
            names.sort_unstable();
            waiting.extend(names);
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn every_change_shows_and_none_is_seen_where_none_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::File::open(dir.path()).unwrap();
        let now = || fingerprint(root.as_fd(), Path::new("hooks"));
        assert_eq!(now(), None);
        let hooks = dir.path().join("hooks");
        fs::create_dir_all(hooks.join("deep")).unwrap();
        let mut seen = vec![now().unwrap()];
        let mut expect_new = |what: &str| {
            let print = now().unwrap();
            assert!(!seen.contains(&print), "{what}");
            assert_eq!(now().unwrap(), print, "twice the same: {what}");
            seen.push(print);
        };
        fs::write(hooks.join("deep/pre-commit"), "a").unwrap();
        expect_new("a file");
        fs::write(hooks.join("deep/pre-commit"), "b").unwrap();
        expect_new("its text");
        fs::set_permissions(hooks.join("deep/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
        expect_new("its mode");
        fs::rename(hooks.join("deep/pre-commit"), hooks.join("deep/pre-push")).unwrap();
        expect_new("its name");
        symlink("/a", hooks.join("link")).unwrap();
        expect_new("a link");
        fs::remove_file(hooks.join("link")).unwrap();
        symlink("/b", hooks.join("link")).unwrap();
        expect_new("its target");
        fs::create_dir(hooks.join("objects")).unwrap();
        let before = now();
        fs::write(hooks.join("objects/x"), "x").unwrap();
        assert_eq!(now(), before, "objects are not compared");
    }
}
