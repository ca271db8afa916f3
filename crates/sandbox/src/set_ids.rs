//! Set-id bits on files that an agent leaves behind. The filters keep it from setting them, but for `openat2`, which has
//! the mode of a new file in memory: so at the end, when nobody is left inside, they are taken away.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ostler_domain::limits::{SCAN_ENTRIES, SCAN_PATH_BYTES, SCAN_TIME};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmodat, statat};

use crate::log::log;
use crate::mounts::open_beneath;

const SET_IDS: Mode = Mode::SUID.union(Mode::SGID);

/// The kernel gives a file the time of its last tick.
const TICK: Duration = Duration::from_millis(20);

/// Takes them off files below `root` that were made or changed since `since`, and says which files had them.
pub(crate) fn clear_new(root: BorrowedFd<'_>, since: SystemTime) -> Vec<PathBuf> {
    // Whoever has set the clock back meanwhile has made it useless for telling old files from new ones.
    let since = since.min(SystemTime::now()).duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = since.saturating_sub(TICK);
    let mut look = Look { since, began: Instant::now(), entries: 0, cleared: Vec::new() };
    if !look.below(root, Path::new("")) {
        log!("warden: too much to look at: there may be set-id files left");
    }
    look.cleared
}

struct Look {
    since: Duration,
    began: Instant,
    entries: usize,
    cleared: Vec<PathBuf>,
}

impl Look {
    /// Looks below a directory, which is known as `name`. False when it was given up.
    fn below(&mut self, root: BorrowedFd<'_>, name: &Path) -> bool {
        let mut waiting = vec![PathBuf::new()];
        while let Some(path) = waiting.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let Ok(dir) = open_beneath(root, &path, flags) else { continue };
            if path.as_os_str().len() > SCAN_PATH_BYTES {
                // Paths as long as the kernel takes lead on from here.
                if !self.below(dir.as_fd(), &name.join(&path)) {
                    return false;
                }
                continue;
            }
            for entry in Dir::read_from(&dir).into_iter().flatten().flatten() {
                let file = entry.file_name();
                if file.to_bytes() == b"." || file.to_bytes() == b".." {
                    continue;
                }
                self.entries += 1;
                if self.entries > SCAN_ENTRIES || self.began.elapsed() > SCAN_TIME {
                    return false;
                }
                let below = path.join(OsStr::from_bytes(file.to_bytes()));
                match entry.file_type() {
                    FileType::Directory => waiting.push(below),
                    FileType::RegularFile | FileType::Unknown => {
                        match statat(&dir, file, AtFlags::SYMLINK_NOFOLLOW) {
                            Ok(found) if is_new_set_id(&found, self.since) && clear(&dir, file, &found) => {
                                self.cleared.push(name.join(below));
                            }
                            Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => {
                                waiting.push(below)
                            }
                            _ => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        true
    }
}

fn is_new_set_id(found: &Stat, since: Duration) -> bool {
    let changed_at =
        Duration::new(found.st_ctime.unsigned_abs(), u32::try_from(found.st_ctime_nsec).unwrap_or(0));
    FileType::from_raw_mode(found.st_mode).is_file()
        && Mode::from_raw_mode(found.st_mode).intersects(SET_IDS)
        && changed_at >= since
}

/// Somebody else's file keeps them: the agent cannot have given it any.
fn clear(dir: &OwnedFd, name: &std::ffi::CStr, found: &Stat) -> bool {
    let mode = Mode::from_raw_mode(found.st_mode).difference(SET_IDS);
    match chmodat(dir.as_fd(), name, mode, AtFlags::empty()) {
        Ok(()) => true,
        Err(errno) => {
            log!(
                "warden: {} keeps its set-id bits: {errno}",
                Path::new(OsStr::from_bytes(name.to_bytes())).display()
            );
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_bits_go_and_old_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let make = |name: &str, mode| {
            fs::write(at(name), "x").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        };
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        fs::create_dir_all(at("deep/.git")).unwrap();
        make("old", 0o2644);
        std::thread::sleep(TICK * 3);
        let since = SystemTime::now();
        make("deep/.git/group", 0o2644);
        make("user", 0o4755);
        make("plain", 0o755);
        fs::set_permissions(at("deep"), Permissions::from_mode(0o2755)).unwrap();
        std::os::unix::fs::symlink("old", at("link")).unwrap();

        let root = File::open(dir.path()).unwrap();
        let mut cleared = clear_new(root.as_fd(), since);
        cleared.sort_unstable();
        assert_eq!(cleared, [PathBuf::from("deep/.git/group"), PathBuf::from("user")]);
        assert_eq!(
            [mode("deep/.git/group"), mode("user"), mode("plain"), mode("old")],
            [0o644, 0o755, 0o755, 0o2644]
        );
        assert_eq!(mode("deep"), 0o2755, "what a directory has concerns what is made in it, not who runs it");
        assert_eq!(clear_new(root.as_fd(), since), Vec::<PathBuf>::new());
    }

    #[test]
    fn no_path_is_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let root = File::open(dir.path()).unwrap();
        let name = "d".repeat(200);
        let mut at = OwnedFd::from(root.try_clone().unwrap());
        for _ in 0..50 {
            rustix::fs::mkdirat(&at, &name, Mode::from_raw_mode(0o755)).unwrap();
            at = open_beneath(at.as_fd(), Path::new(&name), OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(&at, "s", flags, Mode::from_raw_mode(0o644)).unwrap();
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o4755)).unwrap();
        let cleared = clear_new(root.as_fd(), SystemTime::now());
        assert_eq!(cleared.len(), 1);
        assert!(cleared[0].ends_with("s") && cleared[0].components().count() == 51);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_mode & 0o7777, 0o755);
    }
}
