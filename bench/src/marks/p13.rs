//! P13: what five hundred idle sandboxed agents cost, how soon all of them can be ended, and found again.

use std::time::{Duration, Instant};

use super::{Bench, p8, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit},
    rig::procfs,
};

const SESSIONS: u64 = 500;
/// How long they are left alone, and then looked at.
const REST: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(20);

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let (idle, adopted, halted) = runtime()?.block_on(once(bench))?;
    let one = |unit, value: f64| Sample::new(unit, [value]);
    Ok(Section {
        name: "P13",
        rows: vec![
            Row::new(
                format!("daemon, keepers and wardens, share of one core, {SESSIONS} idle sandboxed sessions"),
                one(Unit::Percent, idle),
                Goal::AtMost(2.0),
            ),
            Row::new(
                "start until all are adopted, after kill -9",
                one(Unit::Milliseconds, adopted),
                Goal::AtMost(3_000.0),
            ),
            Row::new("halt: until no agent is left", one(Unit::Milliseconds, halted), Goal::AtMost(1_000.0)),
        ],
        notes: vec!["One round: each takes some minutes to make its agents.".to_owned()],
    })
}

async fn once(bench: &Bench) -> Outcome<(f64, f64, f64)> {
    let home = p8::idle_agents(bench, SESSIONS).await?;
    tokio::time::sleep(REST).await;
    let daemon = home.daemon().ok_or("the daemon is gone")?;
    let keepers = home.keepers();
    let wardens: Vec<_> = keepers.iter().flat_map(|(keeper, _)| home.children_of(keeper)).collect();
    let all = || keepers.iter().map(|(keeper, _)| keeper).chain(&wardens);
    let used = || {
        procfs::run_time(daemon.pid) + all().map(|process| procfs::run_time(process.pid)).sum::<Duration>()
    };
    let (before, began) = (used(), Instant::now());
    tokio::time::sleep(WINDOW).await;
    let idle = 100.0 * (used() - before).as_secs_f64() / began.elapsed().as_secs_f64();

    let (adopted, mut started) = p8::adopted_again(&home, SESSIONS).await?;
    let adopted = milliseconds(adopted);

    let inits = wardens.iter().flat_map(|warden| home.children_of(warden));
    let agents: Vec<_> = inits.flat_map(|init| home.children_of(&init)).collect();
    if agents.len() as u64 != SESSIONS {
        return Err(format!("{} agents were found instead of {SESSIONS}", agents.len()).into());
    }
    let began = Instant::now();
    home.run(&["halt"]);
    while agents.iter().any(|agent| agent.is_alive()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let halted = milliseconds(began.elapsed());
    home.kill_daemon();
    let _ = started.wait();
    Ok((idle, adopted, halted))
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}
