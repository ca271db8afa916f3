//! What is written to an agent: on the tape first, once, in order.

use ostler_tape::frame::{RefusedReason, Rung, RungAction};
use ostler_tape::{InputMark, KeeperNote, Stream, ToKeeper};

use crate::support::{Session, eventually};

const ECHO: &str = "while read -r line; do echo \"got $line\"; done";

#[test]
fn an_input_is_taped_before_the_agent_can_answer_it() {
    let session = Session::started(ECHO);
    let mut daemon = session.connect(1);
    daemon.input(1, b"hello\n");
    session.wait_for_line("got hello");
    let lines = session.lines();
    let input = lines.iter().position(|line| line.stream == Stream::In).unwrap();
    let answer = lines.iter().position(|line| line.stream == Stream::Out).unwrap();
    assert!(input < answer);
    assert_eq!(lines[input].body.bytes(), b"hello\n");
    assert_eq!(lines[input].input, Some(InputMark { input_no: 1, tag: "tag 1".into() }));
}

#[test]
fn an_input_that_was_had_is_dropped_and_a_gap_is_refused() {
    let session = Session::started(ECHO);
    let mut daemon = session.connect(1);
    daemon.input(1, b"one\n");
    daemon.input(1, b"one again\n");
    daemon.input(3, b"three\n");
    assert_eq!(daemon.refusal(), (RefusedReason::Gap, Some(3)));
    daemon.input(2, b"two\n");
    session.wait_for_line("got two");
    assert_eq!(session.text(Stream::Out), ["got one", "got two"]);
    assert_eq!(session.text(Stream::In), ["one\n", "two\n"]);
    daemon.wait_for_state(|state| state.last_input_no == 2);
}

#[test]
fn a_long_input_reaches_a_slow_agent_whole() {
    let session =
        Session::new("sleep 0.2; cat | wc -c").with(|document| document.piece_bytes = 10_000).start();
    let mut daemon = session.connect(1);
    let long = vec![b'x'; 1_000_000];
    daemon.input(1, &long);
    daemon.input(2, b"end\n");
    daemon.wait_for_state(|state| state.last_input_no == 2);
    let ladder = vec![Rung { action: RungAction::CloseInput, wait_ms: 60_000 }];
    daemon.send(&ToKeeper::Stop { by: "ada".into(), rule: "end of input".into(), ladder });
    session.wait_for_line("1000004");
    let inputs: Vec<_> = session.lines().into_iter().filter(|line| line.stream == Stream::In).collect();
    assert_eq!(inputs[0].body.bytes(), long);
}

#[test]
fn a_closed_input_is_refused() {
    let session = Session::started("exec <&-; echo closed; sleep 60");
    let mut daemon = session.connect(1);
    session.wait_for_line("closed");
    eventually("the keeper notices", || {
        let closed = |note: &_| matches!(note, KeeperNote::InputClosed { .. });
        session.notes().iter().any(closed).then_some(())
    });
    daemon.input(1, b"hello?\n");
    assert_eq!(daemon.refusal(), (RefusedReason::InputClosed, Some(1)));
    assert_eq!(session.text(Stream::In), [""; 0], "what is refused is not on the tape");
}

#[test]
fn what_was_had_is_known_to_the_next_daemon() {
    let session = Session::started(ECHO);
    let mut first = session.connect(1);
    first.input(1, b"one\n");
    session.wait_for_line("got one");
    drop(first);
    let mut second = session.connect(2);
    let (accepted, _, state) = second.hello();
    assert!(accepted);
    assert_eq!(state.last_input_no, 1);
    second.input(2, b"two\n");
    session.wait_for_line("got two");
}
