//! Paths of file tools: below the working directory, or refused.
//!
//! The sandbox is the wall, for these tools as for the commands that the model runs; this is the sign on the door. It
//! keeps an honest model from wandering, and gives it a sentence to read instead of an error of the kernel.

use std::path::{Component, Path, PathBuf};

/// Finds what the model means by a path.
pub(super) fn find(root: &Path, path: &str) -> Result<PathBuf, String> {
    let outside = || format!("{path} is outside of the working directory {}", root.display());
    let mut found = root.to_owned();
    let relative = Path::new(path);
    let relative = match relative.strip_prefix(root) {
        Ok(below) => below,
        Err(_) if relative.is_absolute() => return Err(outside()),
        Err(_) => relative,
    };
    for part in relative.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir if found != root => {
                found.pop();
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    // Links are followed as far as the path exists.
    let existing = found.ancestors().find_map(|above| above.canonicalize().ok());
    match existing {
        Some(real) if real.starts_with(root) => Ok(found),
        _ => Err(outside()),
    }
}

/// A path for people and models: relative where it can be.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    if below.as_os_str().is_empty() { ".".to_owned() } else { below.display().to_string() }
}

/// Refuses what is no plain file: opening a pipe or a device may never return.
pub(super) fn is_file(path: &Path, named: &str) -> Result<u64, String> {
    let metadata = path.metadata().map_err(|error| format!("{named}: {error}"))?;
    if metadata.is_dir() {
        return Err(format!("{named} is a directory; use list_dir"));
    }
    if !metadata.is_file() {
        return Err(format!("{named} is not a regular file"));
    }
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        std::os::unix::fs::symlink("a", root.join("b")).unwrap();
        let inside = ["a", "./a/../a/new.txt", "b/new.txt", "not/yet/there", "."];
        for path in inside {
            assert!(find(&root, path).is_ok(), "{path}");
        }
        assert!(find(&root, root.join("a/x").to_str().unwrap()).is_ok());
        for path in
            ["..", "../../etc/passwd", "/etc/passwd", "etc/passwd", "a/../../x", "/proc/self/root/etc"]
        {
            assert!(find(&root, path).unwrap_err().contains("outside"), "{path}");
        }
    }
}
