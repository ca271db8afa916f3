//! What keepers of released versions wrote and said stays readable, byte for byte.
//!
//! `OSTLER_BLESS=1 cargo test -p ostler-tape` writes files that are missing; an existing one is never changed.

use std::path::{Path, PathBuf};

use ostler_domain::gateway::{Allowance, Spent};
use ostler_domain::price::Dollars;
use ostler_tape::frame::{
    AgentProcess, Decoder, FrozenBy, Intake, KeeperState, PROTOCOL, Phase, RefusedReason, Rung, RungAction,
    encode,
};
use ostler_tape::input::EncodedInput;
use ostler_tape::record::Flags;
use ostler_tape::{
    AskedStop, Assembler, ExitFile, ExitRecord, FromKeeper, How, KeeperNote, ProcessName, Reader, Record,
    Stream, ToKeeper, Writer, WrittenBy,
};

fn golden_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn golden(name: &str, today: &[u8]) -> Vec<u8> {
    let path = golden_dir().join(name);
    if !path.exists() && std::env::var_os("OSTLER_BLESS").is_some() {
        std::fs::write(&path, today).unwrap();
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn check_frame<Verb>(name: &str, verb: Verb, body: &[u8])
where
    Verb: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let today = encode(&verb, body).unwrap();
    let golden = golden(&format!("frame.{name}.bin"), &today);
    assert_eq!(today, golden, "{name}");
    let mut decoder = Decoder::new();
    decoder.push(&golden);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!((frame.verb, &frame.body[..]), (verb, body));
}

fn state() -> KeeperState {
    KeeperState {
        keeper_pid: 41,
        tape_end: 4096,
        last_input_no: 3,
        phase: Phase::Running,
        agent: Some(AgentProcess { pid: 43, start_time: 1234 }),
        frozen: Some(FrozenBy::Cgroup),
        intake: Intake::Throttled,
        gone: false,
        spent: None,
    }
}

#[test]
fn frames_to_a_keeper() {
    let hello = ToKeeper::Hello { protocol: PROTOCOL, epoch: 7, daemon_version: "0.1.0".into() };
    check_frame("daemon_hello", hello.clone(), b"");
    check_frame("daemon_hello_environment", hello, b"HOME=/home/ada\0SSL_CERT_FILE=/etc/ca.pem\0");
    check_frame("input", ToKeeper::Input { input_no: 4, tag: "turn:2".into() }, b"{\"say\":\"hi\"}\n");
    let ladder = [RungAction::CloseInput, RungAction::Signal(15), RungAction::Kill]
        .map(|action| Rung { action, wait_ms: 5_000 })
        .to_vec();
    check_frame("stop", ToKeeper::Stop { by: "ada".into(), rule: "session stop".into(), ladder }, b"");
    check_frame("freeze", ToKeeper::Freeze { on: true }, b"");
    check_frame("limits", ToKeeper::Limits { tape_bytes: Some(1 << 33), allowance: None }, b"");
    let allowance =
        Allowance { tokens: Some(1_000), dollars: Some(Dollars(2_500_000)), ..Allowance::default() };
    let numbered = Allowance { number: 5, ..allowance.clone() };
    check_frame("allowance", ToKeeper::Limits { tape_bytes: None, allowance: Some(allowance) }, b"");
    let numbered = ToKeeper::Limits { tape_bytes: None, allowance: Some(numbered) };
    check_frame("allowance_numbered", numbered, b"");
    check_frame("remask", ToKeeper::Remask { paths: vec![".env".into(), "config/prod.key".into()] }, b"");
    check_frame("answer", ToKeeper::Answer { call: 4711 }, b"{\"call\":4711,\"ok\":{}}");
    check_frame("bye", ToKeeper::Bye {}, b"");
}

#[test]
fn frames_from_a_keeper() {
    let hello = FromKeeper::Hello {
        protocol: PROTOCOL,
        keeper_version: "0.1.0".into(),
        epoch: 7,
        accepted: true,
        state: state(),
    };
    check_frame("keeper_hello", hello, b"");
    check_frame("state", FromKeeper::State(state()), b"");
    let spent = Spent { tokens: 1_200, dollars: Dollars(3_400), heeds: 5, ..Spent::default() };
    check_frame("state_spent", FromKeeper::State(KeeperState { spent: Some(spent), ..state() }), b"");
    let refused = FromKeeper::Refused {
        refused: "input".into(),
        input_no: Some(9),
        reason: RefusedReason::Gap,
        message: "input 9 came after input 3".into(),
        last_input_no: 3,
    };
    check_frame("refused", refused, b"");
}

#[test]
fn a_small_tape() {
    let note = KeeperNote::Started {
        attempt: 1,
        keeper_pid: 41,
        keeper_version: "0.1.0".into(),
        pid: 43,
        start_time: 1234,
        holds_calls: false,
    };
    let note = note.encode().unwrap();
    let input = EncodedInput::new(1, "turn:1", b"{\"say\":\"hello\"}\n", 10, 1_700_000_000_000_002);
    let mut records = vec![
        Record::line(Stream::Keeper, 1_700_000_000_000_000, &note),
        Record::line(Stream::Out, 1_700_000_000_000_001, b"{\"ready\":true}"),
    ];
    records.extend(input.records());
    records.extend([
        Record {
            stream: Stream::Out,
            flags: Flags::MORE,
            time_us: 1_700_000_000_000_003,
            payload: b"a long ",
        },
        Record::line(Stream::Err, 1_700_000_000_000_004, b"\xff\x00 not text"),
        Record {
            stream: Stream::Out,
            flags: Flags::CONTINUES,
            time_us: 1_700_000_000_000_005,
            payload: b"line",
        },
        Record {
            stream: Stream::Out,
            flags: Flags::PARTIAL,
            time_us: 1_700_000_000_000_006,
            payload: b"cut",
        },
    ]);

    let name = "tape.0000000000000000";
    let dir = tempfile::tempdir().unwrap();
    Writer::open(dir.path(), 1 << 20).unwrap().append(&records).unwrap();
    let golden = golden(name, &std::fs::read(dir.path().join(name)).unwrap());

    // The salt is random, so today's writer continues the golden segment behind its header.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), &golden[..28]).unwrap();
    Writer::open(dir.path(), 1 << 20).unwrap().append(&records).unwrap();
    assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), golden);

    let batch = Reader::open(&golden_dir()).unwrap().read_from(0, 1 << 20).unwrap();
    assert!(batch.records().map(|record| record.record).eq(records.iter().copied()));
    let mut lines = Vec::new();
    let mut assembler = Assembler::new(0);
    batch.records().for_each(|record| assembler.push(record, &mut lines));
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[2].body.bytes(), b"{\"say\":\"hello\"}\n");
}

#[test]
fn an_exit_record() {
    let record = ExitRecord {
        how: How::Exited { code: 3 },
        asked: Some(AskedStop { by: "ada".into(), rule: "session stop".into() }),
        rung: Some("signal 15".into()),
        oom: false,
        memory: None,
        leftovers: vec![ProcessName { pid: 44, name: "sleep".into() }],
        untaped_bytes: 0,
        tape_end: 4096,
        last_input_no: 3,
        time_us: 1_700_000_000_000_007,
        written_by: WrittenBy::Keeper,
    };
    let dir = tempfile::tempdir().unwrap();
    ExitFile::prepare(dir.path()).unwrap().write(&record).unwrap();
    let today = std::fs::read(dir.path().join("tape.exit")).unwrap();
    assert_eq!(today, golden("tape.exit", &today));
    assert_eq!(ExitRecord::read(&golden_dir()).unwrap(), Some(record));
}
