//! Turns played without a model, a tool or a clock.

use std::time::Duration;

use ostler_domain::Usage;
use serde_json::json;

use super::{
    super::{
        conversation::Reply,
        settings::{Leave, Settings, sample},
    },
    *,
};

fn call(name: &str, arguments: &serde_json::Value) -> Call {
    Call { id: format!("id-{name}"), name: name.into(), arguments: arguments.to_string() }
}

fn replied(text: &str, calls: Vec<Call>) -> Happened {
    replied_to(100, text, calls)
}

fn replied_to(input: u64, text: &str, calls: Vec<Call>) -> Happened {
    let usage = Usage { input, output: 10, ..Usage::default() };
    Happened::Replied(Replied {
        reply: Reply { text: text.into(), calls, ..Reply::default() },
        usage: Some(usage),
        call: None,
    })
}

fn refused(status: u16, message: &str) -> Happened {
    let body = json!({"error": {"message": message}}).to_string();
    Happened::Failed {
        fault: Fault::refused(status, body.as_bytes(), None),
        begun: Begun::default(),
        chance: 0.5,
    }
}

fn ran(ok: bool) -> Happened {
    Happened::Ran(Outcome { ok, exit: None, output: "out".into() })
}

fn asking() -> Settings {
    sample()
}

fn trusting() -> Settings {
    Settings { leave: Leave::Never, ..sample() }
}

fn read() -> Call {
    call("read_file", &json!({"path": "a"}))
}

fn write() -> Call {
    call("write_file", &json!({"path": "a", "content": "b"}))
}

fn messages(act: Act) -> Vec<serde_json::Value> {
    let Act::Call { body, .. } = act else { panic!("expected a call to the model, not {act:?}") };
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn a_turn_goes_from_prompt_over_tools_to_the_answer() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    assert_eq!(messages(turn.on(Happened::Begun("do it".into()))).len(), 2);
    assert!(matches!(turn.on(replied("I look.", vec![read(), write()])), Act::Run(_)));
    assert!(matches!(turn.on(ran(true)), Act::Run(_)));
    let sent = messages(turn.on(ran(false)));
    let roles: Vec<_> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert!(matches!(turn.on(replied("Done.", vec![])), Act::End(End::Done)));
    let notes = turn.notes();
    let spent = notes.iter().filter(|note| matches!(note, Note::Usage { estimated: false, .. })).count();
    let ended: Vec<_> = notes
        .iter()
        .filter_map(|note| match note {
            Note::ToolEnded { number, outcome } => Some((*number, outcome.ok)),
            _ => None,
        })
        .collect();
    assert_eq!((spent, ended), (2, vec![(1, true), (2, false)]));
}

#[test]
fn what_is_recorded_folds_to_what_was_said() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    turn.on(replied("", vec![read(), write()]));
    turn.on(ran(true));
    turn.on(Happened::Cancelled { begun: Begun::default() });
    let saved = turn.notes().into_iter().filter_map(|note| match note {
        Note::Save(entry) => Some(entry),
        _ => None,
    });
    assert_eq!(Conversation::fold(saved), talk.conversation);
}

#[test]
fn changes_need_leave_and_looking_does_not() {
    let (settings, mut talk) = (asking(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    assert!(matches!(turn.on(replied("", vec![read(), write(), write()])), Act::Run(_)));
    let Act::Ask(asked) = turn.on(ran(true)) else { panic!("nobody was asked") };
    assert_eq!((asked.number, asked.title.as_str()), (2, "write a"));
    assert!(matches!(turn.on(Happened::Answered { allow: true, message: String::new() }), Act::Run(_)));
    assert!(matches!(turn.on(ran(true)), Act::Ask(_)));
    let denied = turn.on(Happened::Answered { allow: false, message: "not that file".into() });
    assert_eq!(messages(denied).last().unwrap()["content"], "denied: not that file");
}

#[test]
fn a_cancelled_turn_leaves_no_call_without_an_answer() {
    // At every moment: while the model is asked, while a person is, while a tool runs, while waiting to try again.
    for moment in 0..5 {
        let (settings, mut talk) = (asking(), Talk::default());
        let mut turn = Turn::new(&settings, "system", &mut talk);
        let mut happen = vec![
            Happened::Begun("do it".into()),
            replied("", vec![write(), read(), read()]),
            Happened::Answered { allow: true, message: String::new() },
            ran(true),
            ran(true),
        ];
        happen.truncate(moment + 1);
        for happened in happen {
            turn.on(happened);
        }
        assert!(matches!(turn.on(Happened::Cancelled { begun: Begun::default() }), Act::End(End::Cancelled)));
        let notes = turn.notes();
        let started = notes.iter().filter(|note| matches!(note, Note::ToolStarted { .. })).count();
        let ended = notes.iter().filter(|note| matches!(note, Note::ToolEnded { .. })).count();
        assert_eq!(started, ended, "cancelled after {moment}");
        assert!(talk.conversation.unanswered().is_empty(), "cancelled after {moment}");
        let mut next = Turn::new(&settings, "system", &mut talk);
        assert!(matches!(next.on(Happened::Begun("go on".into())), Act::Call { .. }));
    }
}

#[test]
fn failures_that_pass_are_waited_out() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    for tries in 1..TRIES {
        let Act::Wait(pause) = turn.on(refused(500, "oops")) else { panic!("no second try") };
        assert_eq!(pause, Duration::from_millis(500) * 2_u32.pow(tries - 1));
        assert!(matches!(turn.on(Happened::Waited), Act::Call { .. }));
    }
    let Act::End(End::Failed { message, login: false }) = turn.on(refused(500, "oops")) else {
        panic!("it never gives up")
    };
    assert!(message.contains("500: oops"), "{message}");
}

#[test]
fn a_wrong_key_ends_the_turn_at_once() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    assert!(matches!(turn.on(refused(401, "no")), Act::End(End::Failed { login: true, .. })));
}

#[test]
fn what_streamed_of_a_cut_reply_is_withdrawn_and_estimated() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    turn.notes();
    let begun = Begun { call: Some("chatcmpl-1".into()), bytes: 400 };
    turn.on(Happened::Failed { fault: Fault::Cut("gone".into()), begun, chance: 0.5 });
    let notes = turn.notes();
    assert!(matches!(notes[0], Note::Withdraw));
    let Note::Usage { estimated: true, usage, call, .. } = &notes[1] else { panic!("{notes:?}") };
    assert_eq!(
        (usage.output, call.as_deref()),
        (100, Some("chatcmpl-1")),
        "it is named: it is no other call's"
    );
    assert!(usage.input > 0, "the question was read");
    assert!(matches!(notes[2], Note::Waiting { rate_limit: false, .. }));
}

#[test]
fn a_field_that_a_server_does_not_know_is_left_out_from_then_on() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    let Act::Call { body, .. } = turn.on(refused(400, "unknown field stream_options")) else {
        panic!("not tried without it")
    };
    assert!(body.get("stream_options").is_none());
    assert!(matches!(turn.on(refused(400, "unknown field stream_options")), Act::End(_)));
}

#[test]
fn mistakes_of_the_model_are_told_to_it_and_end_when_they_repeat() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    let bad = || replied("", vec![call("no_such_tool", &json!({}))]);
    let told = messages(turn.on(bad()));
    assert!(told.last().unwrap()["content"].as_str().unwrap().contains("no_such_tool"));
    assert!(matches!(turn.on(bad()), Act::Call { .. }));
    assert!(matches!(turn.on(bad()), Act::End(End::Failed { .. })));
}

#[test]
fn rounds_have_an_end() {
    let settings = Settings { max_rounds: 2, ..trusting() };
    let mut talk = Talk::default();
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    turn.on(replied("", vec![read()]));
    turn.on(ran(true));
    turn.on(replied("", vec![read()]));
    assert!(matches!(turn.on(ran(true)), Act::End(End::TooManyRounds)));
}

#[test]
fn a_full_context_drops_outputs_and_then_summarises() {
    let settings = Settings { context_window: Some(10_000), ..trusting() };
    let mut talk = Talk::default();
    let mut turn = Turn::new(&settings, "system", &mut talk);
    let long = || Happened::Ran(Outcome { ok: true, exit: None, output: "x".repeat(20_000) });
    turn.on(Happened::Begun("do it".into()));
    turn.on(replied("", vec![read()]));
    assert!(matches!(turn.on(long()), Act::Call { shown: true, .. }), "5 000 of 10 000 tokens fit");
    turn.on(replied_to(5_100, "", vec![read()]));
    let sent = messages(turn.on(long()));
    assert_eq!(sent[3]["content"], "[output dropped to save room]");
    assert!(sent[5]["content"].as_str().unwrap().len() == 20_000, "the last output stays");
    // The next overflow finds nothing old to drop.
    let Act::Call { body, shown: false } = turn.on(refused(400, "maximum context length is 10")) else {
        panic!("no summary was asked for")
    };
    assert!(body.get("tools").is_none());
    let sent = messages(turn.on(replied("the story so far", vec![])));
    assert_eq!(sent.len(), 2);
    assert!(sent[1]["content"].as_str().unwrap().contains("the story so far"));
    let how = turn.notes().iter().filter(|note| matches!(note, Note::Compacted { .. })).count();
    assert_eq!(how, 2);
}

#[test]
fn a_server_that_names_no_usage_is_estimated() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    let Act::Call { body, .. } = turn.on(Happened::Begun("x".repeat(400))) else { panic!("no call") };
    // With the tools that it is told of, not the conversation alone.
    let input = body.to_string().len() as u64 / 4;
    assert!(body.to_string().contains("run_command") && input > 500, "{input}");
    turn.on(Happened::Failed {
        fault: Fault::Cut("cut".into()),
        begun: Begun { call: None, bytes: 8 },
        chance: 0.5,
    });
    turn.on(Happened::Waited);
    turn.on(Happened::Replied(Replied {
        reply: Reply { text: "y".repeat(40), ..Reply::default() },
        usage: None,
        call: None,
    }));
    let usages: Vec<Usage> = turn
        .notes()
        .into_iter()
        .filter_map(|note| match note {
            Note::Usage { usage, estimated: true, .. } => Some(usage),
            _ => None,
        })
        .collect();
    let of = |output: u64| Usage { input, output, ..Usage::default() };
    assert_eq!(usages, [of(2), of(10)]);
}

#[test]
fn what_is_announced_is_asked_for_where_that_is_wanted() {
    let settings = Settings { leave: Leave::Announces, ..sample() };
    let mut talk = Talk::default();
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    assert!(matches!(turn.on(replied("", vec![read(), read(), write()])), Act::Announce(_)));
    assert!(matches!(turn.on(Happened::Announced { must_ask: false }), Act::Run(_)));
    assert!(matches!(turn.on(ran(true)), Act::Announce(_)));
    let Act::Ask(asked) = turn.on(Happened::Announced { must_ask: true }) else { panic!("it must ask") };
    assert_eq!(asked.title, "read a");
    let denied = Happened::Answered { allow: false, message: "not that".into() };
    assert!(matches!(turn.on(denied), Act::Ask(_)), "a file is never written unasked");
    let ended = turn.notes().into_iter().rev().find_map(|note| match note {
        Note::ToolEnded { outcome, .. } => Some(outcome.output),
        _ => None,
    });
    assert_eq!(ended.as_deref(), Some("denied: not that"));
}

#[test]
fn news_of_what_was_given_up_change_nothing() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "system", &mut talk);
    turn.on(Happened::Begun("do it".into()));
    assert!(matches!(turn.on(ran(true)), Act::Wait(Duration::ZERO)));
    assert!(matches!(turn.on(replied("hello", vec![])), Act::End(End::Done)));
}

#[test]
fn words_said_into_a_turn_are_read_with_the_next_request_of_it() {
    let (settings, mut talk) = (trusting(), Talk::default());
    let mut turn = Turn::new(&settings, "", &mut talk);
    let words = |id: u64, text: &str| Words { id: id.into(), text: text.to_owned() };
    let read_by = |act: &Act| match act {
        Act::Call { body, .. } => body.to_string(),
        other => panic!("{other:?}"),
    };
    turn.on(Happened::Begun("go".into()));
    assert!(matches!(turn.on(replied("", vec![read()])), Act::Run(_)));
    turn.hear([words(1, "mind the heron")]);
    let body = read_by(&turn.on(ran(true)));
    assert!(body.contains("mind the heron"), "{body}");
    assert!(turn.notes().contains(&Note::Heard { id: 1.into() }));
    // Said while the last answer came: the turn is not over.
    turn.hear([words(2, "and the crane")]);
    let body = read_by(&turn.on(replied("done", Vec::new())));
    assert!(body.contains("and the crane"), "{body}");
    // Said to a turn that is broken off: nobody reads it, and whoever said it is told so.
    turn.hear([words(3, "and the stork")]);
    let end = turn.on(Happened::Cancelled { begun: Begun::default() });
    let notes = turn.notes();
    assert!(
        matches!(end, Act::End(End::Cancelled)) && notes.contains(&Note::Unread { id: 3.into() }),
        "{notes:?}"
    );
    let is_there = |item: &Item| matches!(item, Item::User { text } if text == "and the stork");
    assert!(!talk.conversation.items.iter().any(is_there));
}
