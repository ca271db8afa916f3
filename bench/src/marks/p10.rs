//! P10: one daemon, many who watch, beside NATS.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinHandle, time::MissedTickBehavior};

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::{
        fan::{self, Door, Seen},
        feed::Feeder,
        peers::nats::Nats,
        stage::Stage,
    },
};

/// Sessions whose events are watched.
const SESSIONS: u64 = 20;
/// Events published at a time.
const CHUNK: u64 = 2_000;
/// How long latencies are looked at.
const SPAN: Duration = Duration::from_secs(5);

/// So many who watch, how much they are sent at once, and how much in a second.
struct Crowd {
    watchers: usize,
    events: u64,
    per_second: u64,
}

const CROWDS: [Crowd; 2] = [
    Crowd { watchers: 10, events: 300_000, per_second: 2_000 },
    Crowd { watchers: 100, events: 40_000, per_second: 200 },
];

/// What one round gave.
#[derive(Clone, Copy)]
struct Fanned {
    per_second: f64,
    p50: f64,
    p99: f64,
}

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for crowd in &CROWDS {
        let (mut ours, mut theirs) = (Vec::new(), Ok(Vec::new()));
        for round in 1..=bench.rounds {
            ours.push(runtime.block_on(own(bench, crowd))?);
            match (runtime.block_on(nats(bench, crowd))?, &mut theirs) {
                (Ok((fanned, version)), Ok(all)) => {
                    all.push(fanned);
                    notes = vec![format!(
                        "{version}, without persistence, by a client of a few lines. Ours are durable before they are published; latencies are from their publication, as NATS's are. From the tape to the watcher is in P2."
                    )];
                }
                (Err(why), _) => theirs = Err(why),
                (Ok(_), Err(_)) => {}
            }
            let show = |fanned: Option<&Fanned>| {
                fanned.map_or("–".to_owned(), |fanned| {
                    format!("{:.0}/s, p99 {:.2} ms", fanned.per_second, fanned.p99)
                })
            };
            say(&format!(
                "  round {round}: {} watchers: ours {}, NATS {}",
                crowd.watchers,
                show(ours.last()),
                show(theirs.as_ref().ok().and_then(|all| all.last()))
            ));
        }
        rows.extend(self::rows(crowd, &ours, theirs.as_deref().map_err(Clone::clone)));
    }
    Ok(Section { name: "P10", rows, notes })
}

fn rows(crowd: &Crowd, ours: &[Fanned], theirs: Result<&[Fanned], String>) -> Vec<Row> {
    let Crowd { watchers, per_second, .. } = crowd;
    let row = |what: String, unit, goal, of: fn(&Fanned) -> f64| {
        let peer = theirs.clone().map(|all| Sample::new(unit, all.iter().map(of)));
        Row::new(what, Sample::new(unit, ours.iter().map(of)), goal).beside_peer(peer)
    };
    let paced = format!("published to received, {watchers} watchers at {per_second}/s");
    vec![
        row(
            format!("deliveries/s to {watchers} watchers; raw is NATS"),
            Unit::PerSecond,
            Goal::RatioAtLeast(0.8),
            |round| round.per_second,
        ),
        row(format!("{paced}, p50"), Unit::Milliseconds, Goal::Shown, |round| round.p50),
        row(format!("{paced}, p99"), Unit::Milliseconds, Goal::RatioAtMost(1.0), |round| round.p99),
    ]
}

fn crowd_of(count: usize) -> Vec<Arc<Seen>> {
    (0..count).map(|_| Arc::default()).collect()
}

async fn own(bench: &Bench, crowd: &Crowd) -> Outcome<Fanned> {
    let stage = Stage::set(&bench.dir, SESSIONS)?;
    let mut feeder = Feeder::spawn(&stage.home, crowd.per_second as f64 / SESSIONS as f64)?;
    let door = Door::open(&stage.home)?;
    let all = crowd_of(crowd.watchers);
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    for seen in &all {
        tasks.push(fan::subscriber(&stage.home, Arc::clone(seen)).await?);
    }
    let per_second =
        fan::throughput(&all, crowd.events, CHUNK, async |chunk| feeder.say(chunk / SESSIONS)).await?;
    all.iter().for_each(|seen| seen.note());
    feeder.begin()?;
    tokio::time::sleep(SPAN).await;
    let taken: Vec<(i64, i64)> = all.iter().flat_map(|seen| std::mem::take(&mut *seen.noted())).collect();
    tasks.iter().for_each(JoinHandle::abort);
    let published = door.close()?;
    drop(feeder);
    let from =
        |(seq, at): &(i64, i64)| published.get(seq).map(|published| (at - published).max(0) as f64 / 1_000.0);
    let mut waited: Vec<f64> = taken.iter().filter_map(from).collect();
    if waited.len() < taken.len() * 9 / 10 {
        return Err("events were received that nobody saw published".into());
    }
    Ok(Fanned { per_second, p50: percentile(&mut waited, 50.0), p99: percentile(&mut waited, 99.0) })
}

async fn nats(bench: &Bench, crowd: &Crowd) -> Outcome<Result<(Fanned, String), String>> {
    let nats = match Nats::serving(&bench.dir).await? {
        Ok(nats) => nats,
        Err(why) => return Ok(Err(why)),
    };
    let all = crowd_of(crowd.watchers);
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    for seen in &all {
        tasks.push(nats.subscriber(Arc::clone(seen)).await?);
    }
    let mut publisher = nats.publisher().await?;
    let per_second =
        fan::throughput(&all, crowd.events, CHUNK, async |chunk| publisher.publish(chunk).await).await?;
    all.iter().for_each(|seen| seen.note());
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / crowd.per_second));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let began = Instant::now();
    while began.elapsed() < SPAN {
        tick.tick().await;
        publisher.publish(1).await?;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    tasks.iter().for_each(JoinHandle::abort);
    let ages = |seen: &Arc<Seen>| std::mem::take(&mut *seen.noted());
    let mut waited: Vec<f64> =
        all.iter().flat_map(ages).map(|(sent, at)| (at - sent).max(0) as f64 / 1_000.0).collect();
    let fanned =
        Fanned { per_second, p50: percentile(&mut waited, 50.0), p99: percentile(&mut waited, 99.0) };
    Ok(Ok((fanned, nats.version.clone())))
}
