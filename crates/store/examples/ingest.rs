//! throwaway
use std::time::Instant;
use ostler_domain::{*, session::*, event::*};
use ostler_store::*;
#[path = "../tests/store/samples.rs"]
#[allow(dead_code)]
mod samples;

fn main() {
    let sessions: u64 = 500;
    let per_commit: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2);
    let total: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(400_000);
    for round in 0..3 {
        let raw = raw(total);
        let ours = ours(sessions, per_commit, total);
        println!("round {round}: raw {raw:.0}/s ours {ours:.0}/s ratio {:.2}", ours / raw);
    }
}
fn body() -> Event { Event::AgentCompletion(Text { text: "x".repeat(288) }) }

fn raw(total: u64) -> f64 {
    let dir = tempfile::tempdir_in(".").unwrap();
    let c = rusqlite::Connection::open(dir.path().join("x.db")).unwrap();
    c.execute_batch("PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-16384;").unwrap();
    c.execute_batch(include_str!("../src/schema/log.sql")).unwrap();
    let text = body().body();
    let t = Instant::now();
    let mut seq = 0u64;
    while seq < total {
        c.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut s = c.prepare_cached("INSERT INTO log_event VALUES (?1,?2,?3,?4,?5,?6,?7)").unwrap();
        for _ in 0..1000 { seq += 1; s.execute(rusqlite::params![seq as i64, (seq % 500) as i64, (seq / 500) as i64 + 1, 1_763_000_000_000_000i64, 53, text, None::<Vec<u8>>]).unwrap(); }
        drop(s);
        c.execute_batch("COMMIT").unwrap();
    }
    total as f64 / t.elapsed().as_secs_f64()
}

fn ours(sessions: u64, per: u64, total: u64) -> f64 {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Store::open(&Paths::below(dir.path()), &Options { search: false }).unwrap().store;
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let rate = rt.block_on(async {
        let mut states = Vec::new();
        for n in 0..sessions {
            let created = samples::created(n);
            let at = samples::at(n);
            let ev = vec![(at, Event::SessionCreated(Box::new(created))), (at, samples::event(Kind::SessionStarting, n)), (at, samples::event(Kind::SessionStarted, n)), (at, samples::event(Kind::TurnStarted, n))];
            let state = State::replay(ev.iter().map(|(a, e)| (*a, e))).unwrap();
            store.commit(Commit { urgency: Urgency::Control, node_events: vec![], request: None, session: Some(SessionCommit { id: state.created().id, expected_seq: 0, events: ev, view: state.view(), tape: None, outbox: vec![], outbox_done: None }) }).await.unwrap();
            states.push(state);
        }
        let t = Instant::now();
        let rounds = total / sessions / per;
        let mut tasks = Vec::new();
        for mut state in states {
            let store = store.clone();
            tasks.push(tokio::spawn(async move {
                for r in 0..rounds {
                    let expected = state.session_seq();
                    let ev: Vec<_> = (0..per).map(|_| (samples::at(9), body())).collect();
                    for (a, e) in &ev { state.apply(*a, e); }
                    store.commit(Commit { urgency: Urgency::Tape, node_events: vec![], request: None, session: Some(SessionCommit { id: state.created().id, expected_seq: expected, events: ev, view: state.view(), tape: Some(TapeMark { offset: r, assembler: "{}".into(), dialogue: vec![7; 200], dialogue_version: 1 }), outbox: vec![], outbox_done: None }) }).await.unwrap();
                }
            }));
        }
        for t in tasks { t.await.unwrap(); }
        (rounds * per * sessions) as f64 / t.elapsed().as_secs_f64()
    });
    drop(store);
    rate
}
