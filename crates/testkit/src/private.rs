//! Whether what Ostler keeps is its user's alone.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// What lies below a directory and is anybody else's to read, write or enter, the directory itself too.
pub fn open_to_others(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut open, mut left) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(path) = left.pop() {
        let about = fs::symlink_metadata(&path)?;
        if about.is_symlink() {
            continue;
        }
        if about.permissions().mode() & 0o077 != 0 {
            open.push(path.clone());
        }
        if about.is_dir() {
            left.extend(fs::read_dir(&path)?.collect::<io::Result<Vec<_>>>()?.iter().map(fs::DirEntry::path));
        }
    }
    Ok(open)
}
