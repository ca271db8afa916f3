//! Disks that fill up, refuse or rot. Tests that need a file system of their own need root, and say so.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ostler_domain::{Event, Kind, Reason, Refusal, event::Text};
use ostler_store::{CheckDepth, CommitError, FaultKind, OpenError, Options, Paths, Store, block_on};

use crate::{
    samples::{at, event},
    support::{Owner, Place, open, whole_log},
};

/// A small file system in memory; unmounted at the end.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn mount(test: &str, size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            Some(Self { dir })
        } else {
            eprintln!("skipped {test}: it needs leave to mount a file system");
            None
        }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn remount(&self, how: &str) {
        let output = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(self.dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.dir.path()).output();
    }
}

fn text(bytes: usize) -> Event {
    Event::AgentCompletion(Text::from("z".repeat(bytes)))
}

/// Fills the disk through commits of one size, then frees some of it.
fn fill_up(test: &str, body: usize) {
    let Some(disk) = SmallDisk::mount(test, "6m") else { return };
    let store = open(&disk.state());
    let spare = disk.dir.path().join("spare");
    fs::write(&spare, vec![1; 1024 * 1024]).unwrap();
    let mut owner = Owner::create(&store, 1);
    let mut acknowledged = 1;
    let error = loop {
        let before = Owner { state: owner.state.clone() };
        match owner
            .record(&store, vec![(at(2), text(body)), (at(3), event(Kind::AgentCompletion, acknowledged))])
        {
            Ok(_) => acknowledged += 2,
            Err(error) => {
                owner = before;
                break error;
            }
        }
        assert!(acknowledged < 10_000, "the disk never filled up");
    };
    assert!(matches!(&error, CommitError::Fault(fault) if fault.kind == FaultKind::DiskFull), "{error:?}");
    assert_eq!(Refusal::from(error).reason, Reason::DiskFull);
    // Reading works, and nothing that was acknowledged is missing, nothing that failed is there.
    assert_eq!(whole_log(&store).len() as u64, acknowledged);
    fs::remove_file(spare).unwrap();
    owner.record(&store, vec![(at(4), event(Kind::AgentThinking, 1))]).unwrap();
    assert_eq!(whole_log(&store).last().unwrap().seq, acknowledged + 1);
    drop(store);
    let store = open(&disk.state());
    assert_eq!(whole_log(&store).len() as u64, acknowledged + 1);
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, []);
}

#[test]
fn a_full_disk_is_said_and_passes() {
    fill_up("a_full_disk_is_said_and_passes", 4_000);
}

#[test]
fn a_disk_full_of_blobs_is_said_and_passes() {
    fill_up("a_disk_full_of_blobs_is_said_and_passes", 200_000);
}

#[test]
fn a_read_only_disk_is_said() {
    let Some(disk) = SmallDisk::mount("a_read_only_disk_is_said", "16m") else { return };
    drop(open(&disk.state()));
    disk.remount("ro");
    let error = Store::open(&Paths::below(&disk.state()), &Options::default()).err().expect("it was opened");
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
    disk.remount("rw");
    Owner::create(&open(&disk.state()), 1);
}

#[test]
fn a_read_only_file_is_said() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped a_read_only_file_is_said: root may write to any file");
        return;
    }
    let place = Place::new();
    drop(place.open());
    let mut permissions = fs::metadata(place.paths().db).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(place.paths().db, permissions).unwrap();
    let error = Store::open(&place.paths(), &Options::default()).err().expect("it was opened");
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
}

/// The pages of a table or index, by SQLite's own account.
fn pages_of(db: &Path, name: &str) -> Vec<u64> {
    let connection = rusqlite::Connection::open(db).unwrap();
    let root: u64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
        .unwrap()
        .cast_unsigned();
    vec![root]
}

fn overwrite(db: &Path, page: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::options().write(true).open(db).unwrap();
    file.write_all_at(bytes, (page - 1) * 8192).unwrap();
}

#[test]
fn rot_in_the_log_is_said_by_reads_commits_and_the_check() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, (0..200).map(|n| (at(n), text(500))).collect()).unwrap();
    drop(store);
    for page in pages_of(&place.paths().db, "log_event") {
        overwrite(&place.paths().db, page, &[0xee; 8192]);
    }
    let refusal = match Store::open(&place.paths(), &Options { search: false }) {
        Err(error) => Refusal::from(error),
        Ok(opened) => Refusal::from(block_on(opened.store.load_session(owner.id())).unwrap_err()),
    };
    assert_eq!(refusal.reason, Reason::StoreCorrupt);
}

#[test]
fn rot_in_a_derived_table_is_found_and_made_good() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, (0..50).map(|n| (at(n), event(Kind::UsageRecorded, n))).collect()).unwrap();
    drop(store);
    for page in pages_of(&place.paths().db, "usage") {
        overwrite(&place.paths().db, page, &[0xee; 8192]);
    }
    let store = place.open();
    let report = block_on(store.check(CheckDepth::Quick)).unwrap();
    assert!(report.findings.iter().any(|finding| finding.part == "database"), "{report:?}");
    // The log is whole, and so are commits that do not touch the damage.
    owner.record(&store, vec![(at(60), event(Kind::AgentThinking, 1))]).unwrap();
    let error = owner.record(&store, vec![(at(61), event(Kind::UsageRecorded, 1))]).unwrap_err();
    assert_eq!(Refusal::from(error).reason, Reason::StoreCorrupt);
    assert_eq!(whole_log(&store).len(), 52);
}
