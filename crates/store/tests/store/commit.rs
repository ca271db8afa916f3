//! The write path: order, exactly once, one owner's failure is not another's.

use std::sync::Arc;

use ostler_domain::{Event, Kind, RequestId, query::EventFilter};
use ostler_store::{CheckDepth, Commit, CommitError, Committed, RequestReply, Store, Urgency, block_on};

use crate::{
    samples::{at, created, event, session_id},
    support::{Owner, Place, input, mark, node_commit, whole_log},
};

#[test]
fn what_is_committed_is_there_after_opening_again() {
    let place = Place::new();
    let store = place.open();
    store.commit_blocking(node_commit(vec![(at(0), event(Kind::CampaignAdded, 0))])).unwrap();
    let mut owner = Owner::create(&store, 1);
    let committed = owner
        .record(
            &store,
            vec![(at(2), event(Kind::SessionStarting, 1)), (at(3), event(Kind::AgentCompletion, 1))],
        )
        .unwrap();
    assert_eq!((committed.seqs, committed.last_seq), (3..5, 4));
    let before = whole_log(&store);
    drop(store);

    let store = place.open();
    assert_eq!(whole_log(&store), before);
    assert_eq!(before.iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(
        before.iter().map(|recorded| recorded.session_seq).collect::<Vec<_>>(),
        [None, Some(1), Some(2), Some(3)]
    );
    let loaded = block_on(store.load_session(owner.id())).unwrap().unwrap();
    assert_eq!(loaded.state, owner.state);
    // Numbers go on where they were.
    assert_eq!(owner.record(&store, vec![(at(4), event(Kind::TurnStarted, 1))]).unwrap().seqs, 5..6);
}

#[test]
fn a_snapshot_is_a_shortcut_and_never_the_truth() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let mut commit =
        owner.prepare(vec![(at(2), event(Kind::SessionStarting, 1)), (at(3), event(Kind::TurnStarted, 1))]);
    if let Some(session) = &mut commit.session {
        session.snapshot = Some(owner.state.snapshot());
    }
    store.commit_blocking(commit).unwrap();
    owner.record(&store, vec![(at(4), event(Kind::AgentCompletion, 1))]).unwrap();
    let load = || block_on(store.load_session(owner.id())).unwrap().unwrap().state;
    assert_eq!(load(), owner.state);
    // One that cannot be read is thrown away.
    let set = |text: &str| place.sql().execute("UPDATE node_snapshot SET state = ?1", [text]).unwrap();
    assert_eq!(set("nonsense"), 1);
    assert_eq!(load(), owner.state);
    set("[\"state of another version\", {}]");
    assert_eq!(load(), owner.state);
}

#[test]
fn a_stale_owner_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let mut stale = Owner { state: owner.state.clone() };
    owner.record(&store, vec![(at(2), event(Kind::SessionStarting, 1))]).unwrap();
    let mut commit = stale.prepare(vec![(at(2), event(Kind::SessionStarting, 1))]);
    commit.node_events.push((at(2), event(Kind::CampaignAdded, 0)));
    let error = store.commit_blocking(commit).unwrap_err();
    assert!(matches!(error, CommitError::Conflict { expected: 1, found: 2, .. }), "{error:?}");
    assert_eq!(whole_log(&store).len(), 2);
    assert!(block_on(store.campaigns()).unwrap().is_empty());
    // The true owner is not disturbed.
    owner.record(&store, vec![(at(3), event(Kind::TurnStarted, 1))]).unwrap();
}

#[test]
fn a_session_is_created_once() {
    let place = Place::new();
    let store = place.open();
    Owner::create(&store, 1);
    let (_, again) = Owner::new(1, Vec::new());
    let error = store.commit_blocking(again).unwrap_err();
    assert!(matches!(error, CommitError::Conflict { expected: 0, found: 1, .. }), "{error:?}");
}

#[test]
fn contradictions_are_refused() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let refused = |commit: Commit| {
        let error = store.commit_blocking(commit).unwrap_err();
        assert!(matches!(error, CommitError::Inconsistent(_)), "{error:?}");
    };
    let mut one_too_many =
        Owner { state: owner.state.clone() }.prepare(vec![(at(2), event(Kind::TurnStarted, 1))]);
    one_too_many.session.as_mut().unwrap().events.push((at(2), event(Kind::TurnEnded, 1)));
    refused(one_too_many);
    refused(
        Owner { state: owner.state.clone() }
            .prepare(vec![(at(2), Event::SessionCreated(Box::new(created(1))))]),
    );
    refused(node_commit(vec![(at(2), Event::SessionCreated(Box::new(created(9))))]));
    let (_, mut under_another_id) = Owner::new(2, Vec::new());
    under_another_id.session.as_mut().unwrap().id = session_id(3);
    refused(under_another_id);
    let mut reused_input = owner.prepare(Vec::new());
    reused_input.session.as_mut().unwrap().outbox = vec![input(1), input(1)];
    refused(reused_input);

    let mut unknown = Owner::new(7, Vec::new()).0;
    let error = unknown.record(&store, vec![(at(2), event(Kind::TurnStarted, 1))]).unwrap_err();
    assert!(matches!(error, CommitError::SessionUnknown(id) if id == session_id(7)), "{error:?}");
    assert_eq!(whole_log(&store).len(), 1);
}

#[test]
fn a_request_is_done_once() {
    let place = Place::new();
    let store = place.open();
    let request = |reply: &str| RequestReply {
        id: RequestId::new(at(1), 1),
        fingerprint: "add shop-0".to_owned(),
        reply: reply.to_owned(),
    };
    let with_request = |reply: &str, n| Commit {
        request: Some(request(reply)),
        ..node_commit(vec![(at(1), event(Kind::CampaignAdded, n))])
    };
    store.commit_blocking(with_request("first", 0)).unwrap();
    match store.commit_blocking(with_request("second", 1)).unwrap_err() {
        CommitError::RequestDone { fingerprint, reply } => {
            assert_eq!((fingerprint.as_str(), reply.as_str()), ("add shop-0", "first"))
        }
        error => panic!("{error:?}"),
    }
    assert_eq!(whole_log(&store).len(), 1);
    assert_eq!(block_on(store.request(RequestId::new(at(1), 1))).unwrap(), Some(request("first")));

    // A change that was refused may be tried again under the same id.
    let taken = Commit {
        request: Some(RequestReply { id: RequestId::new(at(2), 2), ..request("never") }),
        ..node_commit(vec![(at(1), event(Kind::CampaignAdded, 0))])
    };
    assert!(matches!(store.commit_blocking(taken).unwrap_err(), CommitError::Taken { .. }));
    assert_eq!(block_on(store.request(RequestId::new(at(2), 2))).unwrap(), None);
}

/// Sends commits one after the other without waiting for any, so that they gather.
fn commit_together(store: &Store, commits: Vec<Commit>) -> Vec<Result<Committed, CommitError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        // Tasks of a single thread run in the order in which they were spawned.
        let send = |commit| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(commit).await })
        };
        let tasks: Vec<_> = commits.into_iter().map(send).collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        results
    })
}

/// Who waits for an answer takes along what its own session said before, and nobody else's output.
#[test]
fn who_waits_does_not_wait_for_the_output_of_others() {
    let place = Place::new();
    let store = place.open();
    let (mut mine, mut other) = (Owner::create(&store, 1), Owner::create(&store, 2));
    let said = |owner: &mut Owner, urgency| {
        let commit = owner.prepare(vec![(at(100), event(Kind::AgentCompletion, 1))]);
        Commit { urgency, ..commit }
    };
    let commits = vec![
        said(&mut other, Urgency::Tape),
        said(&mut mine, Urgency::Tape),
        said(&mut mine, Urgency::Control),
    ];
    let firsts: Vec<u64> =
        commit_together(&store, commits).into_iter().map(|result| result.unwrap().seqs.start).collect();
    assert_eq!(firsts, [5, 3, 4], "mine in order, then the other's");
}

/// Commits that wait together share a transaction; the bad ones leave the good ones alone.
#[test]
fn one_bad_commit_does_not_harm_the_others() {
    let place = Place::new();
    let store = place.open();
    let mut owners: Vec<Owner> = (0..20).map(|n| Owner::create(&store, n)).collect();
    let commits: Vec<Commit> = owners
        .iter_mut()
        .enumerate()
        .map(|(n, owner)| {
            let mut commit = owner.prepare(vec![(at(100), event(Kind::AgentCompletion, n as u64))]);
            commit.urgency = Urgency::Tape;
            let session = commit.session.as_mut().unwrap();
            match n % 4 {
                1 => session.expected_seq = 77,
                2 => session.events.insert(0, (at(100), event(Kind::MessageAccepted, n as u64))),
                _ => {}
            }
            commit
        })
        .collect();
    let results = commit_together(&store, commits);
    let log = whole_log(&store);
    for (n, result) in results.iter().enumerate() {
        let of_session = log.iter().filter(|recorded| recorded.session == Some(owners[n].id())).count();
        assert_eq!(
            (result.is_ok(), of_session),
            (!matches!(n % 4, 1 | 2), if result.is_ok() { 2 } else { 1 }),
            "session {n}: {result:?}"
        );
    }
    // No number was lost to those that failed.
    assert_eq!(log.iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), (1..=30).collect::<Vec<_>>());
    assert!(block_on(store.check(CheckDepth::Full)).unwrap().findings.is_empty());
}

#[test]
fn several_commits_of_one_session_in_one_transaction_add_up() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let commits: Vec<Commit> = (0..50)
        .map(|n| {
            let mut commit = owner.prepare(vec![(at(n), event(Kind::AgentCompletion, n))]);
            commit.urgency = Urgency::Tape;
            commit.session.as_mut().unwrap().tape = Some(mark(n + 1));
            commit
        })
        .collect();
    for result in commit_together(&store, commits) {
        result.unwrap();
    }
    let loaded = block_on(store.load_session(owner.id())).unwrap().unwrap();
    assert_eq!((loaded.state.session_seq(), loaded.mark.unwrap().offset), (51, 50));
    assert_eq!(block_on(store.session(owner.id())).unwrap().unwrap(), owner.state.view());
}

#[test]
fn the_outbox_keeps_what_the_tape_does_not_have() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let mut commit = owner.prepare(vec![(at(1), event(Kind::SessionStarting, 1))]);
    let session = commit.session.as_mut().unwrap();
    session.outbox = vec![input(1), input(2), input(3)];
    session.tape = Some(mark(512));
    store.commit_blocking(commit).unwrap();
    let mut commit = owner.prepare(Vec::new());
    commit.session.as_mut().unwrap().outbox_done = Some(2);
    store.commit_blocking(commit).unwrap();
    drop(store);

    let store = place.open();
    let loaded = block_on(store.load_session(owner.id())).unwrap().unwrap();
    assert_eq!((loaded.outbox, loaded.last_input_no, loaded.mark), (vec![input(3)], 3, Some(mark(512))));
    assert_eq!(block_on(store.unended_sessions()).unwrap(), [owner.id()]);

    // An ended session is told nothing more.
    owner.record(&store, vec![(at(2), event(Kind::SessionFailed, 1))]).unwrap();
    let loaded = block_on(store.load_session(owner.id())).unwrap().unwrap();
    assert!(loaded.outbox.is_empty() && loaded.state.is_ended());
    assert_eq!((loaded.last_input_no, loaded.mark.unwrap().offset), (3, 512));
    assert!(block_on(store.unended_sessions()).unwrap().is_empty());
}

#[test]
fn watchers_get_what_is_durable_in_order() {
    let place = Place::new();
    let store = place.open();
    let mut tail = store.subscribe_tail();
    assert_eq!(store.last_seq(), 0);
    let mut owner = Owner::create(&store, 1);
    owner
        .record(&store, vec![(at(1), event(Kind::SessionStarting, 1)), (at(2), event(Kind::TurnStarted, 1))])
        .unwrap();
    let _ = owner.record(&store, vec![(at(1), Event::SessionCreated(Box::new(created(1))))]).unwrap_err();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let batch = block_on(tail.recv()).unwrap();
        seen.extend(batch.iter().map(Arc::clone));
    }
    let log = whole_log(&store);
    assert_eq!(seen.iter().map(|recorded| &***recorded).collect::<Vec<_>>(), log.iter().collect::<Vec<_>>());
    assert_eq!(store.last_seq(), 3);
    assert!(tail.try_recv().is_err());
}

#[test]
fn epochs_only_grow() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(block_on(store.next_epoch()).unwrap(), 1);
    assert_eq!(block_on(store.next_epoch()).unwrap(), 2);
    assert_eq!(block_on(store.raise_epoch(9)).unwrap(), 9);
    assert_eq!(block_on(store.raise_epoch(4)).unwrap(), 9);
    let node = store.node_id();
    drop(store);
    let store = place.open();
    assert_eq!((block_on(store.next_epoch()).unwrap(), store.node_id()), (10, node));
}

#[test]
fn large_bodies_are_files_and_come_back_whole() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    let text = "x".repeat(100_000);
    let large = Event::AgentCompletion(ostler_domain::event::Text::from(text.clone()));
    owner
        .record(
            &store,
            vec![(at(1), large.clone()), (at(2), large.clone()), (at(3), event(Kind::AgentCompletion, 1))],
        )
        .unwrap();
    let files: Vec<_> = std::fs::read_dir(place.paths().blobs)
        .unwrap()
        .flat_map(|shelf| std::fs::read_dir(shelf.unwrap().path()).unwrap())
        .collect();
    assert_eq!(files.len(), 1, "the same body is one file");
    let inline: i64 = place
        .sql()
        .query_row("SELECT count(*) FROM log_event WHERE body IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(inline, 2);
    let log = block_on(store.session_events(owner.id(), 2, 10)).unwrap();
    assert_eq!(log.rows[0].event, large);

    std::fs::remove_file(files[0].as_ref().unwrap().path()).unwrap();
    let listed = block_on(store.events_after(0, &EventFilter::default(), 10)).unwrap();
    assert!(matches!(listed.rows[1].event, ostler_domain::Event::Unreadable(_)), "{listed:?}");
    let error = block_on(store.load_session(owner.id())).unwrap_err();
    assert!(matches!(error, ostler_store::ReadError::Blob { seq: 2, .. }), "{error:?}");
    let refusal = ostler_domain::Refusal::from(error);
    assert_eq!(refusal.reason, ostler_domain::Reason::StoreCorrupt);
}
