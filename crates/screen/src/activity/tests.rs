use insta::assert_snapshot;
use ostler_domain::{
    Kind, Recorded,
    event::{RateLimited, Raw, StopReason, Text, ToolCall, TurnEnded, TurnStarted},
};

use super::*;
use crate::{
    Look,
    testing::{self, ago},
};

fn recorded(seconds_ago: i64, event: Event) -> Received {
    let session_seq = Some(1);
    Received::Known(Box::new(Recorded { seq: 1, session: None, session_seq, time: ago(seconds_ago), event }))
}

fn call(id: &str, tool: &str, summary: &str) -> Event {
    let (tool, tool_id, summary) = (tool.to_owned(), id.to_owned(), summary.to_owned());
    Event::AgentToolCall(ToolCall { tool, tool_id, summary, input: String::new(), subagent: None })
}

fn result(id: &str, exit: Option<i32>, output: &str) -> Event {
    let success = exit.is_none_or(|code| code == 0);
    Event::AgentToolResult(ToolResult {
        tool_id: id.to_owned(),
        success,
        exit,
        output: output.to_owned(),
        subagent: None,
    })
}

#[test]
fn what_a_sub_agent_does_is_marked_and_so_is_what_came_of_it() {
    let of_helper = |event: Event| match event {
        Event::AgentToolCall(call) => {
            Event::AgentToolCall(ToolCall { subagent: Some("call_1".to_owned()), ..call })
        }
        Event::AgentToolResult(result) => {
            Event::AgentToolResult(ToolResult { subagent: Some("call_1".to_owned()), ..result })
        }
        other => other,
    };
    let said = Text { text: "There are two.".to_owned(), subagent: Some("call_1".to_owned()) };
    let told = story(
        100,
        vec![
            (0, call("call_1", "Agent", "count them")),
            (1, of_helper(call("call_2", "Bash", "ls | wc -l"))),
            (2, of_helper(result("call_2", Some(0), "2"))),
            (3, Event::AgentCompletion(said)),
            (4, result("call_1", None, "There are two.")),
            (5, Event::AgentCompletion(text("Two, says the helper."))),
        ],
    );
    let marked: Vec<bool> = told.lines().map(|line| line.contains('↳')).collect();
    assert_eq!(marked, [true, true, false, false], "{told}");
}

#[test]
fn what_a_sub_agent_does_behind_its_turn_has_its_result() {
    let of_helper = |event: Event| match event {
        Event::AgentToolCall(call) => {
            Event::AgentToolCall(ToolCall { subagent: Some("call_1".to_owned()), ..call })
        }
        other => other,
    };
    let ended = TurnEnded::new(1, StopReason::Completed);
    let told = story(
        100,
        vec![
            (0, of_helper(call("call_2", "Bash", "ls | wc -l"))),
            (1, Event::TurnEnded(ended)),
            (2, result("call_2", Some(0), "2")),
        ],
    );
    assert!(told.contains('✓') && !told.contains("no result"), "{told}");
}

fn text(text: &str) -> Text {
    Text::from(text.to_owned())
}

fn story(width: usize, events: Vec<(i64, Event)>) -> String {
    let look = Look::plain(Some(width));
    lines_of(events, &look).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_call_that_waits_for_approval_is_said_to_wait() {
    let read = |kind, body: &str| Event::decode(kind, body).unwrap();
    let id = r#""id":"apr_00000000000000000000000001""#;
    let asked =
        || (2, read(Kind::ApprovalRequested, &format!(r#"{{{id},"ask":"1","tool":"run","input":"x"}}"#)));
    let answered = (3, read(Kind::ApprovalAnswered, &format!(r#"{{{id},"answer":"allowed","by":"ann"}}"#)));
    let push = || (1, call("a", "run", "git push"));
    let waits = story(100, vec![push(), asked()]);
    assert!(waits.contains("waits for approval") && !waits.contains("no result"), "{waits}");
    assert!(!story(100, vec![push(), asked(), answered]).contains("waits for approval"));
}

#[test]
fn of_a_context_that_was_made_smaller_only_what_is_known_is_said() {
    let told = |before, after| {
        let compacted = ostler_domain::event::ContextCompacted { automatic: true, before, after };
        story(100, vec![(1, Event::ContextCompacted(compacted))])
    };
    assert_eq!(told(None, None).trim(), "compact context, by itself");
    assert!(told(Some(90_000), Some(8_000)).contains(" → "));
    assert!(!(told(Some(90_000), None) + &told(None, Some(8_000))).contains('?'));
}

#[test]
fn a_call_of_a_session_that_lives_is_running() {
    let mut teller = Teller::new();
    assert!(teller.tell(&recorded(12, call("a", "run", "cargo build"))).is_empty());
    let look = Look::plain(Some(100));
    let told = teller.rest(Some(testing::NOW)).remove(0).lines(&Line::new(), look.width)[0].show(&look);
    assert!(told.ends_with("running 12s"), "{told}");
}

fn lines_of(events: Vec<(i64, Event)>, look: &Look) -> Vec<Line> {
    let mut teller = Teller::new();
    let mut told: Vec<Told> =
        events.into_iter().flat_map(|(at, event)| teller.tell(&recorded(at, event))).collect();
    told.extend(teller.rest(None));
    told.iter().flat_map(|told| told.lines(&Line::of("  "), look.width)).collect()
}

#[test]
fn a_turn_reads_as_a_story() {
    let events = || {
        vec![
            (100, Event::TurnStarted(TurnStarted { turn: 1 })),
            (99, Event::AgentThinking(text("the login route\nhas no middleware yet"))),
            (98, call("a", "read", "src/routes/login.rs")),
            (98, result("a", None, "fn login() {}\n")),
            (97, call("b", "run", "cargo test -p api login")),
            (89, result("b", Some(101), "running 38 tests\n1 failed, 37 passed\n")),
            (80, Event::AgentCompletion(text("Login attempts are limited.\n\nTwo tests added."))),
            (70, call("c", "run", "cargo build --workspace -j 8")),
            (60, Event::TurnEnded(TurnEnded::new(1, StopReason::ProcessEnded))),
        ]
    };
    assert_snapshot!("turn_at_100", story(100, events()));
    assert_snapshot!("turn_at_60", story(60, events()));
    assert_snapshot!("turn_in_all_looks", crate::testing::in_all_looks(|look| lines_of(events(), look)));
}

#[test]
fn the_end_of_a_limit_is_told_as_people_read_it() {
    let until = Some(crate::words::now().plus(std::time::Duration::from_secs(600)));
    let limited = RateLimited { what: "429: slow down".to_owned(), until };
    let told = story(100, vec![(1, Event::RateLimited(limited))]);
    let moment = told.rsplit_once("until ").map(|(_, moment)| moment.trim()).unwrap_or_default();
    assert!(moment.len() == 5 && moment.as_bytes()[2] == b':', "{told}");
}

#[test]
fn results_find_their_calls() {
    assert_snapshot!(story(100, vec![
        (9, call("a", "run", "one")),
        (8, call("b", "run", "two")),
        (7, result("b", Some(0), "")),
        (6, result("a", Some(0), "")),
        (5, result("x", None, "of a call that nobody saw")),
    ]), @r"
      run     two                                       ✓ 0     1.0 s
      run     one                                       ✓ 0     3.0 s
      result  of a call that nobody saw
    ");
}

#[test]
fn floods_are_counted() {
    let raw = |n: u64| (9, Event::Opaque(Raw { text: format!("line {n}"), bytes: 6, at: n }));
    let mut events: Vec<_> = (0..1_500).map(raw).collect();
    events.push((8, Event::AgentStatus(text("on we go"))));
    assert_snapshot!(story(80, events), @r"
      raw     line 0
      raw     line 1
      raw     line 2
      raw     … and 1,497 more lines
      status  on we go
    ");
}

#[test]
fn a_deed_that_is_done_again_is_counted() {
    let told = |exit, output: &str| {
        let mut teller = Teller::new();
        teller.tell(&recorded(9, call("a", "run", "cargo test")));
        teller.tell(&recorded(8, result("a", Some(exit), output))).remove(0)
    };
    let failed = told(101, "1 failed");
    assert!(failed.repeats(&told(101, "2 failed")) && !failed.repeats(&told(0, "1 failed")));
    let look = Look::plain(Some(100));
    let shown = |told: Told| told.lines(&Line::new(), look.width)[0].show(&look);
    assert_snapshot!(
        shown(failed.times(12)),
        @"run     cargo test                                × 12  ✗ 101   1.0 s  1 failed"
    );
    assert_snapshot!(shown(Told::new("status", "on we go").times(2)), @"status  on we go                                  × 2");
}

#[test]
fn standard_error_is_kept_for_who_asks_why() {
    let mut teller = Teller::calm();
    let mut tell = |n: u64| {
        let event = Event::AgentStderr(Raw { text: format!("line {n}"), bytes: 6, at: n });
        let (seq, time) = (n, testing::NOW);
        teller.tell(&Received::Known(Box::new(Recorded {
            seq,
            session: None,
            session_seq: None,
            time,
            event,
        })))
    };
    assert!((0..20).all(|n| tell(n).is_empty()));
    let shown: Vec<String> = teller.last_errors().iter().map(|told| told.parts().2).collect();
    assert_eq!(shown, ["… 17 lines before these", "line 17", "line 18", "line 19"]);
    assert!(teller.last_errors().is_empty());
}

#[test]
fn nothing_moves_the_terminal() {
    let nasty = "\u{1b}[2J\u{9b}1m\u{7}";
    let told = story(
        80,
        vec![
            (9, call(nasty, nasty, nasty)),
            (8, result(nasty, Some(1), nasty)),
            (7, Event::AgentCompletion(text(nasty))),
            (6, Event::AgentThinking(text(nasty))),
        ],
    );
    assert!(!told.contains(['\u{1b}', '\u{9b}', '\u{7}']), "{told:?}");
}
