//! Opening the record: what is there is checked, brought up to date, or refused; what is not there is created
//! whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::{
    blob::{Blobs, create_dir},
    check::Finding,
    connect::{self, Durability},
    error::{Doing, Fault, OpenError},
    node, reindex,
    schema::{self, Found},
    store::Store,
};

/// Where the parts of the record are.
#[derive(Debug, Clone)]
pub struct Paths {
    pub db: PathBuf,
    pub search: PathBuf,
    pub blobs: PathBuf,
}

impl Paths {
    /// The usual places below a state directory.
    pub fn below(state_dir: &Path) -> Self {
        Self {
            db: state_dir.join("ostler.db"),
            search: state_dir.join("search.db"),
            blobs: state_dir.join("blobs"),
        }
    }
}

/// What may differ between users of the store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Keep `search.db` up to date. Commands that only look at the record leave it alone.
    pub search: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { search: true }
    }
}

/// An open record, and what was strange about it.
pub struct Opened {
    pub store: Store,
    /// There was none before.
    pub created: bool,
    pub findings: Vec<Finding>,
}

impl Store {
    /// Opens the record, creating it if nothing of it exists.
    pub fn open(paths: &Paths, options: &Options) -> Result<Opened, OpenError> {
        let fail = |fault| OpenError::of(&paths.db, fault);
        let created = match fs::metadata(&paths.db) {
            Ok(found) if found.len() == 0 => {
                return Err(OpenError::Corrupt {
                    path: paths.db.clone(),
                    why: "the file is empty".to_owned(),
                });
            }
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                refuse_beside_remains(paths)?;
                create(&paths.db).map_err(fail)?;
                true
            }
            Err(error) => return Err(fail(Fault::io("look for the database", error))),
        };
        let mut connection = open_existing(&paths.db)?;
        let blobs = Blobs::open(&paths.blobs).doing("create the directory of blobs").map_err(fail)?;
        if !schema::has_derived(&connection).doing("read the database").map_err(fail)? {
            reindex::rebuild(&mut connection, &blobs).map_err(|error| OpenError::Corrupt {
                path: paths.db.clone(),
                why: format!("what is derived from its log cannot be made anew: {error}"),
            })?;
        }
        let (store, findings) = Store::start(connection, blobs, paths, options).map_err(fail)?;
        Ok(Opened { store, created, findings })
    }
}

/// A record whose database is gone is a damaged record, not a new one.
fn refuse_beside_remains(paths: &Paths) -> Result<(), OpenError> {
    let has_blobs = fs::read_dir(&paths.blobs).is_ok_and(|mut entries| entries.next().is_some());
    let remains = [(paths.search.exists(), &paths.search), (has_blobs, &paths.blobs)];
    match remains.into_iter().find(|(exists, _)| *exists) {
        Some((_, beside)) => Err(OpenError::Vanished { path: paths.db.clone(), beside: beside.clone() }),
        None => Ok(()),
    }
}

/// Builds a new database under another name first: a crash leaves no half of one at the real name.
fn create(path: &Path) -> Result<(), Fault> {
    let dir = path.parent().unwrap_or(Path::new("."));
    create_dir(dir).doing("create the state directory")?;
    let building = path.with_extension("db.new");
    for leftover in [building.clone(), sidecar(&building, "-wal"), sidecar(&building, "-shm")] {
        remove_if_any(&leftover).doing("remove an unfinished database")?;
    }
    // SQLite gives the files beside a database the mode of the database.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&building)
        .doing("create the database")?;
    let mut connection = connect::writer(&building, Durability::Full)?;
    schema::create(&mut connection)?;
    node::initialize(&connection)?;
    connection.close().map_err(|(_, error)| error).doing("write the new database")?;
    fs::rename(&building, path).and_then(|()| File::open(dir)?.sync_all()).doing("name the new database")
}

fn open_existing(path: &Path) -> Result<Connection, OpenError> {
    let fail = |fault| OpenError::of(path, fault);
    // Looked at before anything is changed: a newer or foreign file stays as it is.
    let probe = connect::reader(path).map_err(fail)?;
    let found = schema::inspect(&probe).doing("read the database").map_err(fail)?;
    drop(probe);
    match found {
        Found::Newer(found) => {
            return Err(OpenError::Newer { path: path.to_owned(), found, known: schema::VERSION });
        }
        Found::Foreign => {
            let why = "it is a database of another program".to_owned();
            return Err(OpenError::Corrupt { path: path.to_owned(), why });
        }
        Found::Current | Found::Older(_) => {}
    }
    let mut connection = connect::writer(path, Durability::Full).map_err(fail)?;
    if connection.is_readonly("main").doing("open the database").map_err(fail)? {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    if let Found::Older(version) = found {
        schema::migrate(&mut connection, version).map_err(fail)?;
    }
    Ok(connection)
}

pub(crate) fn sidecar(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(crate) fn remove_if_any(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
