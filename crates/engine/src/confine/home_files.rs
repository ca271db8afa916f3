//! Files that a provider wants in an agent's home. The home is the agent's to change, so nothing that lies there is
//! believed: no link is followed, on no part of the way.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use ostler_providers::HomeFile;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, unlinkat};

/// The file's name while it is being written.
const HALF: &str = ".ostler-half";

pub(crate) fn write(home: &Path, files: &[HomeFile]) -> io::Result<()> {
    let root = open_dir(CWD, home, ResolveFlags::empty())?;
    files.iter().try_for_each(|file| put(&root, file))
}

/// Makes these directories, where they are not there.
pub(crate) fn make_dirs(home: &Path, dirs: &[PathBuf]) -> io::Result<()> {
    let root = open_dir(CWD, home, ResolveFlags::empty())?;
    dirs.iter().try_for_each(|dir| made_dir(&root, dir.components()).map(drop))
}

/// The names of some files in a directory.
pub(crate) fn files_in(home: &Path, dir: &Path, most: usize) -> io::Result<Vec<String>> {
    let root = open_dir(CWD, home, ResolveFlags::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(open_dir(&root, dir, inside())?)? {
        let entry = entry?;
        if entry.file_type() == FileType::RegularFile
            && let Ok(name) = entry.file_name().to_str()
        {
            names.push(name.to_owned());
        }
        if names.len() == most {
            break;
        }
    }
    Ok(names)
}

fn made_dir<'a>(root: &OwnedFd, parts: impl Iterator<Item = Component<'a>>) -> io::Result<OwnedFd> {
    let mut dir = root.try_clone()?;
    for part in parts {
        match mkdirat(&dir, part.as_os_str(), Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        dir = open_dir(&dir, Path::new(part.as_os_str()), inside())?;
    }
    Ok(dir)
}

/// Puts the file in the place of whatever is there.
fn put(root: &OwnedFd, file: &HomeFile) -> io::Result<()> {
    let strange = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no path below a home", file.path.display()),
        )
    };
    let mut parts: Vec<_> = file.path.components().collect();
    if !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
        return Err(strange());
    }
    let name = parts.pop().ok_or_else(strange)?;
    let dir = made_dir(root, parts.into_iter())?;
    match unlinkat(&dir, HALF, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let half = openat2(&dir, HALF, flags, Mode::RUSR | Mode::WUSR, inside())?;
    File::from(half).write_all(file.text.as_bytes())?;
    Ok(renameat(&dir, HALF, &dir, name.as_os_str())?)
}

fn inside() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn open_dir(at: impl std::os::fd::AsFd, path: &Path, resolve: ResolveFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(at, path, flags, Mode::empty(), resolve)?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn file(path: &str, text: &str) -> HomeFile {
        HomeFile { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn a_file_is_written_and_written_again() {
        let home = tempfile::tempdir().unwrap();
        for text in ["one", "two"] {
            write(home.path(), &[file(".agent/deep/settings.json", text)]).unwrap();
            assert_eq!(fs::read_to_string(home.path().join(".agent/deep/settings.json")).unwrap(), text);
        }
    }

    #[test]
    fn no_link_leads_out_of_the_home() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("precious"), "mine").unwrap();
        symlink(outside.path(), home.path().join("dir")).unwrap();
        assert!(write(home.path(), &[file("dir/precious", "theirs")]).is_err());
        symlink(outside.path().join("precious"), home.path().join("file")).unwrap();
        symlink(outside.path().join("precious"), home.path().join(HALF)).unwrap();
        write(home.path(), &[file("file", "theirs")]).unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(home.path().join("file")).unwrap(), "theirs");
        for path in ["../x", "/x", "a/../../x", ""] {
            assert!(write(home.path(), &[file(path, "x")]).is_err(), "{path}");
        }
    }
}
