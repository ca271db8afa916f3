//! What benchmarks are built from: homes with live sessions, keepers that are not there, daemons, the raw limit.

pub(crate) mod browser;
pub(crate) mod daemon;
pub(crate) mod fan;
pub(crate) mod feed;
pub(crate) mod load;
pub(crate) mod peers;
pub(crate) mod procfs;
pub(crate) mod raw;
pub(crate) mod stage;
pub(crate) mod timed;
pub(crate) mod wal;

use std::time::{SystemTime, UNIX_EPOCH};

use ostler_domain::{
    Event, Time,
    home::Home,
    session::{State, WatchdogLimits},
};
use ostler_store::{Commit, SessionCommit, TapeMark, Urgency};

/// The text of an event whose stored body has about 300 bytes.
pub(crate) fn line_text(n: u64) -> String {
    format!(
        "{n:012} {}",
        "The flaky login test waits for a port that another one holds. "
            .repeat(5)
            .get(..272)
            .unwrap_or_default()
    )
}

/// What a scripted agent prints to say it.
pub(crate) fn line(n: u64) -> String {
    format!("{{\"type\":\"say\",\"text\":\"{}\"}}", line_text(n))
}

/// The wall clock in microseconds.
pub(crate) fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A commit of these events of one session, as its actor would make it.
pub(crate) fn commit(state: &mut State, events: impl IntoIterator<Item = Event>, urgency: Urgency) -> Commit {
    let expected_seq = state.session_seq();
    let at = Time::from_micros(wall_us());
    let mut applied = Vec::new();
    for event in events {
        state.apply(at, &event);
        applied.push((at, event));
    }
    let view = state.view();
    let mark = TapeMark {
        offset: state.session_seq(),
        assembler: String::new(),
        dialogue: Vec::new(),
        dialogue_version: 1,
    };
    let session = SessionCommit {
        id: view.id,
        expected_seq,
        events: applied,
        recorded: None,
        view: view.into(),
        tape: Some(mark),
        outbox: Vec::new(),
        outbox_done: None,
        snapshot: None,
    };
    Commit { urgency, node_events: Vec::new(), session: Some(session), request: None }
}

/// An engine as a daemon has it, on a home that nobody else uses.
pub(crate) fn engine_options(home: &Home) -> ostler_engine::Options {
    ostler_engine::Options {
        network_presets: Default::default(),
        state_dir: home.state().to_owned(),
        daemon_json: home.daemon_json(),
        halt_json: home.halt_json(),
        own_dirs: Vec::new(),
        home_dir: None,
        watchdogs: WatchdogLimits::default(),
        resumes_after_limit: true,
        approval_limit: ostler_domain::limits::APPROVAL_WAITS,
        notices: Default::default(),
        export: None,
        orphan_grace: None,
        tape_bytes: None,
        unconfined: true,
        on_reboot: Default::default(),
        idle_stop: ostler_domain::policy::IdleStop::Never,
        prices_json: home.config().join("prices.json"),
        fetch: None,
        providers: ostler_engine::ProviderSettings::new(|| Ok(Default::default())),
    }
}
