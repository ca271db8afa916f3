//! Large event bodies, and pictures, as files named by their SHA-256: `blobs/ab/cdef…`. A file is whole and synced before the
//! commit that names it; one that no commit names does no harm. Those of archived sessions are compressed,
//! `blobs/ab/cdef….zst`, and read as before: there is always one of the two forms, and for a moment there are both.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use crate::open::remove_if_any;

/// The SHA-256 of a body.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

const COMPRESSION_LEVEL: i32 = 9;
/// A blob that was asked for this shortly ago may be named by a commit that is still on its way.
const IN_USE: Duration = Duration::from_secs(600);

/// The directory of blobs.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    dir: Arc<Path>,
    temporaries: Arc<AtomicU64>,
    /// Held while a file comes, goes or changes its form.
    changing: Arc<Mutex<()>>,
}

/// What a blob takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    pub(crate) plain: u64,
    pub(crate) compressed: u64,
}

impl Blobs {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        create_dir(dir)?;
        Ok(Self { dir: dir.into(), temporaries: Arc::default(), changing: Arc::default() })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, hash: &[u8]) -> PathBuf {
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let (shelf, name) = hex.split_at(hex.len().min(2));
        self.dir.join(shelf).join(name)
    }

    fn compressed_path(&self, hash: &[u8]) -> PathBuf {
        self.path(hash).with_extension("zst")
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a body a durable file, if it is not one yet.
    pub(crate) fn write(&self, hash: &Hash, bytes: &[u8]) -> io::Result<()> {
        let _changing = self.change();
        let path = self.path(hash);
        let shelf = path.parent().unwrap_or(&self.dir);
        create_dir(shelf)?;
        let is_there = fs::metadata(&path).is_ok_and(|found| found.len() == bytes.len() as u64);
        if is_there {
            touch(&path)?;
        } else if touch(&self.compressed_path(hash)).is_err() {
            self.write_anew(&path, bytes)?;
        }
        // Also when it was there: whoever wrote it may have died before this.
        File::open(shelf)?.sync_all()?;
        File::open(&self.dir)?.sync_all()
    }

    fn write_anew(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = self.dir.join(format!("tmp.{}.{number}", std::process::id()));
        let written = (|| {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(bytes)?;
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
        let bytes = self.bytes(hash).map_err(|error| (path.clone(), error))?;
        String::from_utf8(bytes)
            .map_err(|error| (path, io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())))
    }

    /// In whichever form it is. It may change its form between two looks, so the first is taken again.
    pub(crate) fn bytes(&self, hash: &[u8]) -> io::Result<Vec<u8>> {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let plain = || fs::read(self.path(hash));
        match plain() {
            Err(error) if is_missing(&error) => match self.expanded(hash) {
                Err(error) if is_missing(&error) => plain(),
                expanded => expanded,
            },
            read => read,
        }
    }

    fn expanded(&self, hash: &[u8]) -> io::Result<Vec<u8>> {
        zstd::decode_all(File::open(self.compressed_path(hash))?)
    }

    /// Writes a blob's compressed form beside it, durably. The plain one stays until [`Blobs::drop_plain`].
    pub(crate) fn compress(&self, hash: &[u8]) -> io::Result<Sizes> {
        let _changing = self.change();
        let compressed = self.compressed_path(hash);
        let plain = match fs::read(self.path(hash)) {
            Ok(plain) => plain,
            // Another session of the same words was archived before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let bytes = fs::metadata(&compressed)?.len();
                return Ok(Sizes { plain: bytes, compressed: bytes });
            }
            Err(error) => return Err(error),
        };
        let packed = zstd::encode_all(plain.as_slice(), COMPRESSION_LEVEL)?;
        self.write_anew(&compressed, &packed)?;
        self.sync_shelf(&compressed)?;
        Ok(Sizes { plain: plain.len() as u64, compressed: packed.len() as u64 })
    }

    /// Removes the plain form of a blob that has its compressed one.
    pub(crate) fn drop_plain(&self, hash: &[u8]) -> io::Result<()> {
        let _changing = self.change();
        match self.expanded(hash) {
            Ok(text) if crate::blob::hash(&text).as_slice() == hash => remove_if_any(&self.path(hash)),
            // What cannot be read back takes nothing's place.
            Ok(_) => remove_if_any(&self.compressed_path(hash)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives a blob its plain form back.
    pub(crate) fn expand(&self, hash: &[u8]) -> io::Result<()> {
        let _changing = self.change();
        let (path, compressed) = (self.path(hash), self.compressed_path(hash));
        if !path.exists() {
            self.write_anew(&path, &self.expanded(hash)?)?;
            self.sync_shelf(&path)?;
        }
        remove_if_any(&compressed)
    }

    /// Removes a blob that no event names, unless somebody has just asked for it. Says whether it is gone.
    pub(crate) fn remove(&self, hash: &[u8]) -> io::Result<bool> {
        let _changing = self.change();
        let forms = [self.path(hash), self.compressed_path(hash)];
        for form in &forms {
            let changed = fs::metadata(form).and_then(|found| found.modified());
            let is_in_use = |at: SystemTime| at.elapsed().is_ok_and(|age| age < IN_USE);
            if changed.is_ok_and(is_in_use) {
                return Ok(false);
            }
        }
        forms.iter().try_for_each(|form| remove_if_any(form))?;
        Ok(true)
    }

    fn sync_shelf(&self, path: &Path) -> io::Result<()> {
        File::open(path.parent().unwrap_or(&self.dir))?.sync_all()
    }
}

/// Says that somebody wants it.
fn touch(path: &Path) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::now())
}

/// Makes a directory for our eyes only, and its parents.
pub(crate) fn create_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
