//! Large event bodies as files named by their SHA-256: `blobs/ab/cdef…`. A file is whole and synced before the
//! commit that names it; one that no commit names does no harm.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sha2::{Digest, Sha256};

/// The SHA-256 of a body.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// The directory of blobs.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    dir: Arc<Path>,
    temporaries: Arc<AtomicU64>,
}

impl Blobs {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        create_dir(dir)?;
        Ok(Self { dir: dir.into(), temporaries: Arc::default() })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, hash: &[u8]) -> PathBuf {
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let (shelf, name) = hex.split_at(hex.len().min(2));
        self.dir.join(shelf).join(name)
    }

    /// Makes a body a durable file, if it is not one yet.
    pub(crate) fn write(&self, hash: &Hash, text: &str) -> io::Result<()> {
        let path = self.path(hash);
        let shelf = path.parent().unwrap_or(&self.dir);
        create_dir(shelf)?;
        let is_there = fs::metadata(&path).is_ok_and(|found| found.len() == text.len() as u64);
        if !is_there {
            self.write_anew(&path, text)?;
        }
        // Also when it was there: whoever wrote it may have died before this.
        File::open(shelf)?.sync_all()?;
        File::open(&self.dir)?.sync_all()
    }

    fn write_anew(&self, path: &Path, text: &str) -> io::Result<()> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = self.dir.join(format!("tmp.{}.{number}", std::process::id()));
        let written = (|| {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    pub(crate) fn read(&self, hash: &[u8]) -> Result<String, (PathBuf, io::Error)> {
        let path = self.path(hash);
        fs::read_to_string(&path).map_err(|error| (path, error))
    }
}

/// Makes a directory for our eyes only, and its parents.
pub(crate) fn create_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
