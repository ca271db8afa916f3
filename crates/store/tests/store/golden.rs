//! Stored forms, pinned: the schema, a body of every kind, and a database of every released version, which must
//! open and be read for ever. Written anew with `OSTLER_BLESS=1`; a released one only ever with a migration.

use std::{fs, path::Path};

use ostler_domain::{Event, Kind, query::EventFilter};
use ostler_store::{CheckDepth, block_on};

use crate::{
    samples::{at, event, is_of_session, session_id},
    support::{Owner, Place, golden, input, mark, node_commit, open, whole_log},
};

#[test]
fn the_schema_is_what_it_was() {
    let place = Place::new();
    drop(place.open());
    let connection = place.sql();
    let mut statement = connection
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name")
        .unwrap();
    let all: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    golden("schema.sql", format!("-- version {version}\n{};\n", all.join(";\n")).as_bytes());
}

#[test]
fn every_body_is_stored_as_it_was() {
    let lines: String = Kind::ALL
        .iter()
        .map(|kind| format!("{}\t{}\t{}\n", kind.code(), kind.name(), event(*kind, 1).body()))
        .collect();
    golden("bodies.tsv", lines.as_bytes());
}

#[test]
fn every_stored_body_can_be_read() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/bodies.tsv")).unwrap();
    assert_eq!(text.lines().count(), Kind::ALL.len());
    for line in text.lines() {
        let [code, name, body] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        let kind = Kind::from_code(code.parse().unwrap()).unwrap();
        assert_eq!((kind.name(), Event::decode(kind, body).unwrap()), (name, event(kind, 1)));
    }
}

/// One session with an event of every kind, one without, and a bit of everything else.
fn fill_v1(place: &Place) {
    let store = place.open();
    for kind in Kind::ALL.iter().filter(|kind| !is_of_session(**kind)) {
        store.commit_blocking(node_commit(vec![(at(1), event(*kind, 1))])).unwrap();
    }
    let ends = |kind: &Kind| matches!(kind, Kind::SessionStopped | Kind::SessionFailed);
    let of_session = Kind::ALL
        .iter()
        .filter(|kind| is_of_session(**kind) && **kind != Kind::SessionCreated && !ends(kind));
    let mut events: Vec<_> = of_session.map(|kind| (at(2), event(*kind, 1))).collect();
    events.push((at(3), event(Kind::SessionFailed, 1)));
    Owner::create(&store, 1).record(&store, events).unwrap();
    let mut living = Owner::create(&store, 2);
    let mut commit = living.prepare(vec![(at(4), event(Kind::SessionStarting, 2))]);
    let session = commit.session.as_mut().unwrap();
    session.tape = Some(mark(4_096));
    session.outbox = vec![input(1)];
    store.commit_blocking(commit).unwrap();
}

#[test]
fn a_database_of_version_1_opens_and_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1.db.zst");
    if std::env::var_os("OSTLER_BLESS").is_some() {
        let place = Place::new();
        fill_v1(&place);
        fs::write(&path, zstd::encode_all(fs::File::open(place.paths().db).unwrap(), 19).unwrap()).unwrap();
    }
    let place = Place::new();
    fs::write(place.paths().db, zstd::decode_all(fs::File::open(&path).unwrap()).unwrap()).unwrap();
    // The picture that one of its events names lies beside it.
    let Event::ImageRecorded(shown) = event(Kind::ImageRecorded, 1) else { unreachable!() };
    let (shelf, name) = shown.image.sha256.split_at(2);
    let shelf = place.paths().blobs.join(shelf);
    fs::create_dir_all(&shelf).unwrap();
    fs::write(shelf.join(name), shown.image.data().unwrap()).unwrap();
    let store = open(place.dir.path());
    let log = whole_log(&store);
    assert!(log.len() >= 50, "{} events", log.len());
    for recorded in &log {
        let n = if recorded.session == Some(session_id(2)) { 2 } else { 1 };
        assert_eq!(recorded.event, event(recorded.event.kind(), n));
    }
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, []);
    let loaded = block_on(store.load_session(session_id(2))).unwrap().unwrap();
    assert_eq!((loaded.mark, loaded.outbox), (Some(mark(4_096)), vec![input(1)]));
    assert_eq!(block_on(store.unended_sessions()).unwrap(), [session_id(2)]);
    let failed = EventFilter { kinds: vec![Kind::SessionFailed], ..EventFilter::default() };
    assert_eq!(block_on(store.events_before(None, &failed, 10)).unwrap().rows.len(), 1);
    Owner::create(&store, 3);
}
