//! P1: tape record → parse → durable commit → published, with a full backlog.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use ostler_client::query::EventFilter;
use ostler_domain::{
    Event, Kind,
    event::{By, Text},
    home::Home,
    provider::CallerKeys,
    session::State,
};
use ostler_engine::{Change, Clock, Engine, Program};
use ostler_store::{Options, Paths, Store, Urgency};

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::{
        commit, engine_options,
        feed::Keepers,
        line_text,
        procfs::{self, Used},
        raw::Raw,
        stage::Stage,
    },
};

const SESSIONS: u64 = 100;
const LINES: u64 = 5_000;
const BATCH: u64 = 1_000;

/// What one round gave.
pub(crate) struct Ingested {
    pub(crate) per_second: f64,
    /// Bytes that the writer wrote for an event.
    pub(crate) written: f64,
    span: Duration,
    threads: BTreeMap<String, Used>,
}

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let (mut ours, mut raw, mut store) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=bench.rounds {
        raw.push(raw_once(&bench.dir)?);
        ours.push(ingest(&bench.dir)?);
        store.push(store_alone(&bench.dir)?);
        let [raw, ours, store] = [raw.last(), ours.last().map(|ours| &ours.per_second), store.last()]
            .map(|n| n.copied().unwrap_or(0.0));
        say(&format!("  round {round}: ours {ours:.0}/s, the store alone {store:.0}/s, raw {raw:.0}/s"));
    }
    let per_second = |values: Vec<f64>| Sample::new(Unit::PerSecond, values);
    let raw = per_second(raw);
    let whole = per_second(ours.iter().map(|round| round.per_second).collect());
    Ok(Section {
        name: "P1",
        rows: vec![
            Row::new(
                format!("events/s, {SESSIONS} sessions × {LINES} lines on tape, raw in batches of {BATCH}"),
                whole,
                Goal::RatioAtLeast(0.6),
            )
            .beside(raw.clone()),
            Row::new(
                format!("the store alone: commits of {BATCH} events, no search index"),
                per_second(store),
                Goal::Shown,
            )
            .beside(raw),
        ],
        notes: ours.last().map(where_the_time_went).into_iter().collect(),
    })
}

fn where_the_time_went(round: &Ingested) -> String {
    let share = |used: &Used| 100.0 * used.cpu.as_secs_f64() / round.span.as_secs_f64();
    let parts = round.threads.iter().filter(|(_, used)| share(used) >= 1.0);
    let parts: Vec<String> = parts.map(|(name, used)| format!("`{name}` {:.0} %", share(used))).collect();
    format!("Threads in the last round, in percent of one core: {}.", parts.join(", "))
}

pub(crate) fn raw_once(dir: &Path) -> Outcome<f64> {
    let events = SESSIONS * LINES;
    let mut raw = Raw::create(dir)?;
    Ok(events as f64 / raw.insert(events, BATCH)?.as_secs_f64())
}

/// The real engine finds sessions whose tapes are full.
pub(crate) fn ingest(dir: &Path) -> Outcome<Ingested> {
    let stage = Stage::set(dir, SESSIONS)?;
    stage.tape(LINES)?;
    let keepers = Keepers::open(stage.session_dirs())?.in_background();
    let runtime = runtime()?;
    let ingested = runtime.block_on(take_all(&stage.home));
    drop(runtime);
    drop(keepers);
    ingested
}

async fn take_all(home: &Home) -> Outcome<Ingested> {
    let engine = Engine::start(engine_options(home), Clock::system(), Program::current()?).await?;
    let filter = EventFilter { kinds: vec![Kind::AgentCompletion], ..EventFilter::default() };
    let mut watch = engine.watch(filter, None);
    let own = std::process::id();
    let (before, began) = (procfs::threads(own), Instant::now());
    let adopting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.adopt().await }
    });
    let events = SESSIONS * LINES;
    let mut seen = 0;
    while seen < events {
        seen += watch.next().await?.len() as u64;
    }
    let span = began.elapsed();
    let threads = procfs::since(&before, &procfs::threads(own));
    adopting.await??;
    drop(watch);
    engine
        .leave(false, Change { by: By::ostler(), pid: None, request: None, keys: CallerKeys::default() })
        .await;
    let written = threads.get("ostler-write").map_or(0.0, |used| used.written as f64 / events as f64);
    Ok(Ingested { per_second: events as f64 / span.as_secs_f64(), written, span, threads })
}

/// Commits that lie ready in memory: what the writer can take at most.
fn store_alone(dir: &Path) -> Outcome<f64> {
    let stage = Stage::set(dir, SESSIONS)?;
    let store = Store::open(&Paths::below(stage.home.state()), &Options { search: false })?.store;
    let mut states: Vec<State> = Vec::new();
    for id in &stage.sessions {
        states.push(
            ostler_store::block_on(store.load_session(*id))?.ok_or("a staged session is recorded")?.state,
        );
    }
    let mut commits = Vec::new();
    for _ in 0..LINES / BATCH {
        for state in &mut states {
            let events = (0..BATCH).map(|n| Event::AgentCompletion(Text::from(line_text(n))));
            commits.push(commit(state, events, Urgency::Tape));
        }
    }
    let runtime = runtime()?;
    let span = runtime.block_on(async {
        let began = Instant::now();
        let mut answers = Vec::new();
        for commit in commits {
            answers.push(store.submit(commit).await);
        }
        for answer in answers {
            answer.await??;
        }
        Outcome::Ok(began.elapsed())
    })?;
    Ok((SESSIONS * LINES) as f64 / span.as_secs_f64())
}
