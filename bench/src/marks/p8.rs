//! P8: how soon a daemon answers, whatever the history, and how soon it has found its agents again.

use std::{
    process::{Child, Command},
    time::{Duration, Instant},
};

use ostler_client::query::{Page, SessionFilter};
use ostler_domain::{home::Home, session::Attention};
use ostler_testkit::TestHome;

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::{
        daemon::Daemon,
        load::attached,
        timed::{milliseconds, timed},
        wal,
    },
};

/// Starts of each kind in a round.
const STARTS: usize = 15;
const KEEPERS: u64 = 100;

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let home = bench.large_home()?;
    let runtime = runtime()?;
    let (mut starts, mut nothing, mut recoveries, mut adoptions) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut wal_bytes = 0;
    for round in 1..=bench.rounds {
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            raw.push(timed(&mut Command::new("/bin/true"))?);
            let (daemon, took) = runtime.block_on(start(bench, &home))?;
            ours.push(milliseconds(took));
            runtime.block_on(daemon.stop())?;
        }
        starts.push(Sample::new(Unit::Milliseconds, ours).median());
        nothing.push(Sample::new(Unit::Milliseconds, raw).median());
        wal_bytes = wal::left_full(&home)?;
        let (daemon, took) = runtime.block_on(start(bench, &home))?;
        recoveries.push(milliseconds(took));
        runtime.block_on(daemon.stop())?;
        adoptions.push(milliseconds(runtime.block_on(adopt(bench))?));
        say(&format!(
            "  round {round}: start {:.1} ms, /bin/true {:.2} ms, full log {:.1} ms, {KEEPERS} keepers {:.0} ms",
            starts.last().unwrap_or(&0.0),
            nothing.last().unwrap_or(&0.0),
            recoveries.last().unwrap_or(&0.0),
            adoptions.last().unwrap_or(&0.0)
        ));
    }
    let sample = |values: Vec<f64>| Sample::new(Unit::Milliseconds, values);
    let count = bench.large_sessions();
    Ok(Section {
        name: "P8",
        rows: vec![
            Row::new(format!("start to the first answer (list of 50), {count} sessions; raw is /bin/true; medians of {STARTS}"), sample(starts), Goal::RatioAtMost(10.0))
                .beside(sample(nothing)),
            Row::new(format!("the same after kill -9 with a log of {} MB", wal_bytes >> 20), sample(recoveries), Goal::AtMost(100.0)),
            Row::new(format!("start until {KEEPERS} keepers are adopted, after kill -9"), sample(adoptions), Goal::AtMost(1_000.0)),
        ],
        notes: Vec::new(),
    })
}

async fn start(bench: &Bench, home: &Home) -> Outcome<(Daemon, Duration)> {
    let began = Instant::now();
    let list = |client: ostler_client::Client| async move {
        client.sessions(&SessionFilter::default(), Page::of(50, None)).await
    };
    let (daemon, _) = Daemon::answering(&bench.ostler, home, list).await?;
    Ok((daemon, began.elapsed()))
}

/// Kills a daemon that has idle agents and waits until the next one has found them all.
async fn adopt(bench: &Bench) -> Outcome<Duration> {
    let home = idle_agents(bench, KEEPERS).await?;
    let (took, mut started) = adopted_again(&home, KEEPERS).await?;
    home.kill_daemon();
    let _ = started.wait();
    Ok(took)
}

/// Kills a home's daemon, starts another, and says how long that one took to find the agents.
pub(super) async fn adopted_again(home: &TestHome, agents: u64) -> Outcome<(Duration, Child)> {
    home.kill_daemon();
    let began = Instant::now();
    let started = home.command(&["daemon", "run", "--background"]).spawn()?;
    let client = loop {
        match ostler_client::Client::connect(&home.home).await {
            Ok(client) => break client,
            Err(_) => tokio::time::sleep(Duration::from_micros(500)).await,
        }
    };
    attached(&client, agents).await?;
    Ok((began.elapsed(), started))
}

/// A home with a daemon and agents that have done what they were told and wait.
pub(super) async fn idle_agents(bench: &Bench, count: u64) -> Outcome<TestHome> {
    let home = TestHome::started(&bench.ostler).await;
    let client = home.client().await;
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(home.session(&client, "{\"steps\":[{\"say\":\"here\"}]}").await.id);
    }
    for id in ids {
        home.reaches(&id.to_string(), "the agent to be idle", |view| {
            view.attention == Some(Attention::Idle) && view.turns > 0
        })
        .await;
    }
    Ok(home)
}
