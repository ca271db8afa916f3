//! Work trees that an agent made in the sandbox's memory, where nobody else is. What the repository knows of such a tree is
//! closed like that of any other, for nobody can tell who wrote it; the agent goes on with a copy in memory, which only
//! this sandbox sees.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use ostler_domain::git_config::directory_named_by;
use ostler_domain::limits::{OWN_TREE_BYTES, OWN_TREE_DEPTH};
use rustix::fs::{
    Dir, FileType, Mode, OFlags, StatVfsMountFlags, Timestamps, fstat, fstatfs, fstatvfs, futimens, mkdirat,
    openat,
};

use crate::mounts::{self, WRITABLE};

const TMPFS: rustix::fs::FsWord = 0x0102_1994;
const LOCK: &[u8] = b".lock";

/// Whether the directory of a work tree is closed already: read-only, or with one of these file systems over it. Whoever
/// makes another directory in its place outside takes that away.
pub(crate) fn is_covered(root: BorrowedFd<'_>, entry: &Path, own: &BTreeSet<u64>) -> bool {
    let look = || -> io::Result<bool> {
        let handle = mounts::handle_beneath(root, entry)?;
        let is_read_only = fstatvfs(&handle)?.f_flag.contains(StatVfsMountFlags::RDONLY);
        Ok(is_read_only || own.contains(&fstat(&handle)?.st_dev))
    };
    look().unwrap_or(false)
}

/// Whether a work tree lies in memory and says that `entry` is where the repository knows of it. The agent writes what is
/// read here: nothing is closed less for it.
pub(crate) fn is_here(tree: &str, entry: &Path) -> bool {
    let tree = Path::new(tree);
    let look = || -> io::Result<bool> {
        if fstatfs(mounts::handle(tree.parent().unwrap_or(Path::new("/")))?)?.f_type != TMPFS {
            return Ok(false);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(tree, flags, Mode::empty())?;
        if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
            return Ok(false);
        }
        let mut text = vec![0; 4096];
        let read = rustix::io::read(&file, &mut text)?;
        text.truncate(read);
        Ok(directory_named_by(&String::from_utf8_lossy(&text)).is_some_and(|named| Path::new(named) == entry))
    };
    look().unwrap_or(false)
}

/// Puts a copy in memory over the directory of a work tree. Says which file system that is.
pub(crate) fn cover_with_copy(root: BorrowedFd<'_>, entry: &Path) -> io::Result<u64> {
    let opened = mounts::open_beneath(root, entry, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
    let size = OWN_TREE_BYTES.to_string();
    let options = [("mode", "0755"), ("size", size.as_str()), ("nr_inodes", "4096")];
    let memory = mounts::make("tmpfs", &options, WRITABLE)?;
    let mut left = OWN_TREE_BYTES / 2;
    copy(&opened, memory.as_fd(), OWN_TREE_DEPTH, &mut left)?;
    let device = fstat(&memory)?.st_dev;
    mounts::attach(memory, mounts::handle_beneath(root, entry)?)?;
    Ok(device)
}

fn copy(from: &OwnedFd, to: BorrowedFd<'_>, depth: u32, left: &mut u64) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for found in Dir::read_from(from)? {
        let found = found?;
        let name = found.file_name();
        // What is half written stays so.
        if name == c"." || name == c".." || name.to_bytes().ends_with(LOCK) {
            continue;
        }
        let source = match openat(from, name, flags | OFlags::RDONLY, Mode::empty()) {
            Ok(source) => source,
            // A link, or gone by now.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOENT) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let stat = fstat(&source)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth > 0 => {
                mkdirat(to, name, Mode::from_raw_mode(0o755))?;
                let below = openat(to, name, flags | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
                copy(&source, below.as_fd(), depth - 1, left)?;
            }
            FileType::RegularFile => {
                let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                *left = left.checked_sub(size).ok_or_else(|| io::Error::other("there is too much in it"))?;
                let made = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let target = openat(to, name, made, Mode::from_raw_mode(0o644))?;
                let mut target = std::fs::File::from(target);
                io::copy(&mut io::Read::take(std::fs::File::from(source), size), &mut target)?;
                // Git compares when its index was written with when files were.
                let time =
                    rustix::fs::Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ };
                futimens(&target, &Timestamps { last_access: time, last_modification: time })?;
            }
            _ => {}
        }
    }
    Ok(())
}
