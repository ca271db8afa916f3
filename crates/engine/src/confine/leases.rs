//! What a session may write of its root, where it may not write all of it: leases, looked up when its agent starts.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use ostler_domain::{
    limits::{LEASE_LOOKS, LEASED_PATHS},
    mission::lease::{is_pattern, matches},
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, chownat, mkdirat, openat2},
    io::Errno,
    process::{Gid, Uid, geteuid},
};

/// What these leases are of, below the root: directories and files that are there. A directory that is named and is not
/// there is made; what a repository in the root needs for commits is always among them.
pub(crate) fn resolve(root: &Path, leases: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for lease in leases {
        if is_pattern(lease) {
            let names: Vec<&str> = lease.split('/').collect();
            let mut looks = 0;
            expand(root, Path::new(""), &names, &mut found, &mut looks)
                .map_err(|error| format!("{lease}: {error}"))?;
        } else {
            there(root, Path::new(lease)).map_err(|error| format!("{lease}: {error}"))?;
            found.push(PathBuf::from(lease));
        }
    }
    if root.join(".git").is_dir() {
        found.push(".git".into());
    }
    found.sort();
    // What lies in one of the others needs no place of its own.
    found.dedup_by(|later, first| later.starts_with(first));
    Ok(found)
}

fn open_beneath(root: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

/// Sees to it that something is at a path. Agents may be at work in the root: no link is followed.
fn there(root: &Path, path: &Path) -> io::Result<()> {
    let root = rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    match open_beneath(&root, path, OFlags::PATH) {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {}
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(io::Error::other("a link leads elsewhere, and is not leased"));
        }
        found => return found.map(drop),
    }
    let owner = File::from(root.try_clone()?).metadata()?;
    let mut at = root;
    for name in path.components() {
        let name: &Path = name.as_ref();
        match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
            Ok(()) if geteuid().is_root() && owner.uid() != 0 => {
                let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
                chownat(&at, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = open_beneath(&at, name, OFlags::PATH | OFlags::DIRECTORY)?;
    }
    Ok(())
}

/// Adds what the names of a pattern fit below a directory. Links are nobody's to lease.
fn expand(
    root: &Path,
    at: &Path,
    names: &[&str],
    found: &mut Vec<PathBuf>,
    looks: &mut usize,
) -> io::Result<()> {
    let Some((name, rest)) = names.split_first() else {
        if found.len() >= LEASED_PATHS {
            return Err(io::Error::other(format!("it fits more than {LEASED_PATHS} files")));
        }
        found.push(at.to_owned());
        return Ok(());
    };
    // Any directories, also none.
    if *name == "**" {
        if rest.is_empty() {
            // All that is below: that is the directory itself, or each thing in the root.
            let all: &[&str] = if at.as_os_str().is_empty() { &["*"] } else { &[] };
            return expand(root, at, all, found, looks);
        }
        expand(root, at, rest, found, looks)?;
    }
    let entries = match fs::read_dir(root.join(at)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        *looks += 1;
        if *looks > LEASE_LOOKS {
            return Err(io::Error::other(format!("looking for it takes more than {LEASE_LOOKS} looks")));
        }
        let (file_name, kind) = (entry.file_name(), entry.file_type()?);
        let Some(text) = file_name.to_str().filter(|text| *text != ".git" && !kind.is_symlink()) else {
            continue;
        };
        let below = at.join(text);
        match *name {
            "**" if kind.is_dir() => expand(root, &below, names, found, looks)?,
            "**" => {}
            name if matches(name, text) && (rest.is_empty() || kind.is_dir()) => {
                expand(root, &below, rest, found, looks)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(root: &Path, leases: &[&str]) -> Result<Vec<String>, String> {
        let leases: Vec<String> = leases.iter().map(|lease| (*lease).to_owned()).collect();
        let found = resolve(root, &leases)?;
        Ok(found.iter().map(|path| path.display().to_string()).collect())
    }

    #[test]
    fn leases_are_looked_up_and_lead_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("camp");
        for path in ["src/api/a.rs", "src/api/b.ts", "src/ui/deep/a.rs", "docs/x.md"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), root.join("out")).unwrap();
        assert_eq!(resolved(&root, &["src/*/*.rs"]).unwrap(), ["src/api/a.rs"]);
        assert_eq!(resolved(&root, &["src/**/a.rs"]).unwrap(), ["src/api/a.rs", "src/ui/deep/a.rs"]);
        assert_eq!(resolved(&root, &["src/**", "src/api/a.rs"]).unwrap(), ["src"]);
        assert_eq!(resolved(&root, &["**"]).unwrap(), ["docs", "src"]);
        assert_eq!(resolved(&root, &["docs", "docs/x.md", "nothing/*"]).unwrap(), ["docs"]);
        assert_eq!(resolved(&root, &["new/place"]).unwrap(), ["new/place"]);
        assert!(root.join("new/place").is_dir());
        assert!(resolved(&root, &["*"]).unwrap().iter().all(|path| path != "out"));
        for link in ["out", "out/x"] {
            assert!(resolved(&root, &[link]).unwrap_err().contains("link"), "{link}");
        }
        assert!(!dir.path().join("x").exists());
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(resolved(&root, &["docs"]).unwrap(), [".git", "docs"]);
    }
}
