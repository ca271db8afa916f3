//! P6: how long somebody waits who asks for a session and leaves, whatever the history, beside `pueue add`.

use std::{fs, process::Command, thread, time::Duration};

use ostler_client::{AddCampaign, Client};
use ostler_domain::home::Home;
use tokio::runtime::Runtime;

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::{daemon::Daemon, peers::pueue::Pueue, timed::timed_output},
};

/// Of each, in a round.
const TIMES: usize = 15;
/// How long everybody is left alone after each: what was asked for is started and ended meanwhile.
const REST: Duration = Duration::from_millis(300);
const SMALL: u64 = 1_000;
/// The history that pueue has too.
const MIDDLE: u64 = 10_000;
const SCENARIO: &str = r#"{"steps":[{"say":"here"}]}"#;

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let sizes = [SMALL, MIDDLE, bench.large_sessions()];
    let mut places = Vec::new();
    for size in sizes {
        places.push(runtime.block_on(Place::open(bench, &bench.home_of(size)?))?);
    }
    let pueue = Pueue::with_finished(&bench.dir, MIDDLE)?;
    let mut ours: [Vec<f64>; 3] = Default::default();
    let mut theirs = Vec::new();
    for round in 1..=bench.rounds {
        let mut took: [Vec<f64>; 3] = Default::default();
        let mut added = Vec::new();
        for _ in 0..TIMES {
            for (place, took) in places.iter().zip(&mut took) {
                took.push(place.run_detached(&runtime)?);
            }
            if let Ok(pueue) = &pueue {
                added.push(pueue.add()?);
                thread::sleep(REST);
            }
        }
        let median = |values: Vec<f64>| Sample::new(Unit::Milliseconds, values).median();
        for (ours, took) in ours.iter_mut().zip(took) {
            ours.push(median(took));
        }
        theirs.push(median(added));
        let [small, middle, large] = ours.each_ref().map(|rounds| rounds[round - 1]);
        say(&format!(
            "  round {round}: {small:.1} ms at {SMALL}, {middle:.1} at {MIDDLE}, {large:.1} at {}; pueue {:.1} ms",
            bench.large_sessions(),
            theirs[round - 1]
        ));
    }
    for place in places {
        runtime.block_on(place.daemon.stop())?;
    }
    let [small, middle, large] = ours.map(|values| Sample::new(Unit::Milliseconds, values));
    let version = pueue.as_ref().ok().map(|pueue| pueue.version.clone());
    let peer = pueue.map(|_| Sample::new(Unit::Milliseconds, theirs));
    Ok(Section {
        name: "P6",
        rows: vec![
            Row::new(
                format!("`ostler run -d` with {MIDDLE} sessions stored; raw is `pueue add` with {MIDDLE} finished tasks; medians of {TIMES}"),
                middle,
                Goal::RatioAtMost(0.1),
            )
            .beside_peer(peer),
            Row::new(
                format!("the same with {} sessions stored, beside {SMALL}", bench.large_sessions()),
                large,
                Goal::RatioAtMost(1.5),
            )
            .beside(small),
        ],
        notes: version.into_iter().map(|version| format!("{version}. Both include their client's process; ours returns when the session is durable, and it is sandboxed and started meanwhile.")).collect(),
    })
}

/// A daemon with a history and a campaign that exists.
struct Place {
    daemon: Daemon,
    client: Client,
    ostler: std::path::PathBuf,
    campaign: String,
}

impl Place {
    async fn open(bench: &Bench, home: &Home) -> Outcome<Self> {
        let dir = bench.dir.join("campaign");
        fs::create_dir_all(&dir)?;
        let campaign = dir.to_str().ok_or("the directory has a name that is not text")?.to_owned();
        let ready = |client: Client| async move { client.status().await.map(|_| client) };
        let (daemon, client) = Daemon::answering(&bench.ostler, home, ready).await?;
        if client.campaign(&campaign).await.is_err() {
            client.add_campaign(AddCampaign { path: campaign.clone(), name: None }).await?;
        }
        Ok(Self { daemon, client, ostler: bench.ostler.clone(), campaign })
    }

    /// Asks for a session as a person does, and ends it again.
    fn run_detached(&self, runtime: &Runtime) -> Outcome<f64> {
        let mut run = Command::new(&self.ostler);
        run.args(["run", "-d", "-q", "-p", "script", "-C", &self.campaign, SCENARIO]);
        run.env_remove("OSTLER_HOME").envs(self.daemon.home.variables());
        let (took, id) = timed_output(&mut run)?;
        thread::sleep(REST);
        runtime.block_on(async {
            self.client.stop_session(&id, true).await?;
            while self.client.session(&id).await?.outcome.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Outcome::Ok(())
        })?;
        Ok(took)
    }
}
