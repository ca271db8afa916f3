//! Loading in bulk gives what commits give.

use ostler_domain::{
    Event, Kind,
    limits::SCAN_ROWS,
    query::{EventFilter, Page, SessionFilter},
};
use ostler_store::{Bulk, CheckDepth, CommitError, block_on};

use crate::{
    samples::{at, created, event, session_id},
    support::{Owner, Place, dump, node_commit, whole_log},
};

fn life(n: u64) -> Vec<(ostler_domain::Time, Event)> {
    let kinds = [
        Kind::MessageAccepted,
        Kind::SessionStarting,
        Kind::SessionStarted,
        Kind::TurnStarted,
        Kind::AgentToolCall,
        Kind::UsageRecorded,
        Kind::TurnEnded,
        Kind::SessionStopped,
    ];
    let first = (at(n), Event::SessionCreated(Box::new(created(n))));
    std::iter::once(first).chain(kinds.into_iter().map(|kind| (at(n), event(kind, n)))).collect()
}

#[test]
fn a_loaded_record_is_a_committed_record() {
    let (loaded, committed) = (Place::new(), Place::new());
    let store = loaded.open();
    let node = Bulk::Node(at(0), Box::new(event(Kind::CampaignAdded, 0)));
    let done =
        block_on(store.bulk(std::iter::once(node).chain((0..300).map(|n| Bulk::Session(life(n)))))).unwrap();
    assert_eq!((done.sessions, done.events), (300, 2_701));
    assert_eq!(store.last_seq(), 2_701);
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, []);

    let by_commits = committed.open();
    by_commits.commit_blocking(node_commit(vec![(at(0), event(Kind::CampaignAdded, 0))])).unwrap();
    for n in 0..300 {
        let (_, commit) = Owner::new(n, life(n).split_off(1));
        by_commits.commit_blocking(commit).unwrap();
    }
    let all_but_the_node = |table: &str| table != "node_meta" && !table.starts_with("sqlite_");
    assert_eq!(dump(&loaded.sql(), all_but_the_node), dump(&committed.sql(), all_but_the_node));

    // And it goes on like any other.
    Owner::create(&store, 1_000);
    assert_eq!(whole_log(&store).last().unwrap().seq, 2_702);
}

/// A filter that fits little looks at a bounded number of rows and says where to go on.
#[test]
fn a_page_that_looked_at_enough_ends_early_and_nothing_is_skipped() {
    let place = Place::new();
    let store = place.open();
    let count = SCAN_ROWS as u64 + 5_000;
    let short = |n: u64| Bulk::Session(life(n).into_iter().take(1).collect());
    block_on(store.bulk((0..count).map(short))).unwrap();
    let none = SessionFilter { name_begins: Some("nobody-".to_owned()), ..SessionFilter::default() };
    let first = block_on(store.list_sessions(&none, Page::of(10, None))).unwrap();
    assert_eq!((first.rows.len(), first.next_cursor), (0, Some(5_001)));
    let rest = block_on(store.list_sessions(&none, Page::of(10, first.next_cursor))).unwrap();
    assert_eq!((rest.rows.len(), rest.next_cursor), (0, None));
    let oldest = SessionFilter { until: Some(at(1)), ..SessionFilter::default() };
    let first = block_on(store.list_sessions(&oldest, Page::of(10, None))).unwrap();
    let rest = block_on(store.list_sessions(&oldest, Page::of(10, first.next_cursor))).unwrap();
    assert!(first.rows.is_empty());
    assert_eq!(rest.rows.iter().map(|view| view.id).collect::<Vec<_>>(), [session_id(0)]);

    let none = EventFilter { kinds: vec![Kind::TapeDamaged], ..EventFilter::default() };
    let first = block_on(store.events_after(0, &none, 10)).unwrap();
    assert_eq!((first.rows.len(), first.next_cursor), (0, Some(SCAN_ROWS as u64)));
    assert_eq!(block_on(store.events_after(SCAN_ROWS as u64, &none, 10)).unwrap().next_cursor, None);
}

#[test]
fn a_life_without_a_beginning_is_refused() {
    let place = Place::new();
    let store = place.open();
    let headless = life(1).split_off(1);
    let error = block_on(store.bulk(std::iter::once(Bulk::Session(headless)))).unwrap_err();
    assert!(matches!(error, CommitError::Inconsistent(_)), "{error:?}");
    Owner::create(&store, 1);
}
