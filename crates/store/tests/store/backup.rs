//! A backup is a record like the one it was made from.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use ostler_domain::{Event, Kind, event::Text};
use ostler_store::{BackupError, CheckDepth, block_on};

use crate::{
    samples::{at, event},
    support::{Owner, Place, open, whole_log},
};

#[test]
fn a_backup_made_under_load_opens_whole() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let large = Event::AgentCompletion(Text::from("x".repeat(50_000)));
    owner.record(&store, vec![(at(1), large)]).unwrap();
    let owner = &mut owner;
    let stop = AtomicBool::new(false);
    let dest = place.dir.path().join("copy");
    let told = Arc::new(AtomicU64::new(0));
    let acknowledged = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                last = owner.record(&store, vec![(at(2), event(Kind::AgentThinking, 1))]).unwrap().last_seq;
            }
            last
        });
        let least = store.last_seq();
        let tell = Arc::clone(&told);
        block_on(store.backup(&dest, move |progress| tell.store(progress.blobs, Ordering::Relaxed))).unwrap();
        stop.store(true, Ordering::Relaxed);
        (least, writing.join().unwrap())
    });
    assert_eq!(told.load(Ordering::Relaxed), 1);
    let copy = open(&dest);
    let (log, copied) = (whole_log(&store), whole_log(&copy));
    assert!((acknowledged.0..=acknowledged.1).contains(&(copied.len() as u64)));
    assert_eq!(copied, log[..copied.len()]);
    assert_eq!(block_on(copy.check(CheckDepth::Full)).unwrap().findings, []);
    assert_eq!(copy.node_id(), store.node_id());
    Owner::create(&copy, 2);
}

#[test]
fn a_backup_replaces_nothing_and_leaves_nothing_half_done() {
    let place = Place::new();
    let store = place.open();
    let dest = place.dir.path().join("copy");
    fs::create_dir(&dest).unwrap();
    let error = block_on(store.backup(&dest, |_| ())).unwrap_err();
    assert!(matches!(error, BackupError::Exists(path) if path == dest));
    fs::remove_dir(&dest).unwrap();
    // What an interrupted one left behind is in nobody's way.
    fs::create_dir_all(place.dir.path().join("copy.partial/blobs")).unwrap();
    block_on(store.backup(&dest, |_| ())).unwrap();
    assert!(!place.dir.path().join("copy.partial").exists());
    assert!(whole_log(&open(&dest)).is_empty());
}
