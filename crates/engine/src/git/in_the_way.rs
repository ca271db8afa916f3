//! What stands where files are to be put back and no snapshot has. It would be lost, so that nothing is put back then.
//!
//! Git writes over what it ignores and over repositories within the tree, and what it lists of both ends at their
//! directories. So the directories themselves are asked, down to their last entry, hidden ones too.

use std::{
    collections::{BTreeSet, HashSet},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Names after which nobody looks for more.
const MOST: usize = 100;
/// The mode of a repository within a tree.
const REPOSITORY: &[u8] = b"160000";

/// What becomes of a tree when files are put back, as far as anything may stand in its way.
#[derive(Debug, Default)]
pub(super) struct Exchange<'a> {
    /// Files and links that go, or make room for something else. The snapshot of what is there has them.
    written_down: HashSet<&'a Path>,
    /// Repositories that go or make room. Their commit is all that the snapshot has of them.
    repositories: HashSet<&'a Path>,
    /// What comes where it is not yet, and whether it is a repository: git leaves a directory alone for one.
    coming: Vec<(&'a Path, bool)>,
}

impl<'a> Exchange<'a> {
    /// Reads `git diff-tree -r -z --raw --no-renames --diff-filter=ADT` of what is there and what is wanted.
    pub(super) fn read(said: &'a [u8]) -> Self {
        let mut exchange = Self::default();
        let mut fields = said.split(|byte| *byte == 0);
        while let (Some(raw), Some(path)) = (fields.next(), fields.next()) {
            let Some(raw) = raw.strip_prefix(b":") else { continue };
            let mut words = raw.split(|byte| *byte == b' ');
            let (Some(before), Some(after)) = (words.next(), words.next()) else { continue };
            let path = Path::new(OsStr::from_bytes(path));
            match before {
                b"000000" => {}
                REPOSITORY => drop(exchange.repositories.insert(path)),
                _ => drop(exchange.written_down.insert(path)),
            }
            if after != b"000000" {
                exchange.coming.push((path, after == REPOSITORY));
            }
        }
        exchange
    }

    /// What would be lost, as many names of it as anybody reads; those of directories end with a slash.
    pub(super) fn would_lose(&self, tree: &Path) -> BTreeSet<PathBuf> {
        let (mut lost, mut passed) = (BTreeSet::new(), HashSet::new());
        for (path, is_repository) in &self.coming {
            if lost.len() >= MOST {
                break;
            }
            if self.way_is_free(tree, path, &mut passed, &mut lost) {
                self.look_at(tree, path, *is_repository, &mut lost);
            }
        }
        lost
    }

    /// Whether all that is above it are directories, so that something may stand at the place itself.
    fn way_is_free(
        &self,
        tree: &Path,
        path: &'a Path,
        passed: &mut HashSet<&'a Path>,
        lost: &mut BTreeSet<PathBuf>,
    ) -> bool {
        let mut above: Vec<&Path> = path.ancestors().skip(1).take_while(|it| *it != Path::new("")).collect();
        above.reverse();
        for dir in above {
            if passed.contains(dir) {
                continue;
            }
            match what_is(&tree.join(dir)) {
                Ok(Found::Directory) if !self.is_kept_repository(tree, dir) => drop(passed.insert(dir)),
                Ok(Found::Directory) => {
                    lost.insert(as_directory(dir));
                    return false;
                }
                Ok(Found::Nothing) => return false,
                Ok(Found::Other) if self.written_down.contains(dir) => return false,
                Ok(Found::Other) | Err(_) => {
                    lost.insert(dir.to_owned());
                    return false;
                }
            }
        }
        true
    }

    fn look_at(&self, tree: &Path, path: &Path, is_repository: bool, lost: &mut BTreeSet<PathBuf>) {
        match what_is(&tree.join(path)) {
            Ok(Found::Nothing) => {}
            Ok(Found::Directory) if is_repository => {}
            Ok(Found::Directory) => self.look_below(tree, path, lost),
            Ok(Found::Other) if self.written_down.contains(path) => {}
            Ok(Found::Other) | Err(_) => drop(lost.insert(path.to_owned())),
        }
    }

    /// A directory makes room with all that is in it.
    fn look_below(&self, tree: &Path, dir: &Path, lost: &mut BTreeSet<PathBuf>) {
        let mut open = vec![dir.to_owned()];
        while let Some(dir) = open.pop() {
            if lost.len() >= MOST {
                return;
            }
            if self.is_kept_repository(tree, &dir) {
                lost.insert(as_directory(&dir));
                continue;
            }
            let Ok(entries) = entries(&tree.join(&dir)) else {
                lost.insert(as_directory(&dir));
                continue;
            };
            // No snapshot has a directory in which nothing is, other than one where a repository was to be.
            if entries.is_empty() && !self.repositories.contains(dir.as_path()) {
                lost.insert(as_directory(&dir));
            }
            for (name, is_directory) in entries {
                let path = dir.join(name);
                if is_directory {
                    open.push(path);
                } else if !self.written_down.contains(path.as_path()) {
                    lost.insert(path);
                }
            }
        }
    }

    /// One of which the snapshot has the commit, and that has anything in it.
    fn is_kept_repository(&self, tree: &Path, dir: &Path) -> bool {
        self.repositories.contains(dir) && !entries(&tree.join(dir)).is_ok_and(|entries| entries.is_empty())
    }
}

enum Found {
    Nothing,
    Directory,
    /// A file, a link wherever it leads, or anything else.
    Other,
}

fn what_is(path: &Path) -> io::Result<Found> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(Found::Directory),
        Ok(_) => Ok(Found::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

fn entries(dir: &Path) -> io::Result<Vec<(std::ffi::OsString, bool)>> {
    let told = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?.is_dir()))
    };
    fs::read_dir(dir)?.map(told).collect()
}

fn as_directory(dir: &Path) -> PathBuf {
    dir.join("")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const FILE: &str = "100644";
    const LINK: &str = "120000";
    const INNER: &str = "160000";
    const NONE: &str = "000000";

    /// What would be lost of a tree with these files (directories end with a slash) by these changes.
    fn lost(present: &[&str], changes: &[(&str, &str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), present);
        lost_in(dir.path(), changes)
    }

    fn make(tree: &Path, present: &[&str]) {
        for name in present {
            let path = tree.join(name);
            if name.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
        }
    }

    fn lost_in(tree: &Path, changes: &[(&str, &str, &str)]) -> Vec<String> {
        let said: String = changes
            .iter()
            .map(|(before, after, path)| format!(":{before} {after} aaaa bbbb X\0{path}\0"))
            .collect();
        let lost = Exchange::read(said.as_bytes()).would_lose(tree);
        lost.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_written_down_makes_room() {
        let changes = [(NONE, FILE, "conf"), (FILE, NONE, "conf/main"), (FILE, NONE, "conf/a/b")];
        assert!(lost(&["conf/main", "conf/a/b"], &changes).is_empty());
        let back = [(FILE, NONE, "conf"), (NONE, FILE, "conf/main"), (NONE, LINK, "conf/a/b")];
        assert!(lost(&["conf"], &back).is_empty());
        assert!(lost(&[], &back).is_empty());
        assert!(lost(&["conf"], &[(FILE, LINK, "conf")]).is_empty());
    }

    #[test]
    fn what_is_not_is_named_however_deep_it_lies() {
        let changes = [(NONE, FILE, "conf"), (FILE, NONE, "conf/main")];
        let of = |more: &[&str]| lost(&[&["conf/main"], more].concat(), &changes);
        assert_eq!(of(&["conf/target/debug/out"]), ["conf/target/debug/out"]);
        assert_eq!(of(&["conf/lib/.git/HEAD", "conf/.env"]), ["conf/.env", "conf/lib/.git/HEAD"]);
        assert_eq!(of(&["conf/empty/"]), ["conf/empty/"]);
        assert_eq!(of(&["conf/two\nlines"]), ["conf/two\nlines"]);
    }

    #[test]
    fn what_stands_above_is_named_unless_it_is_written_down() {
        assert_eq!(lost(&["keep"], &[(NONE, FILE, "keep/target/out")]), ["keep"]);
        assert_eq!(lost(&["keep/target"], &[(NONE, FILE, "keep/target/out")]), ["keep/target"]);
        assert_eq!(lost(&["local.db"], &[(NONE, FILE, "local.db")]), ["local.db"]);
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), &["elsewhere/file", "conf/main"]);
        symlink("elsewhere", dir.path().join("link")).unwrap();
        symlink("../elsewhere", dir.path().join("conf/link")).unwrap();
        assert_eq!(lost_in(dir.path(), &[(NONE, FILE, "link/new")]), ["link"]);
        assert!(lost_in(dir.path(), &[(LINK, NONE, "link"), (NONE, FILE, "link/new")]).is_empty());
        let changes = [(NONE, FILE, "conf"), (FILE, NONE, "conf/main")];
        assert_eq!(lost_in(dir.path(), &changes), ["conf/link"]);
    }

    #[test]
    fn repositories_stay_of_which_only_the_commit_is_known() {
        let inner = ["lib/kept", "lib/.git/HEAD"];
        assert_eq!(lost(&inner, &[(INNER, FILE, "lib")]), ["lib/"]);
        assert_eq!(lost(&inner, &[(INNER, NONE, "lib"), (NONE, FILE, "lib/new")]), ["lib/"]);
        assert_eq!(lost(&["up/lib/.git/HEAD"], &[(NONE, FILE, "up"), (INNER, NONE, "up/lib")]), ["up/lib/"]);
        // One that is not there has nothing to lose, and one that comes leaves a directory as it is.
        assert!(lost(&["lib/"], &[(INNER, FILE, "lib")]).is_empty());
        assert!(lost(&inner, &[(NONE, INNER, "lib")]).is_empty());
        assert_eq!(lost(&["lib"], &[(NONE, INNER, "lib")]), ["lib"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), &["conf/main", "conf/locked/file"]);
        let locked = dir.path().join("conf/locked");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
        // Root reads it all the same, and finds the file.
        let named = lost_in(dir.path(), &[(NONE, FILE, "conf"), (FILE, NONE, "conf/main")]);
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(named.len() == 1 && named[0].starts_with("conf/locked/"), "{named:?}");
    }

    #[test]
    fn names_are_bytes() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("conf")).unwrap();
        fs::write(dir.path().join(OsStr::from_bytes(b"conf/\xff")), "x").unwrap();
        let known = b":000000 100644 aaaa bbbb A\0conf\0:100644 000000 aaaa bbbb D\0conf/\xff\0";
        assert!(Exchange::read(known).would_lose(dir.path()).is_empty());
        let unknown = &known[..known.len() - 2];
        assert_eq!(Exchange::read(unknown).would_lose(dir.path()).len(), 1);
    }

    #[test]
    fn nobody_is_told_of_very_many() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..3 * MOST {
            make(dir.path(), &[&format!("conf/{number}/out")]);
        }
        let named = lost_in(dir.path(), &[(NONE, FILE, "conf")]).len();
        assert!((MOST..2 * MOST).contains(&named), "{named}");
    }
}
