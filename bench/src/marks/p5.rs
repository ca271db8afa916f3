//! P5: how long a sandboxed agent takes to be ready, beside a careful call of bubblewrap.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use ostler_client::{CreateSession, Watched, query::EventFilter};
use ostler_domain::Kind;
use ostler_testkit::TestHome;

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::timed::milliseconds,
};

/// Starts in a round.
const STARTS: usize = 60;

/// A sandbox as people make it by hand: no masks, no Landlock, no seccomp.
const BUBBLEWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--ro-bind",
    "/etc/ssl",
    "/etc/ssl",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--tmpfs",
    "/home",
];

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let (mut ready, mut slowest, mut careful) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=bench.rounds {
        let mut ours = runtime.block_on(starts(bench))?;
        let mut theirs = bubblewraps(&bench.dir)?;
        ready.push(percentile(&mut ours, 50.0));
        slowest.push(percentile(&mut ours, 99.0));
        careful.push(percentile(&mut theirs, 50.0));
        say(&format!(
            "  round {round}: ready in {:.1} ms, bubblewrap {:.1} ms",
            ready[round - 1],
            careful[round - 1]
        ));
    }
    let sample = |values: &[f64]| Sample::new(Unit::Milliseconds, values.iter().copied());
    Ok(Section {
        name: "P5",
        rows: vec![
            Row::new("created to ready, sandboxed, script provider, p50; raw is bwrap … true", sample(&ready), Goal::RatioAtMost(2.5))
                .beside(sample(&careful)),
            Row::new("the same, p99, beside its own p50", sample(&slowest), Goal::RatioAtMost(3.0)).beside(sample(&ready)),
        ],
        notes: vec!["Ours includes two durable commits, the keeper's start and the agent's own; bubblewrap's is start to end of `true`.".to_owned()],
    })
}

/// From asking for a session to its agent's first word that it is ready, one after the other.
async fn starts(bench: &Bench) -> Outcome<Vec<f64>> {
    let home = TestHome::started(&bench.ostler).await;
    let client = home.client().await;
    let mut took = Vec::new();
    for _ in 0..STARTS {
        let filter =
            EventFilter { kinds: vec![Kind::SessionStarted, Kind::SessionFailed], ..EventFilter::default() };
        let mut watch = client.watch(filter, None).await?;
        let began = Instant::now();
        let session = client.create_session(CreateSession::new("shop", "script")).await?;
        loop {
            match watch.next().await {
                Some(Ok(Watched::Event(event))) if event.session == Some(session.id) => {
                    if event.event.kind() == Kind::SessionFailed {
                        return Err("a session did not start".into());
                    }
                    break;
                }
                Some(Ok(_)) => {}
                _ => return Err("the daemon is gone".into()),
            }
        }
        took.push(milliseconds(began.elapsed()));
        client.stop_session(&session.id.to_string(), true).await?;
        home.ended(&session.id.to_string()).await;
    }
    Ok(took)
}

fn bubblewraps(dir: &Path) -> Outcome<Vec<f64>> {
    let dir = dir.to_str().ok_or("the directory has a name that is not text")?;
    (0..STARTS)
        .map(|_| {
            let began = Instant::now();
            let status = Command::new("bwrap")
                .args(BUBBLEWRAP)
                .args(["--bind", dir, dir, "--chdir", dir, "true"])
                .stdin(Stdio::null())
                .status()
                .map_err(|error| {
                    format!("bwrap cannot be run ({error}): install bubblewrap to measure P5")
                })?;
            if !status.success() {
                return Err(format!("bwrap ended with {status}").into());
            }
            Ok(milliseconds(began.elapsed()))
        })
        .collect()
}
