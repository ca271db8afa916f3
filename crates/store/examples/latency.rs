//! throwaway
use std::time::{Duration, Instant};
use ostler_domain::{*, session::*, event::*};
use ostler_store::*;
#[path = "../tests/store/samples.rs"]
#[allow(dead_code)]
mod samples;
fn pct(mut v: Vec<Duration>) -> String { v.sort(); format!("p50 {:?} p99 {:?} max {:?} n {}", v[v.len()/2], v[v.len()*99/100], v[v.len()-1], v.len()) }
fn body() -> Event { Event::AgentCompletion(Text { text: "x".repeat(288) }) }
fn raw() -> Vec<Duration> {
    let dir = tempfile::tempdir_in(".").unwrap();
    let c = rusqlite::Connection::open(dir.path().join("x.db")).unwrap();
    c.execute_batch("PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-16384;").unwrap();
    c.execute_batch(include_str!("../src/schema/log.sql")).unwrap();
    let text = body().body();
    let mut v = Vec::new();
    for seq in 1..3000i64 {
        std::thread::sleep(Duration::from_millis(1));
        let t = Instant::now();
        c.execute("INSERT INTO log_event VALUES (?1,?2,?3,?4,?5,?6,?7)", rusqlite::params![seq, seq % 500, seq, 1_763_000_000_000_000i64, 53, text, None::<Vec<u8>>]).unwrap();
        v.push(t.elapsed());
    }
    v
}
fn main() {
    println!("raw single    {}", pct(raw()));
    for background in [false, true] {
    let dir = tempfile::tempdir_in(".").unwrap();
    let store = Store::open(&Paths::below(dir.path()), &Options { search: false }).unwrap().store;
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    rt.block_on(async {
        let mut states = Vec::new();
        for n in 0..501 {
            let created = samples::created(n);
            let at = samples::at(n);
            let ev = vec![(at, Event::SessionCreated(Box::new(created))), (at, samples::event(Kind::SessionStarting, n)), (at, samples::event(Kind::SessionStarted, n)), (at, samples::event(Kind::TurnStarted, n))];
            let state = State::replay(ev.iter().map(|(a, e)| (*a, e))).unwrap();
            store.commit(Commit { urgency: Urgency::Control, node_events: vec![], request: None, session: Some(SessionCommit { id: state.created().id, expected_seq: 0, events: ev, view: state.view(), tape: None, outbox: vec![], outbox_done: None }) }).await.unwrap();
            states.push(state);
        }
        let mut me = states.pop().unwrap();
        if background {
        for (n, mut state) in states.into_iter().enumerate() {
            let store = store.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_micros(n as u64 * 100)).await;
                let mut tick = tokio::time::interval(Duration::from_millis(50));
                loop {
                    tick.tick().await;
                    let expected = state.session_seq();
                    let ev = vec![(samples::at(9), body())];
                    for (a, e) in &ev { state.apply(*a, e); }
                    if store.commit(Commit { urgency: Urgency::Tape, node_events: vec![], request: None, session: Some(SessionCommit { id: state.created().id, expected_seq: expected, events: ev, view: state.view(), tape: Some(TapeMark { offset: 1, assembler: "{}".into(), dialogue: vec![7; 200], dialogue_version: 1 }), outbox: vec![], outbox_done: None }) }).await.is_err() { break }
                }
            });
        }
        }
        let before = store.last_seq();
        let t0 = Instant::now();
        let cpu0 = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let mut v = Vec::new();
        for _ in 0..if background {2000} else {2000} {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let expected = me.session_seq();
            let ev = vec![(samples::at(9), samples::event(Kind::AgentStatus, 1))];
            for (a, e) in &ev { me.apply(*a, e); }
            let c = Commit { urgency: Urgency::Control, node_events: vec![], request: None, session: Some(SessionCommit { id: me.created().id, expected_seq: expected, events: ev, view: me.view(), tape: None, outbox: vec![], outbox_done: None }) };
            let t = Instant::now();
            store.commit(c).await.unwrap();
            v.push(t.elapsed());
        }
        let cpu1 = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let el = t0.elapsed().as_secs_f64();
        let cpu = (cpu1.tv_sec - cpu0.tv_sec) as f64 + (cpu1.tv_nsec - cpu0.tv_nsec) as f64 / 1e9;
        println!("background {background}: {} ; {:.0} events/s, cpu {:.2} cores", pct(v), (store.last_seq() - before) as f64 / el, cpu / el);
    });
    }
}
