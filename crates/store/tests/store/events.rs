//! Reading the log in both directions, filtered, in pages.

use std::time::Duration;

use ostler_domain::{
    Event, Kind, Recorded, SessionId,
    query::{EventFilter, Page, SessionFilter},
};
use ostler_store::{Store, block_on};

use crate::{
    samples::{at, campaign_id, event, session_id},
    support::{Owner, Place, node_commit, whole_log},
};

const KINDS: [Kind; 4] =
    [Kind::AgentThinking, Kind::AgentToolCall, Kind::AgentToolResult, Kind::AgentCompletion];

/// Three sessions whose events take turns, with the node's own between them.
fn filled(store: &Store) -> Vec<Recorded> {
    let mut owners: Vec<Owner> = (0..3).map(|n| Owner::create(store, n)).collect();
    for n in 0..60 {
        let owner = &mut owners[(n % 3) as usize];
        owner.record(store, vec![(at(n), event(KINDS[(n % 4) as usize], n))]).unwrap();
        if n % 10 == 0 {
            store.commit_blocking(node_commit(vec![(at(n), event(Kind::DaemonStarted, n))])).unwrap();
        }
    }
    whole_log(store)
}

fn forwards(store: &Store, filter: &EventFilter, limit: u32) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = block_on(store.events_after(after, filter, limit)).unwrap();
        assert!(page.rows.len() <= limit as usize);
        all.extend(page.rows);
        match page.next_cursor {
            Some(next) => after = next,
            None => return all,
        }
    }
}

fn backwards(store: &Store, filter: &EventFilter, limit: u32) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut before = None;
    loop {
        let page = block_on(store.events_before(before, filter, limit)).unwrap();
        all.extend(page.rows);
        match page.next_cursor {
            Some(next) => before = Some(next),
            None => return all,
        }
    }
}

fn of_campaign(n: u64) -> SessionFilter {
    SessionFilter { campaigns: vec![campaign_id(n)], ..SessionFilter::default() }
}

fn fits(store: &Store, id: SessionId, filter: &SessionFilter) -> bool {
    let fits = block_on(store.session_fits(id, filter)).unwrap();
    let listed = block_on(store.list_sessions(filter, Page::of(1_000, None))).unwrap();
    assert_eq!(fits, listed.rows.iter().any(|view| view.id == id));
    fits
}

#[test]
fn every_filter_gives_what_it_asks_for_in_both_directions() {
    let place = Place::new();
    let store = place.open();
    let log = filled(&store);
    let filters = [
        EventFilter::default(),
        EventFilter { session: Some(session_id(1)), ..EventFilter::default() },
        EventFilter { kinds: vec![Kind::AgentToolCall, Kind::DaemonStarted], ..EventFilter::default() },
        EventFilter {
            session: Some(session_id(2)),
            kinds: vec![Kind::AgentThinking],
            ..EventFilter::default()
        },
        EventFilter { since: Some(at(20)), until: Some(at(40)), ..EventFilter::default() },
        EventFilter {
            session: Some(session_id(0)),
            since: Some(at(20)),
            until: Some(at(40)),
            ..EventFilter::default()
        },
        EventFilter { session: Some(session_id(99)), ..EventFilter::default() },
        EventFilter { sessions: Some(Box::new(of_campaign(1))), ..EventFilter::default() },
        EventFilter {
            kinds: vec![Kind::AgentThinking],
            until: Some(at(40)),
            sessions: Some(Box::new(of_campaign(1))),
            ..EventFilter::default()
        },
    ];
    for filter in filters {
        let expected: Vec<Recorded> = log
            .iter()
            .filter(|recorded| filter.session.is_none_or(|id| recorded.session == Some(id)))
            .filter(|recorded| filter.kinds.is_empty() || filter.kinds.contains(&recorded.event.kind()))
            .filter(|recorded| filter.since.is_none_or(|since| recorded.time >= since))
            .filter(|recorded| filter.until.is_none_or(|until| recorded.time < until))
            .filter(|recorded| {
                filter.sessions.is_none()
                    || recorded.session.is_some_and(|id| fits(&store, id, &of_campaign(1)))
            })
            .cloned()
            .collect();
        for limit in [1, 7, 1000] {
            assert_eq!(forwards(&store, &filter, limit), expected, "{filter:?}");
            let mut reversed = backwards(&store, &filter, limit);
            reversed.reverse();
            assert_eq!(reversed, expected, "{filter:?}");
        }
    }
}

#[test]
fn a_cursor_may_lie_between_a_session_s_events() {
    let place = Place::new();
    let store = place.open();
    let log = filled(&store);
    let filter = EventFilter { session: Some(session_id(1)), ..EventFilter::default() };
    for after in 0..=log.len() as u64 + 1 {
        let found: Vec<u64> = block_on(store.events_after(after, &filter, 100))
            .unwrap()
            .rows
            .iter()
            .map(|recorded| recorded.seq)
            .collect();
        let of_session = |recorded: &&Recorded| recorded.session == Some(session_id(1));
        let expected: Vec<u64> =
            log.iter().filter(of_session).map(|recorded| recorded.seq).filter(|seq| *seq > after).collect();
        assert_eq!(found, expected, "after {after}");
        let found: Vec<u64> = block_on(store.events_before(Some(after), &filter, 100))
            .unwrap()
            .rows
            .iter()
            .map(|recorded| recorded.seq)
            .collect();
        let mut expected: Vec<u64> =
            log.iter().filter(of_session).map(|recorded| recorded.seq).filter(|seq| *seq < after).collect();
        expected.reverse();
        assert_eq!(found, expected, "before {after}");
    }
}

#[test]
fn a_clock_that_was_set_back_hides_nothing() {
    let place = Place::new();
    let store = place.open();
    let hour = Duration::from_secs(3_600);
    for (n, time) in [at(0), at(100_000), at(100_000).minus(hour), at(100_001)].into_iter().enumerate() {
        store.commit_blocking(node_commit(vec![(time, event(Kind::DaemonStarted, n as u64))])).unwrap();
    }
    let since = EventFilter { since: Some(at(99_999)), ..EventFilter::default() };
    assert_eq!(forwards(&store, &since, 10).iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(backwards(&store, &since, 10).iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [4, 2]);
}

#[test]
fn a_session_s_events_come_in_pages_by_their_own_numbers() {
    let place = Place::new();
    let store = place.open();
    filled(&store);
    let first = block_on(store.session_events(session_id(1), 1, 8)).unwrap();
    assert_eq!((first.rows.len(), first.next_cursor), (8, Some(9)));
    let rest = block_on(store.session_events(session_id(1), 9, 100)).unwrap();
    assert_eq!(
        (rest.rows.first().unwrap().session_seq, rest.rows.len(), rest.next_cursor),
        (Some(9), 13, None)
    );
    assert_eq!(block_on(store.event(5)).unwrap().unwrap().seq, 5);
    assert_eq!(block_on(store.event(5_000)).unwrap(), None);
}

#[test]
fn a_page_of_large_bodies_ends_early() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let large = |n: u64| {
        let text = format!("{n}{}", "y".repeat(20_000));
        (at(n), ostler_domain::Event::AgentCompletion(ostler_domain::event::Text::from(text)))
    };
    owner.record(&store, (0..20).map(large).collect()).unwrap();
    let page = block_on(store.events_after(0, &EventFilter::default(), 1000)).unwrap();
    assert!(
        page.rows.len() < 21 && page.next_cursor == Some(page.rows.len() as u64),
        "{:?}",
        page.next_cursor
    );
    assert_eq!(forwards(&store, &EventFilter::default(), 1000).len(), 21);
}

#[test]
fn what_cannot_be_read_hides_nothing_behind_it() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, (0..8).map(|n| (at(n), event(Kind::AgentCompletion, n))).collect()).unwrap();
    let sound = whole_log(&store);
    // Rotten in every way that a row can be: its body, its kind, the types of its columns.
    place
        .sql()
        .execute_batch(
            "UPDATE log_event SET body = '{' WHERE seq = 3;
             UPDATE log_event SET kind = 4711 WHERE seq = 4;
             UPDATE log_event SET kind = 0 WHERE seq = 5;
             UPDATE log_event SET body = CAST(x'ff00' AS TEXT) WHERE seq = 6;
             UPDATE log_event SET body = NULL, blob = x'00' WHERE seq = 7;",
        )
        .unwrap();
    let filter = EventFilter::default();
    let mut newest_first = block_on(store.events_before(None, &filter, 100)).unwrap().rows;
    newest_first.reverse();
    for listed in [block_on(store.events_after(0, &filter, 100)).unwrap().rows, newest_first] {
        assert_eq!(listed.len(), sound.len());
        for (shown, sound) in listed.iter().zip(&sound) {
            assert_eq!(
                (shown.seq, shown.session, shown.session_seq),
                (sound.seq, sound.session, sound.session_seq)
            );
            match shown.seq {
                3..=7 => assert!(matches!(shown.event, Event::Unreadable(_)), "{shown:?}"),
                _ => assert_eq!(shown, sound),
            }
        }
    }
}
