//! The session socket: calls are taped, who called is told so, and a daemon's answers find their way back.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ostler_domain::Reason;
use ostler_domain::call::{CallLine, Reply};
use ostler_domain::limits::{CALL_BYTES, CALL_CONNECTIONS, CALL_TOKEN_TIME, CALLS_BURST};
use ostler_tape::frame::Phase;
use ostler_tape::{KeeperNote, Stream, ToKeeper, socket};

use crate::support::{Session, eventually};

const TOKEN: &str = "4ae03b9b4ae03b9b4ae03b9b4ae03b9b";

struct Caller {
    reader: BufReader<UnixStream>,
}

impl Caller {
    fn silent(session: &Session) -> Caller {
        let path = session.dir().join(socket::SESSION_SOCKET);
        let stream = eventually("the session socket", || UnixStream::connect(&path).ok());
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Caller { reader: BufReader::new(stream) }
    }

    fn new(session: &Session) -> Caller {
        let mut caller = Caller::silent(session);
        caller.say(TOKEN);
        caller
    }

    fn say(&mut self, line: &str) {
        // Who was refused may find the door closed while he speaks.
        let _ = self.reader.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    fn line(&mut self) -> Option<CallLine> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(serde_json::from_str(&line).unwrap())
    }

    fn reply(&mut self) -> Reply {
        self.line().expect("an answer").reply
    }
}

fn session(script: &str) -> Session {
    Session::new(script).with(|document| {
        document.token = Some(TOKEN.to_owned());
        document.secrets.push(TOKEN.to_owned());
    })
}

const WAIT: &str = "echo ready; read line";

#[test]
fn calls_are_on_the_tape_when_they_are_answered_and_the_token_never_is() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let found = std::fs::metadata(session.dir().join(socket::SESSION_SOCKET)).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(found.uid(), rustix::process::geteuid().as_raw());
    let mut caller = Caller::new(&session);
    for call in [r#"{"call":"note","text":"one"}"#, "not json at all", &format!("leaked {TOKEN}")] {
        caller.say(call);
        assert_eq!(caller.reply(), Reply::Taped { daemon: false });
    }
    let stars = "*".repeat(TOKEN.len());
    let taped = session.text(Stream::Call);
    assert_eq!(taped, [r#"{"call":"note","text":"one"}"#, "not json at all", &format!("leaked {stars}")]);
    let whole = session.lines();
    assert!(whole.iter().all(|line| !String::from_utf8_lossy(line.body.bytes()).contains(TOKEN)));
}

#[test]
fn a_daemon_s_answer_goes_to_who_called() {
    let session = session(WAIT).start();
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    let (mut one, mut two) = (Caller::new(&session), Caller::new(&session));
    one.say("first");
    let first = one.line().unwrap();
    two.say("second");
    let second = two.line().unwrap();
    assert_eq!(first.reply, Reply::Taped { daemon: true });
    let places: Vec<u64> =
        session.lines().iter().filter(|line| line.stream == Stream::Call).map(|line| line.start).collect();
    assert_eq!(places, [first.call, second.call], "a call is known by its place on the tape");
    let answer = |call| serde_json::to_vec(&CallLine { call, reply: Reply::Ok {} }).unwrap();
    daemon.send_with(&ToKeeper::Answer { call: 1 << 40 }, b"nobody asked this");
    daemon.send_with(&ToKeeper::Answer { call: second.call }, &answer(second.call));
    daemon.send_with(&ToKeeper::Answer { call: first.call }, &answer(first.call));
    assert_eq!(one.line().unwrap(), CallLine { call: first.call, reply: Reply::Ok {} });
    assert_eq!(two.line().unwrap(), CallLine { call: second.call, reply: Reply::Ok {} });
}

#[test]
fn without_the_token_nobody_is_heard() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let almost = format!("{}c", &TOKEN[..TOKEN.len() - 1]);
    for wrong in ["", "x", &almost, r#"{"call":"done"}"#] {
        let mut caller = Caller::silent(&session);
        caller.say(wrong);
        caller.say(r#"{"call":"done"}"#);
        let Reply::Refused(refusal) = caller.reply() else { panic!("{wrong} was taken") };
        assert_eq!(refusal.reason, Reason::PermissionDenied);
        assert_eq!(caller.line(), None, "and the door is closed");
    }
    assert_eq!(session.text(Stream::Call), [""; 0]);
    let refused = |note: &KeeperNote| matches!(note, KeeperNote::CallRefused { .. });
    assert_eq!(session.notes().iter().filter(|note| refused(note)).count(), 4);
}

#[test]
fn what_is_too_long_is_refused_before_it_is_held() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let mut caller = Caller::new(&session);
    caller.say(&"x".repeat(CALL_BYTES));
    assert_eq!(caller.reply(), Reply::Taped { daemon: false });
    caller.say(&"x".repeat(CALL_BYTES + 1));
    let Reply::Refused(refusal) = caller.reply() else { panic!("it was taken") };
    assert_eq!(refusal.reason, Reason::TooLarge);
    assert_eq!(session.text(Stream::Call).len(), 1);
}

#[test]
fn who_calls_too_often_waits_and_loses_nothing() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let mut caller = Caller::new(&session);
    let began = Instant::now();
    let calls = CALLS_BURST + 12;
    for n in 0..calls {
        caller.say(&n.to_string());
    }
    for _ in 0..calls {
        assert_eq!(caller.reply(), Reply::Taped { daemon: false });
    }
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
    let wanted: Vec<String> = (0..calls).map(|n| n.to_string()).collect();
    assert_eq!(session.text(Stream::Call), wanted);
}

#[test]
fn callers_beyond_the_limit_wait_to_be_heard() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let mut idle: Vec<Caller> = (0..CALL_CONNECTIONS).map(|_| Caller::silent(&session)).collect();
    let mut late = Caller::new(&session);
    late.say("late");
    drop(idle.pop());
    assert_eq!(late.reply(), Reply::Taped { daemon: false });
}

#[test]
fn the_door_is_gone_with_the_session() {
    let mut session = session("read line; exit 0").start();
    let mut caller = Caller::new(&session);
    caller.say("last words");
    assert!(matches!(caller.reply(), Reply::Taped { .. }));
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    daemon.input(1, b"go\n");
    daemon.wait_for_phase(Phase::Exited);
    assert_eq!(caller.line(), None);
    assert!(!session.dir().join(socket::SESSION_SOCKET).exists());
    drop(daemon);
    session.end();
    assert_eq!(session.text(Stream::Call), ["last words"]);
}

#[test]
fn without_a_token_there_is_no_door() {
    let session = Session::started(WAIT);
    session.wait_for_line("ready");
    assert!(!session.dir().join(socket::SESSION_SOCKET).exists());
}

#[test]
fn it_is_reached_from_inside_a_sandbox() {
    let script = "exec 3<>/dev/null; python3 -c 'import socket
s = socket.socket(socket.AF_UNIX)
s.connect(\"/run/ostler/session.sock\")
f = s.makefile(\"rw\")
f.write(\"TOKEN\\ninside\\n\"); f.flush()
print(f.readline(), end=\"\")'"
        .replace("TOKEN", TOKEN);
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return;
    }
    let mut session = Session::confined(&script).with(|document| {
        document.token = Some(TOKEN.to_owned());
        let socket = document.dir.canonicalize().unwrap().join(socket::SESSION_SOCKET);
        document.confinement.as_mut().unwrap().session_socket = Some(socket);
    });
    session = session.start();
    session.end();
    assert_eq!(session.text(Stream::Call), ["inside"], "{:?}", session.text(Stream::Err));
    let out = session.text(Stream::Out);
    assert!(out[0].contains(r#""taped":{"daemon":false}"#), "{out:?}");
}

/// Whoever holds all connections and says nothing keeps nobody else from calling for long.
#[test]
fn who_does_not_show_the_token_in_time_makes_room() {
    let session = session(WAIT).start();
    session.wait_for_line("ready");
    let began = Instant::now();
    let silent: Vec<Caller> = (0..CALL_CONNECTIONS).map(|_| Caller::silent(&session)).collect();
    let mut known = Caller::new(&session);
    known.say(r#"{"note":{"text":"hi"}}"#);
    assert!(matches!(known.reply(), Reply::Taped { .. }));
    assert!(began.elapsed() < CALL_TOKEN_TIME * 4, "{:?}", began.elapsed());
    drop(silent);
}
