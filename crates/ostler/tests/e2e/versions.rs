//! Keepers live longer than daemons: one of another version is adopted, with words that we do not know.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use ostler_domain::session::{Attention, Outcome};
use ostler_tape::{
    Decoder, ExitFile, ExitRecord, How, KeeperLock, Record, Stream, ToKeeper, Writer, WrittenBy,
    record::Flags, socket,
};
use ostler_testkit::{TestHome, numbers, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

/// A keeper as a later version might be: it says more than we know, in the frames that we do.
struct LaterKeeper {
    dir: PathBuf,
    writer: Writer,
    stream: UnixStream,
    decoder: Decoder<ToKeeper>,
}

impl LaterKeeper {
    fn state(&self, phase: &str) -> Value {
        json!({
            "keeper_pid": std::process::id(), "tape_end": self.writer.end(), "last_input_no": self.writer.last_input_no(),
            "phase": phase, "agent": null, "frozen": null, "intake": "open", "mood": {"of": "the later keeper"},
        })
    }

    fn send(&mut self, header: &Value) {
        let header = serde_json::to_vec(header).unwrap();
        let mut frame = u32::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        frame.extend(0_u32.to_le_bytes());
        frame.extend(header);
        self.stream.write_all(&frame).unwrap();
    }

    fn send_state(&mut self, phase: &str) {
        let mut header = self.state(phase);
        header["verb"] = json!("state");
        self.send(&header);
    }

    fn say(&mut self, text: &str) {
        let line = json!({"type": "say", "text": text}).to_string();
        let record = Record {
            stream: Stream::Out,
            flags: Flags::NONE,
            time_us: 1_760_000_000_000_000,
            payload: line.as_bytes(),
        };
        self.writer.append(&[record]).unwrap();
    }

    fn hear(&mut self) -> ToKeeper {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return frame.verb;
            }
            let read = self.stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the daemon closed the connection");
            self.decoder.push(&buffer[..read]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keeper_of_a_later_version_is_adopted() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 3, 1)])).await.id;
    home.reaches(&id.to_string(), "idleness", |view| {
        view.attention == Some(Attention::Idle) && view.turns == 1
    })
    .await;
    let keeper = home.keeper(id).unwrap();
    client.stop_daemon(false).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    keeper.kill_and_wait();

    // We are the keeper now: we hold its lock, its tape and its socket.
    let dir = home.home.session_dir(&id);
    let lock = wait::answer("the keeper's lock", wait::PATIENCE, || KeeperLock::try_take(&dir).unwrap());
    let writer = Writer::open(&dir, 1 << 20).unwrap();
    let listener = socket::listen(&dir, socket::CTL_SOCKET).unwrap();
    let playing = tokio::task::spawn_blocking(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut keeper = LaterKeeper { dir, writer, stream, decoder: Decoder::new() };
        let ToKeeper::Hello { epoch, .. } = keeper.hear() else { panic!("no hello") };
        let hello = json!({"verb": "hello", "protocol": 7, "keeper_version": "9.9.9", "epoch": epoch, "accepted": true,
                           "state": keeper.state("running"), "greeting": "from the future"});
        keeper.send(&hello);
        keeper.send(&json!({"verb": "levitate", "height": 3}));
        for n in 4..=6 {
            keeper.say(&format!("tick {n}"));
        }
        keeper.send_state("running");
        loop {
            match keeper.hear() {
                ToKeeper::Stop { .. } => break,
                _ => continue,
            }
        }
        let record = ExitRecord {
            how: How::Exited { code: 0 },
            asked: None,
            rung: None,
            oom: false,
            memory: None,
            leftovers: vec![],
            untaped_bytes: 0,
            tape_end: keeper.writer.end(),
            last_input_no: keeper.writer.last_input_no(),
            time_us: 1_760_000_000_000_000,
            written_by: WrittenBy::Keeper,
        };
        ExitFile::prepare(&keeper.dir).unwrap().write(&record).unwrap();
        keeper.send_state("exited");
        drop(lock);
    });

    let client = home.start().await;
    home.reaches(&id.to_string(), "the later keeper's words", |view| {
        view.last_completion.as_deref() == Some("tick 6")
    })
    .await;
    client.stop_session(&id.to_string(), false).await.unwrap();
    assert_eq!(home.ended(&id.to_string()).await.outcome, Some(Outcome::Stopped));
    playing.await.unwrap();
    let events = home.events(&client, id).await;
    numbers::assert_complete(&numbers::counted(&events, "tick"), 6, "the session of two keepers");
}

/// The program, as the next version of it would be.
fn upgraded(to: &std::path::Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (rest, last) = version.rsplit_once('.').unwrap();
    let later = format!("{rest}.{}", (last.parse::<u8>().unwrap() + 1) % 10);
    assert_eq!(later.len(), version.len(), "the texts of a program cannot grow");
    let mut bytes = std::fs::read(OSTLER).unwrap();
    let places: Vec<usize> = bytes
        .windows(version.len())
        .enumerate()
        .filter(|(_, at)| *at == version.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + later.len()].copy_from_slice(later.as_bytes());
    }
    // In a file of its own that takes the other's place, as packages do it.
    let fresh = to.with_extension("new");
    std::fs::write(&fresh, bytes).unwrap();
    std::fs::set_permissions(&fresh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(&fresh, to).unwrap();
    later
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_the_program_ends_no_agent() {
    let place = TestHome::new(OSTLER);
    let installed = place.path().join("ostler");
    std::fs::copy(OSTLER, &installed).unwrap();
    let home = TestHome::started(&installed).await;
    let client = home.client().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 400, 10)])).await.id;
        home.reaches(&id.to_string(), "work", |view| view.last_completion.is_some()).await;
        ids.push(id);
    }
    let keepers: Vec<_> = ids.iter().map(|id| home.keeper(*id).unwrap()).collect();
    let before = home.daemon().unwrap();

    let later = upgraded(&installed);
    // Whoever uses the new program beside the old daemon is told, and served all the same.
    let listed = home.run(&["ls"]);
    let said = String::from_utf8(listed.stderr).unwrap();
    assert!(listed.status.success() && said.contains("ostler daemon restart"), "{said}");
    assert!(said.contains(&format!("this is {later}")), "{said}");
    let check = |code: i32| -> serde_json::Value {
        let checked = home.run(&["version", "--check", "-o", "json"]);
        assert_eq!(checked.status.code(), Some(code), "{checked:?}");
        serde_json::from_slice(&checked.stdout).unwrap()
    };
    let old = env!("CARGO_PKG_VERSION");
    let checked = check(4);
    assert_eq!((&checked["version"], &checked["daemon"]["version"]), (&later.clone().into(), &old.into()));
    assert_eq!(checked["next"][0]["command"], "ostler daemon restart", "{checked}");
    assert_eq!((&checked["daemon"]["is_replaced"], &checked["keepers"][old]), (&true.into(), &3.into()));
    let restarted = home.run(&["daemon", "restart"]);
    let said = String::from_utf8(restarted.stdout).unwrap();
    assert!(said.starts_with(&format!("{later} ready in ")), "{said}");
    wait::until("the keepers", wait::PATIENCE, || check(0)["keepers"][old] == 3);
    let shown = String::from_utf8(home.run(&["version", "--check"]).stdout).unwrap();
    assert!(shown.contains(&format!("{old}, 3 keepers as old as their sessions")), "{shown}");
    assert!(said.contains("3 of 3 sessions re-adopted"), "{said}");
    let file = home.daemon_file().unwrap();
    assert_eq!((file.version.as_str(), file.program.as_path()), (later.as_str(), installed.as_path()));
    assert!(!before.is_alive() && keepers.iter().all(|keeper| keeper.is_alive()));

    // A keeper whose daemon dies starts the program that is installed, not the one that it is itself.
    home.kill_daemon();
    wait::until("a daemon", wait::PATIENCE, || home.daemon().is_some());
    assert_eq!(home.daemon_file().unwrap().version, later);
    for id in ids {
        let is_idle = |view: &ostler_domain::session::View| view.attention == Some(Attention::Idle);
        home.reaches(&id.to_string(), "the turn to end", is_idle).await;
        let events = home.events(&home.client().await, id).await;
        numbers::assert_gapless(&events, "the session");
        numbers::assert_complete(&numbers::counted(&events, "tick"), 400, "the session");
    }
}
