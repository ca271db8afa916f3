//! P12: memory of a daemon with a long history, and of what stands beside every agent.

use std::time::Duration;

use ostler_client::query::{Page, SessionFilter};
use ostler_testkit::process::command_line;

use super::{Bench, p8, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit},
    rig::{daemon::Daemon, procfs},
};

const KEEPERS: u64 = 100;
/// How long a daemon and its keepers are left alone before they are looked at.
const REST: Duration = Duration::from_secs(3);

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let home = bench.large_home()?;
    let runtime = runtime()?;
    let mut daemons = Vec::new();
    for _ in 0..bench.rounds {
        daemons.push(runtime.block_on(async {
            let list = |client: ostler_client::Client| async move {
                client.sessions(&SessionFilter::default(), Page::of(50, None)).await
            };
            let (daemon, _) = Daemon::answering(&bench.ostler, &home, list).await?;
            tokio::time::sleep(REST).await;
            let resident = megabytes(procfs::resident(daemon.pid()));
            daemon.stop().await?;
            Outcome::Ok(resident)
        })?);
    }
    let (keepers, inits) = runtime.block_on(beside_agents(bench))?;
    let both = keepers.iter().zip(&inits).map(|(keeper, init)| keeper + init);
    let sample = |values: Vec<f64>| Sample::new(Unit::Megabytes, values);
    Ok(Section {
        name: "P12",
        rows: vec![
            Row::new(
                format!("daemon, resident, idle, {} sessions stored", bench.large_sessions()),
                sample(daemons),
                Goal::AtMost(64.0),
            ),
            Row::new(
                format!("keeper and init, Private_Dirty, idle, {KEEPERS} sessions"),
                sample(both.collect()),
                Goal::AtMost(3.0),
            ),
            Row::new("keeper alone", sample(keepers.clone()), Goal::Shown),
            Row::new("init alone", sample(inits.clone()), Goal::Shown),
        ],
        notes: Vec::new(),
    })
}

/// What keepers and inits have for themselves, session by session.
async fn beside_agents(bench: &Bench) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let home = p8::idle_agents(bench, KEEPERS).await?;
    tokio::time::sleep(REST).await;
    let is_init =
        |pid: &u32| command_line(*pid).get(1..3) == Some(&["internal".to_owned(), "init".to_owned()]);
    let own = |pid: u32| megabytes(procfs::private_dirty(pid));
    let keepers = home.keepers();
    let inits = |keeper: u32| procfs::children(keeper).into_iter().filter(is_init).map(own).sum::<f64>();
    Ok(keepers.iter().map(|(keeper, _)| (own(keeper.pid), inits(keeper.pid))).unzip())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
