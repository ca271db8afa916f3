//! P2: how long people wait for a control record while agents are busy, and how old a tape event is when it is seen.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use ostler_domain::{Event, event::Text, session::State};
use ostler_store::{Options, Paths, Store, Urgency};
use tokio::time::{MissedTickBehavior, interval};

use super::{Bench, p9, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::{commit, line_text, raw::Raw, stage::Stage},
};

const SESSIONS: u64 = 500;
const PER_SECOND: u64 = 10_000;
const SPAN: Duration = Duration::from_secs(10);
/// Control records in a second: far more than people make, so that a percentile means something.
const CONTROLS: u64 = 100;

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let (mut ours, mut raw, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=bench.rounds {
        raw.push(percentiles(Raw::create(&bench.dir)?.latencies(PER_SECOND, SPAN)?));
        ours.push(percentiles(controls(&bench.dir)?));
        alone.push(percentiles(Raw::create(&bench.dir)?.latencies(CONTROLS, SPAN)?));
        let show = |(p50, p99): &(f64, f64)| format!("{p50:.2} / {p99:.2} ms");
        let [ours, raw] = [&ours, &raw].map(|rounds| rounds.last().map(show).unwrap_or_default());
        say(&format!("  round {round}: p50 / p99 ours {ours}, raw {raw}"));
    }
    let p50 = |rounds: &[(f64, f64)]| Sample::new(Unit::Milliseconds, rounds.iter().map(|(p50, _)| *p50));
    let p99 = |rounds: &[(f64, f64)]| Sample::new(Unit::Milliseconds, rounds.iter().map(|(_, p99)| *p99));
    let loads = p9::full_load(bench)?;
    let seen =
        |value: fn(&crate::rig::load::Load) -> f64| Sample::new(Unit::Milliseconds, loads.iter().map(value));
    let under = format!("at {PER_SECOND} tape events/s");
    Ok(Section {
        name: "P2",
        rows: vec![
            Row::new(format!("control record durable, p50, {under}"), p50(&ours), Goal::RatioAtMost(2.0))
                .beside(p50(&raw)),
            Row::new(format!("control record durable, p99, {under}"), p99(&ours), Goal::RatioAtMost(2.0))
                .beside(p99(&raw)),
            Row::new(
                format!("the same p50 beside a raw single commit at {CONTROLS}/s and nothing else"),
                p50(&ours),
                Goal::Shown,
            )
            .beside(p50(&alone)),
            Row::new(
                "tape event from the tape to a client's watch, p50, real daemon, 500 sessions × 20/s",
                seen(|load| load.seen_p50),
                Goal::Shown,
            ),
            Row::new("the same, p99", seen(|load| load.seen_p99), Goal::AtMost(25.0)),
        ],
        notes: Vec::new(),
    })
}

fn percentiles(mut latencies: Vec<f64>) -> (f64, f64) {
    (percentile(&mut latencies, 50.0), percentile(&mut latencies, 99.0))
}

/// Commits of one event each from many sessions, and somebody who waits for theirs.
fn controls(dir: &Path) -> Outcome<Vec<f64>> {
    let stage = Stage::set(dir, SESSIONS + 1)?;
    let store = Store::open(&Paths::below(stage.home.state()), &Options::default())?.store;
    let mut states: Vec<State> = Vec::new();
    for id in &stage.sessions {
        states.push(
            ostler_store::block_on(store.load_session(*id))?.ok_or("a staged session is recorded")?.state,
        );
    }
    let person = states.pop().ok_or("a stage has sessions")?;
    runtime()?.block_on(async {
        let agents = tokio::spawn(agents(store.clone(), states));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let waited = person_waits(&store, person).await;
        agents.abort();
        waited
    })
}

/// Every session's next line in turn, at the rate of all together.
async fn agents(store: Store, mut states: Vec<State>) {
    let mut tick = interval(Duration::from_millis(1));
    let began = Instant::now();
    let mut said: u64 = 0;
    loop {
        tick.tick().await;
        let due = (began.elapsed().as_secs_f64() * PER_SECOND as f64) as u64;
        while said < due {
            let n = usize::try_from(said).unwrap_or(0) % states.len();
            let event = Event::AgentCompletion(Text::from(line_text(said)));
            drop(store.submit(commit(&mut states[n], [event], Urgency::Tape)).await);
            said += 1;
        }
    }
}

async fn person_waits(store: &Store, mut state: State) -> Outcome<Vec<f64>> {
    let mut tick = interval(Duration::from_micros(1_000_000 / CONTROLS));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    let mut waited = Vec::new();
    while began.elapsed() < SPAN {
        tick.tick().await;
        let event = Event::AgentStatus(Text::from(line_text(0)));
        let asked = Instant::now();
        store.commit(commit(&mut state, [event], Urgency::Control)).await?;
        waited.push(asked.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(waited)
}
