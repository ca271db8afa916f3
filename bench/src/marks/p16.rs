//! P16: whoever looks by a browser: streams beside gRPC, pages of a long history, memory, and the first paint.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use ostler_client::query::{Page, SessionFilter};
use ostler_domain::{home::Home, limits::PAGE_DEFAULT};
use tokio::task::JoinHandle;

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::{
        browser::{HttpDoor, link},
        daemon::Daemon,
        fan::{self, Seen},
        feed::Feeder,
        procfs,
        stage::Stage,
        timed::timed_output,
    },
};

const VIEWERS: usize = 100;
/// Sessions whose events are watched.
const SESSIONS: u64 = 20;
const EVENTS: u64 = 20_000;
/// Events published at a time.
const CHUNK: u64 = 2_000;
/// Pages of each kind in a round.
const PAGES: usize = 200;
/// How long a daemon is left alone before its memory is looked at.
const REST: Duration = Duration::from_secs(2);
/// Names the directory with the scripts that drive a browser.
const SCRIPTS: &str = "OSTLER_BENCH_BROWSER";
const STREAM: &str = "/v1/events?kind=AGENT_COMPLETION";

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let (mut streams, mut watches) = (Vec::new(), Vec::new());
    let (mut by_stream, mut by_page, mut by_watch) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=bench.rounds {
        let (rate, grown) = runtime.block_on(fanned(bench, Viewer::Stream))?;
        streams.push(rate);
        by_stream.push(grown);
        let (rate, grown) = runtime.block_on(fanned(bench, Viewer::Watch))?;
        watches.push(rate);
        by_watch.push(grown);
        by_page.push(runtime.block_on(pages_open(bench))?);
        say(&format!(
            "  round {round}: {VIEWERS} streams {:.0}/s, {VIEWERS} watchers {:.0}/s",
            streams.last().unwrap_or(&0.0),
            watches.last().unwrap_or(&0.0)
        ));
    }
    let mut rows = vec![
        Row::new(
            format!("deliveries/s to {VIEWERS} browsers by SSE; raw is gRPC to as many watchers"),
            Sample::new(Unit::PerSecond, streams),
            Goal::Shown,
        )
        .beside(Sample::new(Unit::PerSecond, watches)),
        Row::new(
            "what the daemon grows by for each stream, after that; raw is each watcher",
            Sample::new(Unit::Megabytes, by_stream),
            Goal::Shown,
        )
        .beside(Sample::new(Unit::Megabytes, by_watch)),
        Row::new(
            format!("the same for each of {VIEWERS} open pages (Sessions, {SESSIONS} live ones)"),
            Sample::new(Unit::Megabytes, by_page),
            Goal::Shown,
        ),
    ];
    let mut notes = vec![
        "Streams and watchers are connections of the same other process, and the daemon is a whole one."
            .to_owned(),
    ];
    let home = bench.large_home()?;
    rows.extend(runtime.block_on(pages(bench, &home))?);
    match runtime.block_on(first_paint(bench, &home))? {
        Ok(row) => rows.push(row),
        Err(why) => notes.push(format!("The first paint was not measured: {why}.")),
    }
    Ok(Section { name: "P16", rows, notes })
}

#[derive(Clone, Copy)]
enum Viewer {
    Stream,
    Watch,
}

async fn answering(bench: &Bench, home: &Home) -> Outcome<Daemon> {
    let list = |client: ostler_client::Client| async move {
        client.sessions(&SessionFilter::default(), Page::of(PAGE_DEFAULT, None)).await
    };
    Ok(Daemon::answering(&bench.ostler, home, list).await?.0)
}

/// Deliveries in a second to all of them, and the megabytes that the daemon has grown by for each.
async fn fanned(bench: &Bench, viewer: Viewer) -> Outcome<(f64, f64)> {
    let stage = Stage::set(&bench.dir, SESSIONS)?;
    let mut feeder = Feeder::spawn(&stage.home, 1.0)?;
    let daemon = answering(bench, &stage.home).await?;
    let door = HttpDoor::open(&bench.ostler, &stage.home)?;
    let before = megabytes(daemon.pid());
    let all: Vec<Arc<Seen>> = (0..VIEWERS).map(|_| Arc::default()).collect();
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    for seen in &all {
        tasks.push(match viewer {
            Viewer::Stream => door.follow(STREAM, Arc::clone(seen)).await?,
            Viewer::Watch => fan::subscriber(&stage.home, Arc::clone(seen)).await?,
        });
    }
    let rate = fan::throughput(&all, EVENTS, CHUNK, async |chunk| feeder.say(chunk / SESSIONS)).await?;
    tokio::time::sleep(REST).await;
    let grown = (megabytes(daemon.pid()) - before).max(0.0) / VIEWERS as f64;
    tasks.iter().for_each(JoinHandle::abort);
    daemon.stop().await?;
    Ok((rate, grown))
}

/// What the daemon grows by for each browser that has the list of sessions open.
async fn pages_open(bench: &Bench) -> Outcome<f64> {
    let stage = Stage::set(&bench.dir, SESSIONS)?;
    let _feeder = Feeder::spawn(&stage.home, 1.0)?;
    let daemon = answering(bench, &stage.home).await?;
    let door = HttpDoor::open(&bench.ostler, &stage.home)?;
    door.page("/sessions").await?;
    let before = megabytes(daemon.pid());
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..VIEWERS {
        tasks.push(door.followed("/live?page=/sessions").await?);
    }
    tokio::time::sleep(REST).await;
    let grown = (megabytes(daemon.pid()) - before).max(0.0) / VIEWERS as f64;
    tasks.iter().for_each(JoinHandle::abort);
    daemon.stop().await?;
    Ok(grown)
}

/// Pages of a long history, each taken whole on a connection of its own.
async fn pages(bench: &Bench, home: &Home) -> Outcome<Vec<Row>> {
    let daemon = answering(bench, home).await?;
    let door = HttpDoor::open(&bench.ostler, home)?;
    let listed = daemon.client().await?.sessions(&SessionFilter::default(), Page::of(1, None)).await?;
    let session = listed.rows.first().ok_or("a history has sessions")?.id;
    let asked = [
        ("Needs you", "/".to_owned(), "/v1/sessions?limit=50".to_owned()),
        ("Sessions", "/sessions?all=true".to_owned(), "/v1/sessions?all=true&limit=50".to_owned()),
        ("a session", format!("/sessions/{session}"), format!("/v1/sessions/{session}")),
        ("Search", "/search?text=login".to_owned(), "/v1/search?text=login".to_owned()),
        ("Cost", "/cost".to_owned(), "/v1/cost?by=day&since=30d".to_owned()),
    ];
    let mut rows = Vec::new();
    for (name, page, json) in asked {
        let (mut ours, mut raw, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..bench.rounds {
            let (mut took, mut beside) = (Vec::new(), Vec::new());
            for _ in 0..PAGES {
                let (whole, size) = door.page(&page).await?;
                took.push(whole);
                bytes = size;
                beside.push(door.page(&json).await?.0);
            }
            ours.push(percentile(&mut took, 99.0));
            raw.push(percentile(&mut beside, 99.0));
        }
        let row = Row::new(
            format!(
                "page {name} ({} kB), {} sessions, p99; raw is the JSON of it",
                bytes / 1000,
                bench.large_sessions()
            ),
            Sample::new(Unit::Milliseconds, ours),
            Goal::Shown,
        )
        .beside(Sample::new(Unit::Milliseconds, raw));
        say(&format!("  {name}: {}", row.ours.write()));
        rows.push(row);
    }
    daemon.stop().await?;
    Ok(rows)
}

/// When a browser has painted the first page, beside a page of two words from the same door.
async fn first_paint(bench: &Bench, home: &Home) -> Outcome<Result<Row, String>> {
    let Some(scripts) = std::env::var_os(SCRIPTS) else {
        return Ok(Err("there is no browser that a script can drive".to_owned()));
    };
    let script = Path::new(&scripts).join("paint.mjs");
    let daemon = answering(bench, home).await?;
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let link = link(&bench.ostler, home)?;
        let mut command = Command::new("node");
        command.arg(&script).arg(&link);
        let said: serde_json::Value = match timed_output(&mut command) {
            Ok((_, said)) => serde_json::from_str(&said)?,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let number = |name: &str| said[name].as_f64().ok_or_else(|| format!("no {name} in {said}"));
        ours.push(number("page")?);
        raw.push(number("plain")?);
    }
    daemon.stop().await?;
    let what = format!(
        "first paint of Needs you in Chromium, {} sessions, medians of 10; raw is a page of two letters from the same door",
        bench.large_sessions()
    );
    let sample = |values| Sample::new(Unit::Milliseconds, values);
    Ok(Ok(Row::new(what, sample(ours), Goal::Shown).beside(sample(raw))))
}

fn megabytes(pid: u32) -> f64 {
    procfs::private_dirty(pid) as f64 / f64::from(1 << 20)
}
