//! A busy session's row is written once a second. Nobody who asks sees that, before or after a crash.

use std::{fs, time::Duration};

use ostler_domain::{Kind, query::Page, query::SessionFilter, session::View};
use ostler_store::{CheckDepth, Store, block_on};

use crate::{
    samples::{at, event},
    support::{Owner, Place},
};

/// How far the row itself is.
fn row_seq(place: &Place) -> u64 {
    let text: String = place.sql().query_row("SELECT view FROM session_view", [], |row| row.get(0)).unwrap();
    serde_json::from_str::<View>(&text).unwrap().session_seq
}

/// A session that said something and stays on the lists where it was.
fn busy(store: &Store) -> Owner {
    let mut owner = Owner::create(store, 1);
    owner.record(store, vec![(at(2), event(Kind::UsageRecorded, 1))]).unwrap();
    owner
}

fn listed(store: &Store) -> Vec<View> {
    let page = Page { limit: 10, cursor: None };
    block_on(store.list_sessions(&SessionFilter::default(), page)).unwrap().rows
}

/// What a daemon that was killed leaves behind.
fn crashed(place: &Place) -> Place {
    let copy = Place::new();
    for file in ["ostler.db", "ostler.db-wal"] {
        fs::copy(place.dir.path().join(file), copy.dir.path().join(file)).unwrap();
    }
    copy
}

#[test]
fn who_asks_sees_the_last_event_before_the_row_does() {
    let place = Place::new();
    let store = place.open();
    let owner = busy(&store);
    assert_eq!(row_seq(&place), 1, "the row waits");
    assert_eq!(block_on(store.session(owner.id())).unwrap().unwrap(), owner.state.view());
    assert_eq!(listed(&store), [owner.state.view()]);
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, [], "a row behind is no damage");
}

#[test]
fn a_row_catches_up_when_nothing_happens_any_more() {
    let place = Place::new();
    let store = place.open();
    busy(&store);
    let caught_up = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        row_seq(&place) == 2
    });
    assert!(caught_up);
    assert_eq!(listed(&store)[0].session_seq, 2);
}

#[test]
fn a_row_that_moves_to_another_list_moves_at_once() {
    let place = Place::new();
    let store = place.open();
    let mut owner = busy(&store);
    owner.record(&store, vec![(at(3), event(Kind::SessionStarting, 1))]).unwrap();
    assert_eq!(row_seq(&place), 3);
}

#[test]
fn after_a_crash_the_events_give_back_what_was_shown() {
    let place = Place::new();
    let store = place.open();
    let owner = busy(&store);
    let copy = crashed(&place);
    let reopened = copy.open();
    assert_eq!(row_seq(&copy), 1);
    assert_eq!(block_on(reopened.check(CheckDepth::Full)).unwrap().findings, []);
    block_on(reopened.load_session(owner.id())).unwrap().unwrap();
    assert_eq!(listed(&reopened), [owner.state.view()]);
    drop(reopened);
    assert_eq!(row_seq(&copy), 2, "and a closed store has written it");
}

#[test]
fn a_row_that_is_wrong_is_found_however_far_it_is_behind() {
    let place = Place::new();
    let store = place.open();
    busy(&store);
    place
        .sql()
        .execute("UPDATE session_view SET view = replace(view, 'fix-login', 'fix-logout')", [])
        .unwrap();
    let findings = block_on(store.check(CheckDepth::Full)).unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
}
