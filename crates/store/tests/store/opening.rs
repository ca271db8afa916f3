//! What may be opened, what is refused and how, who may look at it, and one daemon per directory.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use ostler_domain::{Reason, Refusal};
use ostler_store::{DirLock, LockError, OpenError, Options, Store};

use crate::support::{Owner, Place, whole_log};

fn refused(place: &Place) -> OpenError {
    Store::open(&place.paths(), &Options::default()).err().expect("it was opened")
}

fn reason(error: OpenError) -> Reason {
    Refusal::from(error).reason
}

fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    (0..50).for_each(|n| {
        Owner::create(&store, n);
    });
    place
}

#[test]
fn only_its_owner_may_look_at_it() {
    let place = Place::new();
    let state = place.dir.path().join("state");
    let store = Store::open(&ostler_store::Paths::below(&state), &Options::default()).unwrap();
    assert!(store.created && store.findings.is_empty());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("blobs")), 0o700);
    let files: Vec<_> = fs::read_dir(&state)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let place = filled();
    place.sql().pragma_update(None, "user_version", 2).unwrap();
    let before = fs::read(place.paths().db).unwrap();
    let error = refused(&place);
    assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }), "{error:?}");
    assert_eq!(reason(error), Reason::StoreNewer);
    assert_eq!(fs::read(place.paths().db).unwrap(), before);
}

#[test]
fn garbage_is_not_replaced() {
    for garbage in [
        b"not a database at all, but long enough to have a header of its own ....................".to_vec(),
        vec![0; 40_000],
        Vec::new(),
    ] {
        let place = Place::new();
        fs::write(place.paths().db, &garbage).unwrap();
        let error = refused(&place);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
        assert_eq!(reason(error), Reason::StoreCorrupt);
        assert_eq!(fs::read(place.paths().db).unwrap(), garbage);
    }
}

#[test]
fn another_program_s_database_is_refused() {
    let place = Place::new();
    place.sql().execute_batch("CREATE TABLE recipes(name TEXT)").unwrap();
    assert!(matches!(refused(&place), OpenError::Corrupt { .. }));
}

#[test]
fn a_truncated_database_is_refused() {
    let place = filled();
    let length = fs::metadata(place.paths().db).unwrap().len();
    fs::File::options().write(true).open(place.paths().db).unwrap().set_len(length / 2).unwrap();
    assert_eq!(reason(refused(&place)), Reason::StoreCorrupt);
}

#[test]
fn a_vanished_database_is_not_replaced_by_an_empty_one() {
    let place = filled();
    drop(Store::open(&place.paths(), &Options::default()).unwrap());
    fs::remove_file(place.paths().db).unwrap();
    let error = refused(&place);
    assert!(matches!(error, OpenError::Vanished { .. }), "{error:?}");
    assert!(!place.paths().db.exists());
}

/// A daemon that is killed leaves a database and a write-ahead log with what it acknowledged.
#[test]
fn what_a_killed_daemon_left_opens_with_all_of_it() {
    let place = Place::new();
    let store = place.open();
    (0..20).for_each(|n| {
        Owner::create(&store, n);
    });
    let left = Place::new();
    for name in ["ostler.db", "ostler.db-wal"] {
        fs::copy(place.dir.path().join(name), left.dir.path().join(name)).unwrap();
    }
    assert_eq!(whole_log(&left.open()), whole_log(&store));
}

#[test]
fn what_is_derived_and_not_there_is_made_anew() {
    let place = filled();
    let database = rusqlite::Connection::open(place.dir.path().join("ostler.db")).unwrap();
    database.execute_batch("DROP TABLE restart_refused; DROP TABLE message").unwrap();
    drop(database);
    drop(place.open());
    let database = rusqlite::Connection::open(place.dir.path().join("ostler.db")).unwrap();
    let count = |table: &str| -> i64 {
        database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("restart_refused"), 0);
    assert!(count("session") > 0);
}

#[test]
fn an_unfinished_creation_is_begun_again() {
    let place = Place::new();
    fs::write(place.dir.path().join("ostler.db.new"), b"half a database").unwrap();
    let store = place.open();
    Owner::create(&store, 1);
    assert_eq!(whole_log(&store).len(), 1);
    assert!(!place.dir.path().join("ostler.db.new").exists());
}

#[test]
fn a_database_that_another_program_holds_is_busy() {
    let place = filled();
    let other = place.sql();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    other.execute("UPDATE node_meta SET value = value", []).unwrap();
    assert_eq!(reason(refused(&place)), Reason::StoreBusy);
}

#[test]
fn a_directory_has_one_daemon() {
    let place = Place::new();
    let lock = DirLock::take(place.dir.path(), "0.1.0").unwrap();
    let error = DirLock::take(place.dir.path(), "0.1.1").unwrap_err();
    match &error {
        LockError::Held { pid, version, since } => {
            assert_eq!((*pid, version.as_deref()), (Some(std::process::id()), Some("0.1.0")));
            assert!(since.is_some());
        }
        LockError::Io { .. } => panic!("{error:?}"),
    }
    assert_eq!(Refusal::from(error).reason, Reason::DaemonRunning);
    drop(lock);
    // A name left by a dead holder is no lock.
    DirLock::take(place.dir.path(), "0.1.1").unwrap();
}
