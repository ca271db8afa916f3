//! One who publishes and many who listen: the engine and its door in a process of their own, which notes when each event
//! was published, and subscribers as other programs have them, by the generated client.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ostler_client::query::EventFilter;
use ostler_domain::{Kind, Time, home::Home};
use ostler_engine::{Clock, Engine, Program};
use ostler_server::{ControlSocket, Served};
use ostler_wire::{
    REPLY_BYTES,
    pb::{WatchEventsRequest, event_service_client::EventServiceClient},
    to_proto,
};
use tokio::{task::JoinHandle, time::sleep};
use tonic::transport::Endpoint;

use super::{engine_options, wall_us};
use crate::{Outcome, report::print};

/// What is sent and not yet seen by all, at most.
const WINDOW: u64 = 8_000;
/// How often it is looked how far the slowest is.
const LOOK: Duration = Duration::from_micros(200);
/// No fan-out takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What one subscriber has seen.
#[derive(Default)]
pub(crate) struct Seen {
    count: AtomicU64,
    is_noting: AtomicBool,
    /// What each message says of itself, and when it came.
    noted: Mutex<Vec<(i64, i64)>>,
}

impl Seen {
    pub(crate) fn one(&self, said: i64) {
        if self.is_noting.load(Ordering::Relaxed) {
            self.noted().push((said, wall_us()));
        }
        self.count.fetch_add(1, Ordering::Release);
    }

    /// From now on, when messages come is noted.
    pub(crate) fn note(&self) {
        self.is_noting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn noted(&self) -> MutexGuard<'_, Vec<(i64, i64)>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deliveries in a second, while nobody is ever further behind than the window.
pub(crate) async fn throughput(
    all: &[Arc<Seen>],
    total: u64,
    chunk: u64,
    mut publish: impl AsyncFnMut(u64) -> Outcome<()>,
) -> Outcome<f64> {
    let slowest = || all.iter().map(|seen| seen.count.load(Ordering::Acquire)).min().unwrap_or(0);
    let (before, began) = (slowest(), Instant::now());
    let mut sent = 0;
    loop {
        let seen = slowest() - before;
        if seen >= total {
            return Ok((total * all.len() as u64) as f64 / began.elapsed().as_secs_f64());
        }
        while sent < total && sent < seen + WINDOW {
            publish(chunk).await?;
            sent += chunk;
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("the slowest subscriber has only {seen} of {total}").into());
        }
        sleep(LOOK).await;
    }
}

/// The process that serves, from outside.
pub(crate) struct Door {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Door {
    /// Serves a home whose sessions somebody keeps; answers when all of them are found.
    pub(crate) fn open(home: &Home) -> Outcome<Self> {
        let root = home.state().parent().ok_or("a home has a root")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["internal", "fan"]).arg(root).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("the door has an output")?);
        let mut word = String::new();
        stdout.read_line(&mut word)?;
        if word.trim() != "ready" {
            return Err("the door is not open".into());
        }
        Ok(Self { child, stdout })
    }

    /// Ends it, and says when each event was published.
    pub(crate) fn close(mut self) -> Outcome<HashMap<i64, i64>> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text)?;
        let line = |line: &str| {
            let (seq, at) = line.split_once(' ')?;
            Some((seq.parse().ok()?, at.parse().ok()?))
        };
        Ok(text.lines().filter_map(line).collect())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn completions() -> EventFilter {
    EventFilter { kinds: vec![Kind::AgentCompletion], ..EventFilter::default() }
}

/// `internal fan`.
pub(crate) fn serve(root: &Path) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let noted = runtime.block_on(async {
        let home = Home::at(root);
        let engine = Engine::start(engine_options(&home), Clock::system(), Program::current()?).await?;
        let noted: Arc<Mutex<Vec<(u64, i64)>>> = Arc::default();
        let mut watch = engine.watch(completions(), None);
        let notes = Arc::clone(&noted);
        tokio::spawn(async move {
            while let Ok(events) = watch.next().await {
                let now = wall_us();
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                notes.extend(events.iter().map(|event| (event.seq, now)));
            }
        });
        let socket = ControlSocket::bind(&home.control_socket())?;
        let (stop, _stopped) = tokio::sync::watch::channel(None);
        let started = Time::from_micros(wall_us());
        let (state_dir, http) = (home.state().to_owned(), std::sync::Arc::new(ostler_server::NoDoor));
        let served = Served { engine: engine.clone(), started, state_dir, stop, http };
        tokio::spawn(ostler_server::serve(served, socket, std::future::pending()));
        engine.adopt().await?;
        print("ready");
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        let noted = std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner));
        Outcome::Ok(noted)
    })?;
    let mut out = io::stdout().lock();
    for (seq, at) in noted {
        writeln!(out, "{seq} {at}")?;
    }
    Ok(())
}

/// Somebody who takes every completion of a home's daemon, on a connection of their own.
pub(crate) async fn subscriber(home: &Home, seen: Arc<Seen>) -> Outcome<JoinHandle<()>> {
    let address = format!("unix://{}", home.control_socket().display());
    let channel = Endpoint::from_shared(address)?.connect().await?;
    let mut service = EventServiceClient::new(channel).max_decoding_message_size(REPLY_BYTES);
    let request = WatchEventsRequest { filter: Some(to_proto::event_filter(&completions())), after: None };
    let mut messages = service.watch_events(request).await?.into_inner();
    // The first one says where it begins.
    messages.message().await?;
    Ok(tokio::spawn(async move {
        while let Ok(Some(batch)) = messages.message().await {
            for event in batch.read().unwrap_or_default() {
                seen.one(i64::try_from(event.seq).unwrap_or(0));
            }
        }
    }))
}
