//! The check finds what was damaged, and nothing in a record that is whole.

use std::fs;

use ostler_domain::{Event, Kind, event::Text};
use ostler_store::{CheckDepth, Finding, Store, block_on};

use crate::{
    samples::{at, event},
    support::{Owner, Place, input},
};

fn filled(place: &Place) -> Store {
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let large = Event::AgentCompletion(Text::from("x".repeat(50_000)));
    let mut commit = owner.prepare(vec![
        (at(1), event(Kind::SessionStarting, 1)),
        (at(2), large),
        (at(3), event(Kind::TurnStarted, 1)),
    ]);
    commit.session.as_mut().unwrap().outbox = vec![input(1), input(2)];
    store.commit_blocking(commit).unwrap();
    store
}

fn findings(store: &Store, depth: CheckDepth) -> Vec<Finding> {
    block_on(store.check(depth)).unwrap().findings
}

/// Damages a good record with SQL and expects a finding in a part of it.
fn damaged(sql: &str, part: &str, says: &str) {
    let place = Place::new();
    let store = filled(&place);
    let connection = place.sql();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.execute_batch(sql).unwrap();
    for depth in [CheckDepth::Quick, CheckDepth::Full] {
        let found = findings(&store, depth);
        assert!(
            found.iter().any(|finding| finding.part == part && finding.text.contains(says)),
            "{sql}: {found:?}"
        );
    }
}

#[test]
fn a_whole_record_has_no_findings() {
    let place = Place::new();
    let store = filled(&place);
    let report = block_on(store.check(CheckDepth::Full)).unwrap();
    assert_eq!((report.sessions, report.blobs, report.findings), (1, 1, vec![]));
}

#[test]
fn each_sort_of_damage_is_found() {
    damaged("DELETE FROM log_event WHERE session_seq = 2", "log", "has 3 events numbered from 1 to 4");
    damaged("DELETE FROM log_event WHERE session_seq = 1", "log", "does not begin with its creation");
    damaged("UPDATE session SET status = 'FAILED'", "derived", "filed under another state");
    damaged(
        "UPDATE session_view SET view = replace(view, 'fix', 'fax')",
        "derived",
        "not shown as its events say",
    );
    damaged("DELETE FROM session", "derived", "has no row");
    damaged("UPDATE node_session SET last_input_no = 1", "outbox", "input 2");
    damaged("DELETE FROM node_session", "outbox", "never given out");
    damaged("UPDATE log_event SET kind = 999 WHERE session_seq = 2", "log", "not known to this version");
}

#[test]
fn a_changed_and_a_missing_blob_are_found() {
    let place = Place::new();
    let store = filled(&place);
    let shelf = fs::read_dir(place.paths().blobs).unwrap().next().unwrap().unwrap().path();
    let blob = fs::read_dir(shelf).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&blob).unwrap();
    fs::write(&blob, whole.replacen('x', "y", 1)).unwrap();
    assert!(
        findings(&store, CheckDepth::Quick)
            .iter()
            .any(|finding| finding.part == "blobs" && finding.text.contains("changed"))
    );
    fs::remove_file(&blob).unwrap();
    assert!(
        findings(&store, CheckDepth::Quick)
            .iter()
            .any(|finding| finding.part == "blobs" && finding.text.contains("not there"))
    );
}
