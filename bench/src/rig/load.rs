//! A daemon under a steady load, looked at from all sides.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ostler_client::{Client, CreateSession, Watched, query::EventFilter};
use ostler_domain::Kind;
use ostler_testkit::TestHome;
use tokio::time::sleep;

use super::{daemon::Daemon, feed::Feeder, line_text, procfs, stage::Stage, wall_us};
use crate::{Outcome, report::percentile};

/// How long a load runs before anything is measured, and how long each thing is.
const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(10);
/// How long a load may take to come about.
const PATIENCE: Duration = Duration::from_secs(300);
/// Questions of somebody else, in a second.
const QUESTIONS: u64 = 100;

/// What a load did to its daemon.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) events_per_second: f64,
    /// Percent of one core.
    pub(crate) cpu: f64,
    /// The same with somebody watching everything.
    pub(crate) cpu_watched: f64,
    /// Percent of one core by kind of thread.
    pub(crate) cpu_of_threads: BTreeMap<String, f64>,
    /// Bytes that the writer wrote for an event, and the search index.
    pub(crate) written: f64,
    pub(crate) written_by_search: f64,
    /// From the tape to a watcher, in milliseconds.
    pub(crate) seen_p50: f64,
    pub(crate) seen_p99: f64,
    /// Somebody else's question, in milliseconds: without the load, and with it.
    pub(crate) idle_p50: f64,
    pub(crate) idle_p99: f64,
    pub(crate) busy_p50: f64,
    pub(crate) busy_p99: f64,
}

/// What the questions took.
struct Asked {
    p50: f64,
    p99: f64,
}

impl Load {
    /// Keepers that are not there: only the daemon and what feeds it are on the machine.
    pub(crate) async fn of_feeder(
        ostler: &Path,
        dir: &Path,
        sessions: u64,
        per_second: f64,
    ) -> Outcome<Self> {
        let stage = Stage::set(dir, sessions)?;
        let mut feeder = Feeder::spawn(&stage.home, per_second)?;
        let (daemon, client) =
            Daemon::answering(
                ostler,
                &stage.home,
                |client| async move { client.status().await.map(|_| client) },
            )
            .await?;
        attached(&client, sessions).await?;
        let who = stage.sessions.first().ok_or("a load has sessions")?.to_string();
        let idle = questions(&client, &who).await?;
        feeder.begin()?;
        let load = Self::measure(&client, daemon.pid(), &who, idle).await;
        // The daemon first: keepers that vanish would be lost sessions.
        daemon.kill()?;
        load
    }

    /// Real keepers and real agents.
    pub(crate) async fn of_agents(ostler: &Path, sessions: u64, per_second: f64) -> Outcome<Self> {
        let home = TestHome::started(ostler).await;
        let client = home.client().await;
        let idle_one = create(&client, "{\"steps\":[{\"say\":\"here\"}]}").await?;
        sleep(Duration::from_millis(500)).await;
        let idle = questions(&client, &idle_one).await?;
        let every_ms = (1_000.0 / per_second).round();
        let scenario = format!(
            "{{\"steps\":[{{\"repeat\":1000000,\"every_ms\":{every_ms},\"steps\":[{{\"say\":\"{}\"}}]}}]}}",
            line_text(0)
        );
        for _ in 0..sessions {
            create(&client, &scenario).await?;
        }
        attached(&client, sessions + 1).await?;
        let daemon = home.daemon().ok_or("the daemon is gone")?;
        Self::measure(&client, daemon.pid, &idle_one, idle).await
    }

    async fn measure(client: &Client, pid: u32, who: &str, idle: Asked) -> Outcome<Self> {
        sleep(WARM_UP).await;
        let (seq, began, used, cpu) =
            (client.status().await?.last_seq, Instant::now(), procfs::threads(pid), procfs::cpu(pid));
        sleep(WINDOW).await;
        let (spent, span) = (procfs::cpu(pid) - cpu, began.elapsed());
        let used = procfs::since(&used, &procfs::threads(pid));
        let events = (client.status().await?.last_seq - seq) as f64;
        let share = |spent: Duration| 100.0 * spent.as_secs_f64() / span.as_secs_f64();
        let written = |name: &str| used.get(name).map_or(0.0, |used| used.written as f64 / events);

        let watcher = Watcher::start(client).await?;
        sleep(Duration::from_secs(1)).await;
        watcher.forget();
        let (watched_from, cpu) = (Instant::now(), procfs::cpu(pid));
        sleep(WINDOW).await;
        let watched = 100.0 * (procfs::cpu(pid) - cpu).as_secs_f64() / watched_from.elapsed().as_secs_f64();
        let mut seen = watcher.stop();
        let busy = questions(client, who).await?;
        Ok(Self {
            events_per_second: events / span.as_secs_f64(),
            cpu: share(spent),
            cpu_watched: watched,
            cpu_of_threads: used.iter().map(|(name, used)| (name.clone(), share(used.cpu))).collect(),
            written: written("ostler-write"),
            written_by_search: written("ostler-search"),
            seen_p50: percentile(&mut seen, 50.0),
            seen_p99: percentile(&mut seen, 99.0),
            idle_p50: idle.p50,
            idle_p99: idle.p99,
            busy_p50: busy.p50,
            busy_p99: busy.p99,
        })
    }
}

async fn create(client: &Client, scenario: &str) -> Outcome<String> {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario.to_owned());
    Ok(client.create_session(wanted).await?.id.to_string())
}

/// Waits until all sessions have their keepers.
pub(crate) async fn attached(client: &Client, sessions: u64) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = client.status().await?;
        if status.live_sessions == sessions && status.detached_sessions == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{} sessions live and {} of them detached",
                status.live_sessions, status.detached_sessions
            )
            .into());
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Asks for one session's row again and again, as somebody who only looks would.
async fn questions(client: &Client, who: &str) -> Outcome<Asked> {
    let mut took = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / QUESTIONS));
    let began = Instant::now();
    while began.elapsed() < WINDOW / 2 {
        tick.tick().await;
        let asked = Instant::now();
        client.session(who).await?;
        took.push(asked.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(Asked { p50: percentile(&mut took, 50.0), p99: percentile(&mut took, 99.0) })
}

/// Somebody who watches all completions and notes how old they are when they arrive.
struct Watcher {
    ages: Arc<Mutex<Vec<f64>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watcher {
    async fn start(client: &Client) -> Outcome<Self> {
        let filter = EventFilter { kinds: vec![Kind::AgentCompletion], ..EventFilter::default() };
        let mut watch = client.watch(filter, None).await?;
        let ages: Arc<Mutex<Vec<f64>>> = Arc::default();
        let noted = Arc::clone(&ages);
        let task = tokio::spawn(async move {
            while let Some(Ok(watched)) = watch.next().await {
                if let Watched::Event(event) = watched {
                    let age = (wall_us() - event.time.micros()) as f64 / 1_000.0;
                    noted.lock().unwrap_or_else(PoisonError::into_inner).push(age);
                }
            }
        });
        Ok(Self { ages, task })
    }

    fn forget(&self) {
        self.ages.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn stop(self) -> Vec<f64> {
        self.task.abort();
        std::mem::take(&mut *self.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
