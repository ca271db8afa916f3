//! `ostler daemon run`: the daemon's process.
//!
//! Order: lock, record, socket, `daemon.json`, then adoption while it already answers.

mod config;
mod files;
mod http;
mod log;
mod systemd;

use std::{env, path::PathBuf, process::ExitCode, time::Duration};

use ostler_domain::{
    Now, Reason, Refusal,
    config::Config,
    event::By,
    history::{Source, Store},
    home::Home,
    provider::CallerKeys,
};
use ostler_engine::{
    Change, Clock, DirLock, Engine, ExportSettings, Fetcher, NoticeSettings, Options, Post, Poster, Program,
    ProviderSettings, VERSION,
};
use ostler_server::{ControlSocket, Indoors, Served, Stop};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Exit code of a daemon that could not start.
const FAILED: u8 = 1;
/// Exit code of a second daemon: somebody else does the work.
const ALREADY_RUNNING: u8 = 4;

/// How long open calls may take to be answered when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// How often the daemon looks whether it can still be reached.
const LOOK_FOR_SOCKET: Duration = Duration::from_secs(1);

/// Where the daemon's words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Foreground,
    Background,
}

pub(crate) fn main(place: Place) -> ExitCode {
    match run(place) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            let running = refusal.reason == ostler_domain::Reason::DaemonRunning;
            let exit = if running { ALREADY_RUNNING } else { FAILED };
            log::last_words(place, &refusal, exit);
            ExitCode::from(exit)
        }
    }
}

fn run(place: Place) -> Result<(), Refusal> {
    let home =
        Home::resolve(|name| env::var(name).ok()).map_err(|error| Refusal::invalid(error.to_string()))?;
    files::make_private(home.state())?;
    if place == Place::Background {
        // A terminal that closes must not take the daemon along.
        let _ = rustix::process::setsid();
        let _ = env::set_current_dir("/");
    }
    let lock = DirLock::take(home.state(), VERSION)?;
    let config = config::read(&home.config_toml())?;
    log::start(place, &home, config.log())?;
    for unknown in config.unknown_providers() {
        tracing::warn!(why = unknown.words(), "config.toml has settings that count for nobody");
    }
    raise_descriptor_limit();
    let program = Program::current()
        .map_err(|error| Refusal::internal(format!("this program cannot be opened: {error}")))?;
    // Two threads: the work is waiting, and the writer and the readers have threads of their own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // As much as a program's first thread has: what is asked goes deep, and what is not used costs nothing.
        .thread_stack_size(8 * 1024 * 1024)
        .enable_all()
        .build()
        .map_err(|error| Refusal::internal(format!("the runtime cannot be started: {error}")))?;
    let ended = runtime.block_on(serve(place, home, config, program));
    // The record is closed before the lock is let go of.
    drop(runtime);
    drop(lock);
    ended
}

async fn serve(place: Place, home: Home, config: Config, program: Program) -> Result<(), Refusal> {
    let clock = Clock::system();
    let Now { wall: started, boot, .. } = clock.now();
    let on_disk = program.on_disk().to_owned();
    let watches_stores = config.watches_stores();
    let poster = Poster::new(|post: &Post| {
        let headers: Vec<(&str, String)> =
            post.headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        ostler_gateway::post(&post.url, &headers, &post.body, post.within)
    });
    let links = http::Links::default();
    let options = Options {
        state_dir: home.state().to_owned(),
        daemon_json: home.daemon_json(),
        halt_json: home.halt_json(),
        own_dirs: vec![home.state().to_owned(), home.config().to_owned(), home.run().to_owned()],
        home_dir: env::var_os("HOME").map(Into::into),
        watchdogs: config.watchdogs(),
        resumes_after_limit: config.resumes_after_limit(),
        approval_limit: config.approval_limit(),
        notices: NoticeSettings {
            channels: http::channels(&home),
            post: Some(poster.clone()),
            link: Some(links.linker()),
            looked_at: Some(home.looked_at()),
        },
        export: config.export().map(|export| ExportSettings { export, post: poster }),
        orphan_grace: config.orphan_grace(),
        tape_bytes: config.tape_bytes(),
        unconfined: config.unconfined(),
        network_presets: config.network_presets(),
        providers: {
            let path = home.config_toml();
            ProviderSettings::new(move || config::read(&path))
        },
        idle_stop: config.idle_stop(),
        on_reboot: config.on_reboot(),
        fetch: Some(Fetcher::new(ostler_gateway::get)),
        prices_json: home.config().join("prices.json"),
    };
    let engine = Engine::start(options, clock, program).await?;
    let held = systemd::listener()?;
    let is_service = held.is_some();
    let path = held.as_ref().and_then(systemd::path_of).unwrap_or_else(|| home.control_socket());
    let socket = match held {
        Some(listener) => ControlSocket::inherited(listener, &path),
        None => ControlSocket::bind(&path),
    };
    let socket = socket.map_err(|error| Refusal::internal(chain(&error)))?;
    let (stop, stopped) = watch::channel(None);
    let announced = files::Announced { program: on_disk.clone(), socket: path, is_service, boot };
    match files::announce(&home, &announced) {
        // The last daemon's file names the same socket; `stay_reachable` writes this one's as soon as there is room.
        Err(refusal) if refusal.reason == Reason::DiskFull => tracing::error!(%refusal, "not announced yet"),
        announced => announced?,
    }
    let (indoors, arrivals) = Indoors::new();
    let http = http::Http::new(&home, on_disk, &engine, indoors);
    links.are_made_by(&http);
    let served = Served {
        engine: engine.clone(),
        started,
        state_dir: home.state().to_owned(),
        stop: stop.clone(),
        http: http.clone(),
    };
    tokio::spawn(ostler_server::serve_indoors(served.clone(), arrivals, asked(stopped.clone())));
    // Answers at once; what lives is found meanwhile, and shown as detached until it is.
    let door = tokio::spawn(ostler_server::serve(served.clone(), socket, asked(stopped.clone())));
    let state_dir = files::Identity::of(home.state())?;
    tokio::spawn(stay_reachable(served, home.clone(), state_dir, announced, stopped.clone()));
    tokio::spawn(signals(stop));
    let manager = systemd::Manager::new();
    tokio::spawn(manager.clone().give_signs_of_life(engine.clone()));
    tokio::spawn(adopt(engine.clone(), watches_stores.then(usual_stores).unwrap_or_default()));
    if let Err(refusal) = engine.begin_export().await {
        tracing::error!(%refusal, "no collector is told of what sessions do");
    }
    if let Err(refusal) = engine.begin_transcripts().await {
        tracing::error!(%refusal, "no transcripts are written");
    }
    if let Err(refusal) = engine.begin_mirrors().await {
        tracing::error!(%refusal, "no mirror is kept");
    }
    if let Err(refusal) = engine.begin_retention().await {
        tracing::error!(%refusal, "no rule of retention is followed");
    }
    match http.door().await {
        Ok(door) => door.begin_uplink(http::hub(&home)),
        Err(refusal) => tracing::error!(%refusal, "the HTTP door stays closed"),
    }
    // Behind the door: what is told has links to it.
    if let Err(refusal) = engine.begin_notices().await {
        tracing::error!(%refusal, "nobody is told of what happens");
    }
    tracing::info!(pid = std::process::id(), version = VERSION, "ready");
    manager.say_ready();
    log::let_go_of_starter(place);
    asked(stopped.clone()).await;
    let wish = stopped.borrow().clone().unwrap_or(Stop { by: By::ostler(), stop_sessions: false });
    manager.say_ending();
    tracing::info!(by = wish.by.0, wish.stop_sessions, "asked to stop");
    engine
        .leave(
            wish.stop_sessions,
            Change { by: wish.by, pid: None, request: None, keys: CallerKeys::default() },
        )
        .await;
    // Calls that are being answered get their answer; watchers would stay for ever.
    let _ = tokio::time::timeout(LAST_ANSWERS, door).await;
    Ok(())
}

/// Resolves when somebody wants the daemon to end.
async fn asked(mut stopped: watch::Receiver<Option<Stop>>) {
    let _ = stopped.wait_for(Option::is_some).await;
}

/// Somebody, or something that tidies up, may remove the socket or `daemon.json`: without them nobody could reach a
/// daemon that lives and holds the lock. They are made anew. A state directory that was removed, or put aside for
/// another, takes its daemon along: nothing it could still record would ever be found again, and the keepers end for
/// the same reason.
async fn stay_reachable(
    served: Served,
    home: Home,
    state_dir: files::Identity,
    announced: files::Announced,
    stopped: watch::Receiver<Option<Stop>>,
) {
    let path = &announced.socket;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_FOR_SOCKET) => {}
            () = asked(stopped.clone()) => return,
        }
        if !state_dir.is_there() {
            tracing::error!("the state directory is gone; the daemon ends");
            let by = By("the end of its home".to_owned());
            served.stop.send_replace(Some(Stop { by, stop_sessions: false }));
            return;
        }
        if !path.exists() {
            match ControlSocket::bind(path) {
                Ok(socket) => {
                    tracing::warn!("the control socket was gone; listening on a new one");
                    tokio::spawn(ostler_server::serve(served.clone(), socket, asked(stopped.clone())));
                }
                Err(error) => tracing::warn!(
                    error = chain(&error),
                    "the control socket is gone and cannot be made anew"
                ),
            }
        }
        if !files::is_announced(&home)
            && let Err(refusal) = files::announce(&home, &announced)
        {
            tracing::warn!(%refusal, "daemon.json is not this daemon's and cannot be written");
        }
    }
}

/// The stores of agent programs that whoever runs the daemon has.
fn usual_stores() -> Vec<Store> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME").filter(|home| home.is_absolute());
    let usual = |source: &Source| Some((*source, source.usual_dir(variable, home.as_deref())?));
    let found = Source::ALL.iter().filter_map(usual);
    found.map(|(source, dir)| Store { source, dir: dir.to_string_lossy().into_owned() }).collect()
}

async fn adopt(engine: Engine, stores: Vec<Store>) {
    match engine.adopt().await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "sessions found again"),
        Err(refusal) => tracing::error!(%refusal, "sessions cannot be looked for"),
    }
    // Behind that: what a daemon before us followed has been ended.
    if !stores.is_empty() {
        engine.follow_stores(stores);
    }
}

/// SIGTERM and SIGINT end the daemon and leave the agents alone.
async fn signals(stop: watch::Sender<Option<Stop>>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    stop.send_replace(Some(Stop { by: By(name.to_owned()), stop_sessions: false }));
}

/// Each session takes a descriptor or two, and the usual soft limit of 1024 would end at some hundred of them.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the descriptor limit cannot be raised");
    }
}

/// An error with everything behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
