//! Full-text search: what was said is found, nothing typed is an error, and the index can always be thrown away.

use std::fs;

use ostler_domain::{Event, Kind, Refusal, SessionId, event::Text, query::Page};
use ostler_store::{Among, Opened, Options, ReadError, SearchHit, Store, block_on};

use crate::{
    samples::{at, event, session_id},
    support::{Owner, Place, open, whole_log},
};

fn open_searched(place: &Place) -> Opened {
    Store::open(&place.paths(), &Options { search: true }).unwrap()
}

fn hits(store: &Store, text: &str) -> Vec<SearchHit> {
    block_on(store.searchable(store.last_seq()));
    block_on(store.search(text, None, Page::of(0, None))).unwrap().rows
}

fn seqs(store: &Store, text: &str) -> Vec<u64> {
    hits(store, text).iter().map(|hit| hit.seq).collect()
}

fn said(text: &str) -> Event {
    Event::AgentCompletion(Text::from(text.to_owned()))
}

fn filled(store: &Store) -> Owner {
    let mut owner = Owner::create(store, 1);
    let events = vec![
        (at(2), event(Kind::MessageAccepted, 1)),
        (at(3), event(Kind::AgentToolCall, 1)),
        (at(4), event(Kind::AgentToolResult, 1)),
        (at(5), event(Kind::AgentThinking, 1)),
        (at(6), said("The rate limiter drops the wrong token.")),
        (at(7), event(Kind::UsageRecorded, 1)),
    ];
    owner.record(store, events).unwrap();
    owner
}

#[test]
fn what_was_said_and_done_is_found_newest_first() {
    let place = Place::new();
    let store = open_searched(&place).store;
    filled(&store);
    assert_eq!(seqs(&store, "login"), [5, 4, 2]);
    assert_eq!(seqs(&store, "LOGIN shop"), [5, 2]);
    assert_eq!(seqs(&store, "\"cargo test\""), [3]);
    assert_eq!(seqs(&store, "\"test cargo\""), [] as [u64; 0]);
    assert_eq!(seqs(&store, "limit*"), [6]);
    assert_eq!(seqs(&store, "naive"), [5]);
    assert_eq!(seqs(&store, "failed"), [4]);
    let hit = hits(&store, "wrong").remove(0);
    assert_eq!((hit.session, hit.kind, hit.time), (Some(session_id(1)), Kind::AgentCompletion, at(6)));
    assert_eq!(hit.snippet, "The rate limiter drops the wrong token.");
}

#[test]
fn what_people_said_is_found_and_shown_without_secrets() {
    let place = Place::new();
    let store = open_searched(&place).store;
    let mut owner = Owner::create(&store, 1);
    let Event::MessageAccepted(mut accepted) = event(Kind::MessageAccepted, 1) else { unreachable!() };
    accepted.message.text = "use ghp_0123456789abcdefghijABCDEFGHIJ012345 for it".to_owned();
    owner.record(&store, vec![(at(2), Event::MessageAccepted(accepted))]).unwrap();
    let hit = hits(&store, "use").remove(0);
    assert_eq!(hit.snippet, "use ghp_[redacted] for it");
    assert_eq!(seqs(&store, "0123456789abcdefghijABCDEFGHIJ012345"), [] as [u64; 0]);
}

#[test]
fn pages_of_hits_follow_each_other() {
    let place = Place::new();
    let store = open_searched(&place).store;
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, (0..10).map(|n| (at(n), said("needle"))).collect()).unwrap();
    block_on(store.searchable(11));
    let first = block_on(store.search("needle", None, Page { limit: 6, cursor: None })).unwrap();
    let second =
        block_on(store.search("needle", None, Page { limit: 6, cursor: first.next_cursor })).unwrap();
    let found: Vec<u64> = first.rows.iter().chain(&second.rows).map(|hit| hit.seq).collect();
    assert_eq!((found, second.next_cursor), ((2..=11).rev().collect(), None));
}

/// What few sessions said is found in one step, however much others said since.
#[test]
fn a_search_among_few_sessions_does_not_go_through_others() {
    let place = Place::new();
    let store = open_searched(&place).store;
    let (mut mine, mut theirs) = (Owner::create(&store, 1), Owner::create(&store, 2));
    mine.record(
        &store,
        vec![(at(1), said("the needle is mine")), (at(2), said("s2 is no needle of theirs"))],
    )
    .unwrap();
    theirs.record(&store, (0..3_000).map(|n| (at(n), said("needle"))).collect()).unwrap();
    block_on(store.searchable(store.last_seq()));
    let among = |text: &str, sessions: Vec<SessionId>| {
        let found = block_on(store.search(
            text,
            Some(Among { sessions, tickets: false }),
            Page { limit: 10, cursor: None },
        ))
        .unwrap();
        (found.rows.iter().map(|hit| hit.seq).collect::<Vec<_>>(), found.next_cursor)
    };
    assert_eq!(among("needle", vec![session_id(1)]), (vec![4, 3], None));
    assert_eq!(among("needle", vec![session_id(1), session_id(2)]).0.len(), 10);
    assert_eq!(among("needle", vec![]), (vec![], None));
    assert_eq!(among("needle", vec![session_id(9)]), (vec![], None), "nobody knows that one");
    assert_eq!(among("s2", vec![session_id(1)]).0, [4], "a word is no session");
    assert_eq!(seqs(&store, "s2"), [4]);
    // By the index alone, which is in the order that is wanted.
    let index = rusqlite::Connection::open(place.paths().search).unwrap();
    let plan: String = index
        .query_row(
            "EXPLAIN QUERY PLAN SELECT rowid FROM search_text WHERE search_text MATCH 'session : (s1) AND text : (\"needle\")' \
             AND rowid < 9 ORDER BY rowid DESC LIMIT 10",
            [],
            |row| row.get("detail"),
        )
        .unwrap();
    assert!(plan.contains("VIRTUAL TABLE INDEX") && plan.contains("M2"), "{plan}");
}

#[test]
fn nothing_typed_is_an_error() {
    let place = Place::new();
    let store = open_searched(&place).store;
    filled(&store);
    for text in [
        "",
        " ",
        "\"",
        "\"\"",
        "*",
        "AND",
        "a OR",
        "NOT",
        "NEAR(",
        "(((",
        "text:login",
        "^login",
        "log*in",
        "a\0b",
        "--",
        "'; DROP TABLE x",
        "€€€",
        "\u{202e}",
    ] {
        block_on(store.search(text, None, Page::of(10, None))).map_err(Refusal::from).unwrap();
    }
    assert_eq!(seqs(&store, "text:login"), [] as [u64; 0]);
}

#[test]
fn the_index_goes_on_where_it_was() {
    let place = Place::new();
    let store = open_searched(&place).store;
    let mut owner = filled(&store);
    block_on(store.searchable(7));
    drop(store);
    let opened = open_searched(&place);
    assert!(opened.findings.is_empty());
    assert_eq!(block_on(opened.store.stats()).unwrap().searchable_to, Some(7));
    owner.record(&opened.store, vec![(at(9), said("a second limiter"))]).unwrap();
    assert_eq!(seqs(&opened.store, "limiter"), [8, 6]);
}

#[test]
fn a_missing_or_damaged_index_is_built_anew() {
    let place = Place::new();
    filled(&open_searched(&place).store);
    for damage in [None, Some(vec![0xee; 50_000]), Some(Vec::new())] {
        let search = place.paths().search;
        match damage {
            None => fs::remove_file(&search).unwrap(),
            Some(bytes) => fs::write(&search, bytes).unwrap(),
        }
        assert_eq!(seqs(&open_searched(&place).store, "limiter"), [6]);
    }
}

/// Damage that only a search meets is said, and gone after the next event.
#[test]
fn rot_in_the_index_is_said_and_made_good() {
    let place = Place::new();
    let store = open_searched(&place).store;
    let mut owner = filled(&store);
    block_on(store.searchable(7));
    drop(store);
    let index = rusqlite::Connection::open(place.paths().search).unwrap();
    index.execute("UPDATE search_text_data SET block = x'ffffffffffff' WHERE id > 10", []).unwrap();
    drop(index);
    let store = open_searched(&place).store;
    let error = block_on(store.search("limiter", None, Page::of(10, None))).unwrap_err();
    assert!(matches!(error, ReadError::SearchIndex(_)), "{error:?}");
    owner.record(&store, vec![(at(9), said("a second limiter"))]).unwrap();
    assert_eq!(seqs(&store, "limiter"), [8, 6]);
}

#[test]
fn another_record_s_index_is_not_used() {
    let (place, other) = (Place::new(), Place::new());
    filled(&open_searched(&place).store);
    drop(open_searched(&other));
    fs::copy(place.paths().search, other.paths().search).unwrap();
    assert!(hits(&open_searched(&other).store, "limiter").is_empty());
}

/// Only what is durable is indexed: an index that knows more than the log means that the log lost its end.
#[test]
fn a_log_that_lost_its_end_is_noticed() {
    let place = Place::new();
    let store = open_searched(&place).store;
    filled(&store);
    block_on(store.searchable(7));
    drop(store);
    place.sql().execute("DELETE FROM log_event WHERE seq > 5", []).unwrap();
    let opened = open_searched(&place);
    assert_eq!(opened.findings.iter().map(|finding| finding.part).collect::<Vec<_>>(), ["log"]);
    assert!(opened.findings[0].text.contains("ends with 5"), "{}", opened.findings[0].text);
    assert_eq!(seqs(&opened.store, "login"), [5, 4, 2]);
}

#[test]
fn without_an_index_nothing_is_found_and_nothing_fails() {
    let place = Place::new();
    let store = open(place.dir.path());
    filled(&store);
    assert!(hits(&store, "login").is_empty());
    assert_eq!(whole_log(&store).len(), 7);
    assert!(!place.paths().search.exists());
}
