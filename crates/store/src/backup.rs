//! A copy of the record that can take its place: the database through SQLite's backup interface, then the
//! blobs. It appears under its name only when it is whole and on the disk.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ostler_domain::{Reason, Refusal};
use rusqlite::{Connection, backup::Backup, backup::StepResult};

use crate::{
    blob::create_dir,
    error::{Doing, Fault, ReadError},
    open::Paths,
    store::{Reader, Store},
};

/// Pages copied between two words about the progress.
const STEP_PAGES: i32 = 4_000;

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    pub pages: u64,
    pub pages_left: u64,
    pub blobs: u64,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("the store is closed")]
    Closed,
}

impl From<BackupError> for Refusal {
    fn from(error: BackupError) -> Refusal {
        match error {
            BackupError::Exists(_) => Refusal::new(Reason::InvalidArgument, error.to_string())
                .because("a backup never replaces anything"),
            BackupError::Fault(fault) => ReadError::Fault(fault).into(),
            BackupError::Closed => ReadError::Closed.into(),
        }
    }
}

impl Store {
    /// Copies the record as it is at this moment into a new directory. Commits go on meanwhile.
    pub async fn backup(
        &self,
        dest: &Path,
        mut progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<(), BackupError> {
        let dest = dest.to_owned();
        let done = self.read(move |reader| Ok(back_up(reader, &dest, &mut progress)));
        match done.await {
            Ok(done) => done,
            Err(ReadError::Fault(fault)) => Err(BackupError::Fault(fault)),
            Err(_) => Err(BackupError::Closed),
        }
    }
}

fn back_up(
    reader: &Reader,
    dest: &Path,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<(), BackupError> {
    if dest.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(dest.to_owned()));
    }
    let mut building = dest.as_os_str().to_owned();
    building.push(".partial");
    let building = PathBuf::from(building);
    let parent = dest.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_partial(&building).doing("remove an unfinished backup")?;
    create_dir(&building).doing("create the backup's directory")?;
    let copied = copy(reader, &Paths::below(&building), progress).and_then(|()| {
        sync_dir(&building)
            // Never over something that appeared meanwhile: a directory only replaces an empty one.
            .and_then(|()| fs::rename(&building, dest))
            .and_then(|()| sync_dir(parent))
            .doing("name the backup")
    });
    if copied.is_err() {
        let _ = remove_partial(&building);
    }
    Ok(copied?)
}

fn copy(reader: &Reader, to: &Paths, progress: &mut dyn FnMut(BackupProgress)) -> Result<(), Fault> {
    let source = &reader.connection;
    // Begins the snapshot that the surrounding transaction keeps: writers cannot make the copy begin anew.
    source.query_row("SELECT count(*) FROM node_meta", [], |_| Ok(())).doing("read the database")?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to.db).doing("create the copy")?;
    let mut pages = 0;
    let mut copy_pages = || -> rusqlite::Result<()> {
        let mut copy = Connection::open(&to.db)?;
        let backup = Backup::new(source, &mut copy)?;
        loop {
            let step = backup.step(STEP_PAGES)?;
            let now = backup.progress();
            pages = u64::try_from(now.pagecount).unwrap_or(0);
            progress(BackupProgress {
                pages,
                pages_left: u64::try_from(now.remaining).unwrap_or(0),
                blobs: 0,
            });
            if matches!(step, StepResult::Done) {
                return Ok(());
            }
        }
    };
    copy_pages().doing("copy the database")?;
    // After the database: a blob is there before the commit that names it.
    let blobs = copy_blobs(reader.blobs.dir(), &to.blobs).doing("copy the blobs")?;
    File::open(&to.db).and_then(|file| file.sync_all()).doing("sync the copy")?;
    progress(BackupProgress { pages, pages_left: 0, blobs });
    Ok(())
}

/// Blobs never change, so a second name for the same file is a copy; another file system needs a real one.
fn copy_blobs(from: &Path, to: &Path) -> io::Result<u64> {
    create_dir(to)?;
    let mut count = 0;
    for shelf in fs::read_dir(from)? {
        let shelf = shelf?;
        // What is not a shelf is a blob in the making.
        if !shelf.file_type()?.is_dir() {
            continue;
        }
        let to_shelf = to.join(shelf.file_name());
        create_dir(&to_shelf)?;
        for blob in fs::read_dir(shelf.path())? {
            let blob = blob?;
            count += u64::from(copy_blob(&blob.path(), &to_shelf)?);
        }
        sync_dir(&to_shelf)?;
    }
    sync_dir(to)?;
    Ok(count)
}

/// One that is being compressed has its other form by now; one that nobody needs is no loss.
fn copy_blob(blob: &Path, shelf: &Path) -> io::Result<bool> {
    let forms = [blob.to_owned(), blob.with_extension("zst"), blob.with_extension("")];
    for form in forms {
        let Some(name) = form.file_name() else { continue };
        let copy = shelf.join(name);
        if copy.exists() || fs::hard_link(&form, &copy).is_ok() {
            return Ok(true);
        }
        match fs::copy(&form, &copy) {
            Ok(_) => {
                File::open(&copy)?.sync_all()?;
                return Ok(true);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let _ = fs::remove_file(&copy);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn remove_partial(building: &Path) -> io::Result<()> {
    match fs::remove_dir_all(building) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
