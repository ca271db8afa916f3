//! What an agent prints, on the tape.

use ostler_tape::frame::Intake;
use ostler_tape::launch::IntakeLimits;
use ostler_tape::{KeeperNote, LineBody, Reader, Stream, ToKeeper};

use crate::support::{Session, eventually};

#[test]
fn lines_of_both_streams_are_taped_in_order() {
    let mut session = Session::started("echo one; echo two; echo oops >&2; printf unfinished");
    let exit = session.end();
    assert_eq!(session.text(Stream::Out), ["one", "two", "unfinished"]);
    assert_eq!(session.text(Stream::Err), ["oops"]);
    let last = session.lines().into_iter().rfind(|line| line.stream == Stream::Out).unwrap();
    assert_eq!(last.body, LineBody::Partial(b"unfinished".to_vec().into()));
    assert_eq!(exit.tape_end, session.lines().iter().map(|line| line.end).max().unwrap());
    // An agent that ends at once may have closed its input before its init was given the processor to say that it runs.
    let is_start = |note: &KeeperNote| matches!(note, KeeperNote::Started { attempt: 1, .. });
    assert!(session.notes().iter().any(is_start), "{:?}", session.notes());
    assert_eq!(session.lines()[0].start, 0);
}

#[test]
fn bytes_are_kept_as_they_are() {
    let mut session = Session::started(r"printf 'nul \000 and \377\376 stay\r\n'");
    session.end();
    let lines = session.lines();
    let line = lines.iter().find(|line| line.stream == Stream::Out).unwrap();
    assert_eq!(line.body.bytes(), b"nul \0 and \xff\xfe stay\r");
}

#[test]
fn a_long_line_is_taped_in_pieces_and_segments() {
    let mut session = Session::new("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after")
        .with(|document| {
            document.piece_bytes = 10_000;
            document.segment_bytes = 500_000;
        })
        .start();
    session.end();
    let lines: Vec<_> = session.lines().into_iter().filter(|line| line.stream == Stream::Out).collect();
    assert_eq!(lines[0].body.bytes().len(), 3_000_000);
    assert_eq!(lines[1].body.bytes(), b"after");
    let segments = ostler_tape::segment::list_segments(session.dir()).unwrap();
    assert!(segments.len() >= 6, "{segments:?}");
    let batch = Reader::open(session.dir()).unwrap().read_from(0, 1 << 20).unwrap();
    assert!(batch.records().all(|record| record.record.payload.len() <= 10_000));
}

#[test]
fn a_line_of_a_gib_is_taped_whole_and_takes_no_memory() {
    let mut session = Session::new("head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo after")
        .with(|document| {
            document.intake = IntakeLimits { burst_bytes: 4 << 30, bytes_per_second: 4 << 30 };
        })
        .start();
    let keeper = session.keeper_pid();
    let mut most = 0;
    eventually("the keeper ends", || {
        most = most.max(resident_kib(keeper).unwrap_or(0));
        session.has_ended().then_some(())
    });
    session.end();
    let lines: Vec<_> = session.lines().into_iter().filter(|line| line.stream == Stream::Out).collect();
    assert!(matches!(lines[0].body, LineBody::Oversize { len } if len == 1 << 30), "{:?}", lines[0].start);
    assert_eq!(lines[1].body.bytes(), b"after");
    assert!(most < 32 * 1024, "the keeper took {most} KiB");
}

fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn secrets_are_redacted_across_reads_and_pieces() {
    // Separate writes, so that the secret arrives in two reads at least.
    let script = "printf 'key sk-very-'; sleep 0.1; printf 'secret-value end'; sleep 0.1; echo; echo sk-very-secret-value >&2";
    let mut session = Session::new(script)
        .with(|document| {
            document.secrets = vec!["sk-very-secret-value".into()];
            document.piece_bytes = 8;
        })
        .start();
    session.end();
    assert_eq!(session.text(Stream::Out), ["key ******************** end"]);
    assert_eq!(session.text(Stream::Err), ["********************"]);
    for segment in ostler_tape::segment::list_segments(session.dir()).unwrap() {
        let bytes = std::fs::read(segment.path(session.dir())).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
    }
}

#[test]
fn a_flood_is_slowed_down_and_said_once() {
    let session = Session::new("while :; do echo 0123456789012345678901234567890123456789; done")
        .with(|document| document.intake = IntakeLimits { burst_bytes: 100_000, bytes_per_second: 50_000 })
        .start();
    let mut daemon = session.connect(1);
    daemon.wait_for_state(|state| state.intake == Intake::Throttled);
    let state = daemon.wait_for_state(|state| state.tape_end > 300_000);
    assert_eq!(state.intake, Intake::Throttled);
    let throttled = session.notes().into_iter().filter(|note| matches!(note, KeeperNote::Throttled { .. }));
    assert_eq!(throttled.count(), 1);
}

#[test]
fn the_tapes_limit_pauses_the_agent_until_it_is_raised() {
    let mut session = Session::new("head -c 200000 /dev/zero | tr '\\0' '\\n'; echo end")
        .with(|document| document.tape_bytes = 100_000)
        .start();
    let mut daemon = session.connect(1);
    let paused = daemon.wait_for_state(|state| state.intake == Intake::TapeLimit);
    assert!(paused.tape_end >= 100_000);
    assert!(session.notes().contains(&KeeperNote::TapeLimit { tape_bytes: 100_000 }));
    assert!(!session.text(Stream::Out).contains(&"end".to_owned()));
    daemon.send(&ToKeeper::Limits { tape_bytes: Some(1 << 30), allowance: None });
    daemon.wait_for_state(|state| state.intake == Intake::Open);
    session.wait_for_line("end");
    drop(daemon);
    session.end();
    assert_eq!(session.text(Stream::Out).len(), 200_001);
}

#[test]
fn an_agent_that_closes_its_output_lives_on() {
    let session = Session::started("exec >&- 2>&-; echo here >$1/alive; read line; echo $line >$1/heard");
    let mut daemon = session.connect(1);
    session.wait_for_file("alive");
    daemon.input(1, b"still there\n");
    assert_eq!(session.wait_for_file("heard"), "still there");
    eventually("the exit record", || ostler_tape::ExitRecord::read(session.dir()).unwrap());
}
