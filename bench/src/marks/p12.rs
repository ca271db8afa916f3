//! P12: memory of a daemon with a long history, and of what stands beside every agent.

use std::time::Duration;

use ostler_client::query::{Page, SessionFilter};
use ostler_testkit::{TestHome, process::command_line, scenario, wait};

use super::{Bench, p8, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit},
    rig::{daemon::Daemon, procfs},
};

const KEEPERS: u64 = 100;
const GATEWAYS: usize = 10;
/// Of each gateway.
const CONNECTIONS: usize = 8;
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
    let beside = runtime.block_on(beside_agents(bench))?;
    let gateways = runtime.block_on(gateways(bench))?;
    let each = |of: fn(&Beside) -> f64| beside.iter().map(of).collect::<Vec<f64>>();
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
                format!("keeper, warden and init, Private_Dirty, idle, {KEEPERS} sandboxed sessions"),
                sample(each(|beside| beside.keeper + beside.warden + beside.init)),
                Goal::AtMost(3.0),
            ),
            Row::new("keeper alone", sample(each(|beside| beside.keeper)), Goal::Shown),
            Row::new("warden alone", sample(each(|beside| beside.warden)), Goal::Shown),
            Row::new("init alone", sample(each(|beside| beside.init)), Goal::Shown),
            Row::new(
                format!("gateway, Private_Dirty, {CONNECTIONS} connections open"),
                sample(gateways),
                Goal::AtMost(8.0),
            ),
        ],
        notes: Vec::new(),
    })
}

/// What stands beside one agent, in megabytes that are its own.
struct Beside {
    keeper: f64,
    warden: f64,
    init: f64,
}

async fn beside_agents(bench: &Bench) -> Outcome<Vec<Beside>> {
    let home = p8::idle_agents(bench, KEEPERS).await?;
    tokio::time::sleep(REST).await;
    // Init is a fork of the warden and has its words; the agent has others.
    let is_warden =
        |pid: &u32| command_line(*pid).get(1..3) == Some(&["internal".to_owned(), "warden".to_owned()]);
    let below = |parent: u32| procfs::children(parent).into_iter().find(is_warden);
    let own = |pid: u32| megabytes(procfs::private_dirty(pid));
    let beside = |keeper: u32| -> Outcome<Beside> {
        let warden = below(keeper).ok_or("a keeper has no warden")?;
        let init = below(warden).ok_or("a warden has no init")?;
        Ok(Beside { keeper: own(keeper), warden: own(warden), init: own(init) })
    };
    home.keepers().iter().map(|(keeper, _)| beside(keeper.pid)).collect()
}

/// What gateways take that are being used.
async fn gateways(bench: &Bench) -> Outcome<Vec<f64>> {
    let home = TestHome::started(&bench.ostler).await;
    if !home.run(&["campaign", "set", "shop", "net.mode=provider"]).status.success() {
        return Err("the campaign cannot be given a gateway".into());
    }
    let client = home.client().await;
    // Opened by hand, and held open without a word.
    let script =
        "for fd in {10..17}; do eval \"exec $fd<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}\"; done; sleep 60";
    let step = serde_json::json!({"run": ["bash", "-c", script]});
    for _ in 0..GATEWAYS {
        home.session(&client, &scenario::of(vec![step.clone()])).await;
    }
    let is_gateway =
        |pid: &u32| command_line(*pid).get(1..3) == Some(&["internal".to_owned(), "gateway".to_owned()]);
    let running = || -> Vec<u32> {
        let keepers = home.keepers().into_iter();
        keepers.flat_map(|(keeper, _)| procfs::children(keeper.pid)).filter(is_gateway).collect()
    };
    wait::until("all gateways", wait::PATIENCE, || running().len() == GATEWAYS);
    tokio::time::sleep(REST).await;
    Ok(running().into_iter().map(|pid| megabytes(procfs::private_dirty(pid))).collect())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
