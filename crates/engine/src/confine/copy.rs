//! A copy of an agent's home. The home is the agent's, who may be changing it just now: no link is followed, and what is
//! neither a file nor a directory nor a link stays behind.

use std::{
    ffi::CString,
    fs::{DirBuilder, File, Permissions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::Path,
};

use rustix::{
    fs::{CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, symlinkat},
    io::Errno,
};

/// What a home may have: some projects' histories and caches, not a disk.
const ENTRIES: usize = 200_000;
const BYTES: u64 = 4 << 30;
const DEPTH: usize = 64;

/// Copies a home to where there is none yet. A home that does not exist is an empty one.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    let from = match open_dir(CWD, from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    Copy { entries: ENTRIES, bytes: BYTES }.dir(&from, &open_dir(CWD, to)?, DEPTH)
}

/// What is left of the limits.
struct Copy {
    entries: usize,
    bytes: u64,
}

impl Copy {
    fn dir(&mut self, from: &OwnedFd, to: &OwnedFd, depth: usize) -> io::Result<()> {
        let too_much = || io::Error::new(io::ErrorKind::FileTooLarge, "it has more in it than is copied");
        let depth = depth.checked_sub(1).ok_or_else(too_much)?;
        for entry in Dir::read_from(from)? {
            let name: CString = entry?.file_name().to_owned();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries = self.entries.checked_sub(1).ok_or_else(too_much)?;
            match self.entry(from, to, &name, depth) {
                // It was there a moment ago: the agent lives.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
            if self.bytes == 0 {
                return Err(too_much());
            }
        }
        Ok(())
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CString, depth: usize) -> io::Result<()> {
        // Neither waits for a pipe nor follows a link.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match openat(from, name.as_c_str(), flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::LOOP) => {
                let target = readlinkat(from, name.as_c_str(), Vec::new())?;
                return Ok(symlinkat(target.as_c_str(), to, name.as_c_str())?);
            }
            // A socket, or a file that is nobody's to read.
            Err(Errno::NXIO | Errno::ACCESS) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let found = fstat(&opened)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                mkdirat(to, name.as_c_str(), Mode::RWXU)?;
                self.dir(&opened, &open_dir(to, name.as_c_str())?, depth)
            }
            FileType::RegularFile => self.file(opened, to, name, found.st_mode),
            _ => Ok(()),
        }
    }

    fn file(&mut self, from: OwnedFd, to: &OwnedFd, name: &CString, mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy = File::from(openat(to, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR)?);
        let copied = io::copy(&mut io::Read::take(File::from(from), self.bytes), &mut copy)?;
        self.bytes = self.bytes.saturating_sub(copied);
        // Programs stay programs; nothing becomes another user's.
        copy.set_permissions(Permissions::from_mode(mode & 0o700))
    }
}

fn open_dir(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_copy_has_what_the_home_has_and_nothing_that_its_links_lead_to() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join(".agent/deep")).unwrap();
        fs::write(from.join(".agent/deep/memory.jsonl"), "heron").unwrap();
        fs::write(from.join("tool"), "#!/bin/sh").unwrap();
        fs::set_permissions(from.join("tool"), Permissions::from_mode(0o755)).unwrap();
        fs::write(outside.path().join("secret"), "mine").unwrap();
        symlink(outside.path().join("secret"), from.join("link")).unwrap();
        symlink(outside.path(), from.join("links")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join(".agent/deep/memory.jsonl")).unwrap(), "heron");
        assert_eq!(fs::metadata(to.join("tool")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(fs::symlink_metadata(to.join("link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(to.join("links")).unwrap().is_symlink());
        assert!(!to.join("socket").exists());
        fs::write(to.join(".agent/deep/memory.jsonl"), "crane").unwrap();
        assert_eq!(fs::read_to_string(from.join(".agent/deep/memory.jsonl")).unwrap(), "heron");
        copy(&dir.path().join("none"), &dir.path().join("empty")).unwrap();
        assert!(dir.path().join("empty").is_dir());
    }

    #[test]
    fn too_much_is_not_copied() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (0..4).for_each(|n| fs::write(from.path().join(n.to_string()), "12345").unwrap());
        let copied = |entries, bytes| {
            let to = to.path().join(format!("{entries}-{bytes}"));
            fs::create_dir(&to).unwrap();
            let (from, to) = (open_dir(CWD, from.path()).unwrap(), open_dir(CWD, &to).unwrap());
            Copy { entries, bytes }.dir(&from, &to, DEPTH).is_ok()
        };
        assert!(copied(4, 21));
        assert!(!copied(3, 21) && !copied(4, 19));
    }
}
