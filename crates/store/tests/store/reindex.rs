//! Derived tables are a function of the log: rebuilt, they are the same to the byte.

use ostler_domain::{Event, Kind, Time};
use ostler_store::{Store, block_on};
use proptest::prelude::*;

use crate::{
    samples::{at, event, is_of_session},
    support::{Owner, Place, dump, is_derived, node_commit},
};

/// One step of a random history: which session or the node, and which kinds of event.
#[derive(Debug, Clone)]
struct Step {
    session: u64,
    kinds: Vec<Kind>,
    n: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = proptest::sample::select(Kind::ALL.to_vec());
    let step = (0..8_u64, proptest::collection::vec(kind, 1..6), 0..12_u64)
        .prop_map(|(session, kinds, n)| Step { session, kinds, n });
    proptest::collection::vec(step, 1..60)
}

/// Plays a history as an engine would: a session ends once, and names in use are refused.
fn play(store: &Store, steps: &[Step]) {
    let mut owners: Vec<Option<Owner>> = (0..8).map(|_| None).collect();
    for (place, step) in steps.iter().enumerate() {
        let time = at(100 + place as u64);
        let owner = owners[step.session as usize].get_or_insert_with(|| Owner::create(store, step.session));
        let mut of_session: Vec<(Time, Event)> = Vec::new();
        for kind in &step.kinds {
            if let Event::SessionDeleted(deleted) = event(*kind, step.n) {
                let session = deleted.session;
                let recorded = store.commit_blocking(node_commit(vec![(time, event(*kind, step.n))]));
                // Refused for one that lives.
                let _ = recorded.map(|_| block_on(store.erase(session, 1, time)));
            } else if !is_of_session(*kind) {
                // May be refused: that too is part of a history.
                let _ = store.commit_blocking(node_commit(vec![(time, event(*kind, step.n))]));
            } else if *kind != Kind::SessionCreated && !owner.state.is_ended() {
                of_session.push((time, event(*kind, step.n)));
                if matches!(kind, Kind::SessionStopped | Kind::SessionFailed) {
                    break;
                }
            }
        }
        if !of_session.is_empty() && !owner.state.is_ended() {
            let before = Owner { state: owner.state.clone() };
            if owner.record(store, of_session).is_err() {
                // The same question may not be asked twice; the owner goes on from what is recorded.
                *owner = before;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn rebuilt_tables_are_the_same_to_the_byte(steps in steps()) {
        let place = Place::new();
        let store = place.open();
        play(&store, &steps);
        // A closed store has brought its rows up to date.
        drop(store);
        let store = place.open();
        let before = dump(&place.sql(), is_derived);
        block_on(store.reindex()).unwrap();
        prop_assert_eq!(dump(&place.sql(), is_derived), before);
        let report = block_on(store.check(ostler_store::CheckDepth::Full)).unwrap();
        prop_assert_eq!(report.findings, vec![]);
    }
}

#[test]
fn a_damaged_table_is_made_good_and_commits_go_on() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner
        .record(
            &store,
            vec![(at(2), event(Kind::MessageAccepted, 1)), (at(3), event(Kind::UsageRecorded, 1))],
        )
        .unwrap();
    drop(store);
    let store = place.open();
    let before = dump(&place.sql(), is_derived);
    place
        .sql()
        .execute_batch("DELETE FROM message; UPDATE session SET status = 'FAILED'; UPDATE session_view SET view = '{}'; DROP TABLE usage")
        .unwrap();
    let done = block_on(store.reindex()).unwrap();
    assert_eq!((done.sessions, done.events), (1, 3));
    assert_eq!(dump(&place.sql(), is_derived), before);
    owner.record(&store, vec![(at(4), event(Kind::SessionStarting, 1))]).unwrap();
    assert_eq!(block_on(store.session(owner.id())).unwrap().unwrap(), owner.state.view());
}

#[test]
fn a_log_that_cannot_be_read_leaves_the_tables_alone() {
    let place = Place::new();
    let store = place.open();
    Owner::create(&store, 1);
    place.sql().execute("UPDATE log_event SET kind = 999", []).unwrap();
    let before = dump(&place.sql(), is_derived);
    block_on(store.reindex()).unwrap_err();
    assert_eq!(dump(&place.sql(), is_derived), before);
    Owner::create(&store, 2);
}

#[test]
fn a_vacuum_gives_room_back_and_changes_nothing_else() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    place
        .sql()
        .execute_batch(
            "CREATE TABLE waste(text TEXT); INSERT INTO waste VALUES (hex(zeroblob(2000000))); DROP TABLE waste",
        )
        .unwrap();
    let before = dump(&place.sql(), is_derived);
    let done = block_on(store.vacuum()).unwrap();
    assert!(done.after + 3_000_000 < done.before, "{done:?}");
    assert_eq!(dump(&place.sql(), is_derived), before);
    owner.record(&store, vec![(at(4), event(Kind::SessionStarting, 1))]).unwrap();
    assert_eq!(block_on(store.check(ostler_store::CheckDepth::Full)).unwrap().findings, vec![]);
}
