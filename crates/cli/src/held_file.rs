//! Files that several commands at once may change: each reads, changes and writes while it holds the file's lock.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use ostler_domain::{Reason, Refusal};

/// Let go of when dropped.
pub(crate) struct Held(#[expect(dead_code, reason = "held, never read")] File);

/// Waits until nobody else changes the file. The lock is a file of its own: the one that is changed is replaced.
pub(crate) fn hold(path: &Path) -> Result<Held, Refusal> {
    let locked = || {
        make_dir(path)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
        file.lock()?;
        Ok(file)
    };
    locked().map(Held).map_err(|error| unwritable(path, &error))
}

/// Makes the directory of a file, private.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// What was wished for is well; the disk is not.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::DiskFull,
        io::ErrorKind::PermissionDenied => Reason::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem => Reason::StoreReadOnly,
        _ => Reason::Internal,
    };
    Refusal::new(reason, format!("{} cannot be written", path.display()))
        .because(error.to_string())
        .hint("OSTLER_HOME=DIR ostler …", "keeps everything in another directory")
}
