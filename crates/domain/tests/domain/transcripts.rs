//! Transcripts: the same events give the same bytes, wherever one stopped in between; nothing is counted twice.

use std::{collections::BTreeSet, fs, path::PathBuf};

use ostler_domain::{
    Event, Message, MessageId, Mode, Recorded, SessionId, Time, Usage,
    ask::{Ask, AskSettled, Asked, OutputAdded, OutputKind, Spawn},
    conversation::Key,
    event::{
        Answer, ApprovalAnswered, ApprovalRequested, AskKind, By, ContextCompacted, ContextReset,
        DeliveryMirrored, ImageRecorded, MessageAccepted, MessageCancelled, MessageEdited, MessageMark,
        ModelChanged, ProviderBound, Started, StopReason, Text, ToolCall, ToolResult, TurnEnded, TurnStarted,
        UsageRecorded,
    },
    image::Image,
    price::Dollars,
    session::{Approve, Begin, Created, Ended, Obituary, Outcome, RestartPolicy, State, create, decide},
    transcript::{
        self, Block, Line, Message as Said, PAGE_END, Scribe, Shown, StopReason as Stop, TITLE, page_begin,
        shown,
    },
};
use proptest::{collection::vec, prelude::*};

use crate::any::{any_created, any_input, context, created, message, time};

fn recorded(events: Vec<(SessionId, Event)>) -> Vec<Recorded> {
    let of = |(n, (session, event)): (usize, (SessionId, Event))| {
        let place = n as u64 + 1;
        let at = Time::from_micros(1_760_000_000_000_000 + n as i64 * 1_500_123);
        Recorded { seq: place, session: Some(session), session_seq: Some(place), time: at, event }
    };
    events.into_iter().enumerate().map(of).collect()
}

fn lines(events: &[Recorded]) -> Vec<Line> {
    let mut scribe = Scribe::default();
    events.iter().flat_map(|event| scribe.apply(event)).collect()
}

fn jsonl(lines: &[Line]) -> String {
    lines.iter().map(Line::to_json).collect()
}

fn told(n: u8, text: &str) -> [Event; 2] {
    let id = MessageId::new(time(0), u128::from(n));
    let message = Message { id, text: text.to_owned(), mode: Mode::Followup };
    let conversation = a_life().conversation;
    let accepted = MessageAccepted::new(message, conversation, By("ann".into()));
    [Event::MessageAccepted(accepted), Event::MessageDelivered(MessageMark { id, turn: None })]
}

fn a_life() -> Created {
    created(RestartPolicy::Never, Approve::Policy, false, None)
}

/// The log has what people said as they said it: it may have to be said again.
#[test]
fn no_transcript_has_a_secret_that_somebody_told_an_agent() {
    let life = a_life();
    let session = life.id;
    let text = "use ghp_0123456789abcdefghijABCDEFGHIJ012345 for it";
    let edited = Event::MessageEdited(MessageEdited {
        id: MessageId::new(time(0), 2),
        text: text.to_owned(),
        by: By("ann".into()),
    });
    let [accepted, delivered] = told(2, "later");
    let events = [Event::SessionCreated(Box::new(life))]
        .into_iter()
        .chain(told(1, text))
        .chain([accepted, edited, delivered]);
    let written = jsonl(&lines(&recorded(events.map(|event| (session, event)).collect())));
    assert_eq!(written.matches("use ghp_[redacted] for it").count(), 2, "{written}");
    assert!(!written.contains("0123456789abc"), "{written}");
}

fn call(id: &str, tool: &str, input: &str) -> Event {
    Event::AgentToolCall(ToolCall {
        tool: tool.to_owned(),
        tool_id: id.to_owned(),
        summary: String::new(),
        input: input.to_owned(),
        subagent: None,
    })
}

fn answer(id: &str, exit: i32, output: &str) -> Event {
    Event::AgentToolResult(ToolResult {
        tool_id: id.to_owned(),
        success: exit == 0,
        exit: Some(exit),
        output: output.to_owned(),
        subagent: None,
    })
}

fn used(input: u64, output: u64) -> Event {
    Event::UsageRecorded(UsageRecorded {
        usage: Usage { input, output, cache_read: 30, cache_write: 0, reasoning: 5 },
        model: Some("sonnet".to_owned()),
        cost: Some(Dollars(2_500)),
        ..UsageRecorded::default()
    })
}

fn ended(outcome: Outcome, sentence: &str) -> Ended {
    let obituary: Obituary = serde_json::from_value(serde_json::json!({"sentence": sentence})).unwrap();
    Ended { outcome, obituary, restart: None, machine_restarted: None }
}

/// A conversation of two sessions with everything in it that a transcript knows.
fn whole() -> Vec<Recorded> {
    let first = a_life();
    let approval = ostler_domain::ApprovalId::new(time(0), 9);
    let mut events = vec![Event::SessionCreated(Box::new(first.clone()))];
    events.push(Event::SessionStarted(Started {
        provider_id: Some("p-1".into()),
        model: Some("sonnet".into()),
        deadline: None,
    }));
    events.extend(told(1, "Fix the <login> test.\n\n```\ncargo test"));
    events.push(Event::TurnStarted(TurnStarted { turn: 1 }));
    events.push(Event::ProviderBound(ProviderBound { provider_id: "p-1".into(), model: None }));
    events.push(Event::AgentThinking("First I look.".into()));
    events.push(Event::AgentCompletion("I run the tests.".into()));
    events.push(call("t1", "Bash", r#"{"command":"cargo test -p api </details>"}"#));
    events.push(used(90, 20));
    events.push(Event::ApprovalRequested(Box::new(ApprovalRequested {
        id: approval,
        ask: "a".into(),
        tool: "Bash".into(),
        input: "cargo test -p api".into(),
        kind: AskKind::Leave,
        action: Default::default(),
        subagent: None,
        why: "no rule".into(),
        deadline: None,
    })));
    events.push(Event::ApprovalAnswered(ApprovalAnswered {
        id: approval,
        answer: Answer::Allowed,
        by: By("ann".into()),
        message: String::new(),
        rules: Vec::new(),
    }));
    events.push(answer("t1", 101, "1 failed <script>alert(1)</script>"));
    events.push(Event::AgentCompletion(Text { text: "looked".into(), subagent: Some("t2".into()) }));
    events.push(Event::ContextCompacted(ContextCompacted {
        automatic: true,
        before: Some(180_000),
        after: Some(20_000),
    }));
    events.push(Event::AgentCompletion("Fixed: `a<b` was wrong.\n\n```rust\nlet a = 1;".into()));
    events.push(used(110, 25));
    events.push(Event::TurnEnded(TurnEnded::new(1, StopReason::Completed)));
    events.push(used(7, 0));
    events.push(Event::SessionStopped(ended(Outcome::Stopped, "ann stopped it.")));
    let mut all: Vec<(SessionId, Event)> = events.into_iter().map(|event| (first.id, event)).collect();

    let second = SessionId::new(time(1), 8);
    let again = Created {
        id: second,
        continues: Some(first.id),
        begin: Begin::Resume { provider_id: "p-1".into(), interrupted: None, seed: String::new() },
        ..first
    };
    let mut events = vec![Event::SessionCreated(Box::new(again))];
    events.push(Event::ContextReset(ContextReset { why: "the provider has lost it".into() }));
    events.push(Event::ModelChanged(ModelChanged {
        model: "opus".into(),
        by: By("ann".into()),
        at_next_session: false,
    }));
    events.extend(told(2, "And now?"));
    events.push(Event::TurnStarted(TurnStarted { turn: 1 }));
    events.push(call("t3", "Read", "notes.txt"));
    events.push(call("t4", "Read", "{}"));
    events.push(answer("t4", 0, ""));
    let cut = TurnEnded { failure: Some("overloaded".into()), ..TurnEnded::new(1, StopReason::Error) };
    events.push(Event::TurnEnded(cut));
    // Too late: its call was answered in its place.
    events.push(answer("t3", 0, "late"));
    events.push(Event::SessionFailed(ended(Outcome::Crashed, "It crashed.")));
    all.extend(events.into_iter().map(|event| (second, event)));
    recorded(all)
}

fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("OSTLER_BLESS").is_some() && !path.exists() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(golden == text, "{name} is another now:\n{text}");
}

#[test]
fn a_whole_conversation_as_it_is_written() {
    let lines = lines(&whole());
    golden("transcript.jsonl", &jsonl(&lines));
    let things: Vec<Shown> = lines.iter().flat_map(shown).collect();
    golden("transcript.md", &things.iter().map(transcript::markdown).collect::<String>());
    let entries: String = things.iter().map(transcript::page_entry).collect();
    golden("transcript.html", &format!("{}{entries}{PAGE_END}", page_begin(TITLE)));
}

#[test]
fn no_text_of_an_agent_s_is_a_tag_of_the_page() {
    let lines = lines(&whole());
    let entries: String = lines.iter().flat_map(shown).map(|thing| transcript::page_entry(&thing)).collect();
    assert!(!entries.contains("<script") && !entries.contains("<login>"), "{entries}");
    assert_eq!(entries.matches("<details>").count(), entries.matches("</details>").count());
    let begin = page_begin("Transcript of <script>");
    assert!(begin.contains("default-src 'none'") && !begin.contains("<script"));
    assert!(begin.contains("<title>Transcript of &lt;script&gt;</title>"));
}

#[test]
fn lines_are_read_back_as_they_were_written() {
    for line in lines(&whole()) {
        let text = line.to_json();
        assert_eq!(text.matches('\n').count(), 1);
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!((read.to_json(), &read), (text, &line));
    }
}

#[test]
fn what_is_told_between_turns_belongs_to_the_next() {
    let turns: Vec<_> = lines(&whole())
        .into_iter()
        .filter_map(|line| match line {
            Line::Message { message: Said::User { .. }, ostler, .. } => Some((ostler.turn, ostler.by)),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [(Some(1), Some("ann".to_owned())), (Some(1), Some("ann".to_owned()))]);
}

#[test]
fn a_turn_that_came_to_nothing_is_to_be_seen() {
    let life = a_life();
    let mut events = vec![Event::SessionCreated(Box::new(life.clone()))];
    events.extend(told(1, "hi"));
    events.push(Event::TurnStarted(TurnStarted { turn: 1 }));
    events.push(Event::TurnEnded(TurnEnded::new(1, StopReason::Interrupted)));
    let events = recorded(events.into_iter().map(|event| (life.id, event)).collect());
    let Some(Line::Message { message: Said::Assistant { content, stop_reason, .. }, .. }) =
        lines(&events).pop()
    else {
        panic!("an answer");
    };
    assert_eq!((content.len(), stop_reason), (0, Stop::Aborted));
}

#[test]
fn what_was_changed_while_it_waited_is_said_as_it_was_delivered() {
    let life = a_life();
    let (one, two) = (told(1, "frist"), told(2, "never mind"));
    let id = |n: u8| MessageId::new(time(0), u128::from(n));
    let edited = MessageEdited { id: id(1), text: "first".into(), by: By("ann".into()) };
    let cancelled = MessageCancelled { id: id(2), why: "too late".into(), by: By("ben".into()) };
    let events = vec![
        Event::SessionCreated(Box::new(life.clone())),
        one[0].clone(),
        two[0].clone(),
        Event::MessageEdited(edited),
        Event::MessageCancelled(cancelled),
        one[1].clone(),
    ];
    let events = recorded(events.into_iter().map(|event| (life.id, event)).collect());
    let things: Vec<Shown> = lines(&events).iter().flat_map(shown).collect();
    let said: Vec<&str> = things
        .iter()
        .filter_map(|thing| match thing {
            Shown::Told { text, .. } | Shown::Remark { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["a session with script begins", "a message was taken back by ben", "first"]);
}

#[test]
fn what_an_agent_gives_and_asks_for_is_told() {
    let session = a_life().id;
    let ask = |at, ask| Event::Asked(Box::new(Asked { at, ask }));
    let spawn = Spawn {
        worker: "tester".parse().unwrap(),
        task: "test it".to_owned(),
        provider: None,
        model: None,
        budget: None,
    };
    let output =
        OutputAdded { name: "report".to_owned(), kind: OutputKind::Path, value: "docs/r.md".to_owned() };
    let refused = AskSettled { at: 2, session: None, message: None, refused: Some("no".to_owned()) };
    let events = [
        Event::OutputAdded(output),
        ask(1, Ask::Spawn(spawn)),
        ask(2, Ask::Send { to: "docs".to_owned(), text: "look".to_owned() }),
        Event::AskSettled(refused),
    ];
    let events = recorded(events.into_iter().map(|event| (session, event)).collect());
    let lines = lines(&events);
    let told = lines.iter().flat_map(shown).filter_map(|shown| match shown {
        Shown::Remark { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "output report: docs/r.md",
            "a helper tester is asked for: test it",
            "says to docs: look",
            "that was refused: no"
        ]
    );
}

#[test]
fn pictures_stand_in_what_they_are_of_and_are_named_by_their_bytes() {
    let life = a_life();
    let session = life.id;
    let picture = |mime: &str, tool: Option<&str>, message: Option<MessageId>| {
        Event::ImageRecorded(ImageRecorded {
            image: Image::from_base64(mime, "aGVsbG8=").unwrap(),
            tool_id: tool.map(str::to_owned),
            message,
            subagent: None,
        })
    };
    let [accepted, delivered] = told(1, "look");
    let Event::MessageDelivered(mark) = &delivered else { unreachable!() };
    let id = mark.id;
    let events = vec![
        Event::SessionCreated(Box::new(life)),
        accepted,
        picture("image/png", None, Some(id)),
        Event::TurnStarted(TurnStarted { turn: 1 }),
        // What is imported was seen, and delivered by nobody here.
        Event::MessageSeen(MessageMark { id, turn: Some(1) }),
        call("t1", "Read", "{}"),
        picture("image/jpeg", Some("t1"), None),
        answer("t1", 0, ""),
        picture("image/svg+xml", None, None),
        Event::TurnEnded(TurnEnded::new(1, StopReason::Completed)),
    ];
    let mut lines = lines(&recorded(events.into_iter().map(|event| (session, event)).collect()));
    let of = |line: &mut Line| line.pictures().map(|picture| picture.mime_type.clone()).collect::<Vec<_>>();
    let found: Vec<String> = lines.iter_mut().flat_map(of).collect();
    assert_eq!(found, ["image/png", "image/jpeg", "image/svg+xml"]);
    let mut roles = Vec::new();
    for line in &mut lines {
        if line.pictures().next().is_some() {
            roles.push(match line {
                Line::Message { message: Said::User { .. }, .. } => "user",
                Line::Message { message: Said::ToolResult { content, .. }, .. } => {
                    assert_eq!(content.len(), 1, "no empty words beside a picture");
                    "result"
                }
                _ => "assistant",
            });
        }
    }
    assert_eq!(roles, ["user", "result", "assistant"]);
    let text = jsonl(&lines);
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert!(
        text.contains(&format!(r#"{{"type":"image","mimeType":"image/png","sha256":"{sha256}","bytes":5}}"#)),
        "{text}"
    );
    let markdown: String = lines.iter().flat_map(shown).map(|shown| transcript::markdown(&shown)).collect();
    assert!(
        markdown.contains("*picture: image/png, 5 bytes · ostler transcript image 2cf24dba5fb0a30e"),
        "{markdown}"
    );
    // With their bytes, a page has those in it that are pictures and nothing else.
    let page = |lines: &[Line]| {
        lines.iter().flat_map(shown).map(|shown| transcript::page_entry(&shown)).collect::<String>()
    };
    assert!(!page(&lines).contains("<img"));
    for picture in lines.iter_mut().flat_map(Line::pictures) {
        picture.data = Some("aGVsbG8=".to_owned());
    }
    let whole = page(&lines);
    assert_eq!(whole.matches("<img ").count(), 2, "{whole}");
    assert!(whole.contains("src=\"data:image/png;base64,aGVsbG8=\""), "{whole}");
    assert!(!whole.contains("data:image/svg"), "{whole}");
    for picture in lines.iter_mut().flat_map(Line::pictures) {
        picture.data = Some("\"onerror=\"alert(1)".to_owned());
        picture.mime_type = "image/png\" x=\"".to_owned();
    }
    let evil = page(&lines);
    assert!(!evil.contains("<img") && !evil.contains("x=\""), "{evil}");
}

#[test]
fn what_was_delivered_by_others_is_said_by_the_agent_for_nothing() {
    let life = a_life();
    let (session, conversation) = (life.id, life.conversation);
    let mirrored = DeliveryMirrored {
        conversation,
        session,
        text: "the build is green".to_owned(),
        media_urls: vec!["https://example.org/shot.png".to_owned()],
        to: Some("user:U1".to_owned()),
        by: By("ann".into()),
    };
    let events = vec![
        Event::SessionCreated(Box::new(life)),
        Event::TurnStarted(TurnStarted { turn: 1 }),
        used(10, 5),
        Event::DeliveryMirrored(Box::new(mirrored)),
        Event::AgentCompletion(Text::from("done".to_owned())),
        Event::TurnEnded(TurnEnded::new(1, StopReason::Completed)),
    ];
    let mut events = recorded(events.into_iter().map(|event| (session, event)).collect());
    // It is of no session's own sequence.
    (events[3].session, events[3].session_seq) = (None, None);
    let lines = lines(&events);
    let said: Vec<(&[Block], &str, u64, Option<&str>)> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Message { message: Said::Assistant { content, model, usage, .. }, ostler, .. } => {
                Some((content.as_slice(), model.as_str(), usage.total_tokens, ostler.to.as_deref()))
            }
            _ => None,
        })
        .collect();
    let [(content, model, tokens, to), (_, _, of_agent, none)] = said[..] else { panic!("{said:?}") };
    assert_eq!(content, [Block::text("the build is green"), Block::text("https://example.org/shot.png")]);
    assert_eq!((model, tokens, to), ("delivery-mirror", 0, Some("user:U1")));
    assert!(of_agent > 0 && none.is_none(), "the agent's tokens stay the agent's");
}

#[test]
fn threads_have_files_of_their_own() {
    let name = |key: &str| transcript::file_name(&key.parse::<Key>().unwrap());
    assert_eq!(name("main"), "transcript.jsonl");
    assert_eq!(name("agent:main:telegram:group:-1:topic:7"), "transcript-topic-7.jsonl");
    assert_eq!(name("agent:main:x:group:1:topic:../a b"), "transcript-topic-%2E%2E%2Fa%20b.jsonl");
}

fn tokens(lines: &[Line]) -> u64 {
    let of = |line: &Line| match line {
        Line::Message { message: Said::Assistant { usage, .. }, .. } => usage.total_tokens,
        Line::Custom { custom_type, data, .. } if custom_type == "ostler.usage" => {
            data["usage"]["totalTokens"].as_u64().unwrap()
        }
        _ => 0,
    };
    lines.iter().map(of).fold(0, u64::saturating_add)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_makes_a_chain_that_may_be_taken_up_anywhere(
        created in any_created(), inputs in vec(any_input(), 0..80), stop in any::<prop::sample::Index>()
    ) {
        let id = created.id;
        let mut events = create(created, vec![(message(0), None)], &By("ann".into()));
        let mut live = State::replay(events.iter().map(|event| (time(0), event))).expect("the first event creates");
        for (step, input) in inputs.into_iter().enumerate() {
            let context = context(step as u64 + 1);
            let Ok(decision) = decide(&live, input, &context) else { continue };
            for event in decision.events {
                live.apply(context.now.wall, &event);
                events.push(event);
            }
        }
        let used: u64 = events.iter().map(|event| match event {
            Event::UsageRecorded(used) => used.usage.total(),
            _ => 0,
        }).fold(0, u64::saturating_add);
        let has_ended = matches!(events.last(), Some(Event::SessionStopped(_) | Event::SessionFailed(_)));
        let events = recorded(events.into_iter().map(|event| (id, event)).collect());
        let lines = lines(&events);

        // Taken up from what was kept, after any event.
        let stop = stop.index(events.len());
        let mut scribe = Scribe::default();
        let mut text: String = events[..stop].iter().flat_map(|event| scribe.apply(event)).map(|line| line.to_json()).collect();
        let mut scribe: Scribe = serde_json::from_str(&serde_json::to_string(&scribe).unwrap()).unwrap();
        text.extend(events[stop..].iter().flat_map(|event| scribe.apply(event)).map(|line| line.to_json()));
        prop_assert_eq!(&text, &jsonl(&lines));

        let mut before = None;
        let mut ids = BTreeSet::new();
        let (mut called, mut answered) = (Vec::new(), Vec::new());
        for line in &lines {
            let value: serde_json::Value = serde_json::from_str(&line.to_json()).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Line>(value.clone()).unwrap(), line);
            if let Line::Message { message, .. } = line {
                match message {
                    Said::Assistant { content, .. } => called.extend(content.iter().filter_map(|block| match block {
                        Block::ToolCall { id, .. } => Some(id.clone()),
                        _ => None,
                    })),
                    Said::ToolResult { tool_call_id, .. } => answered.push(tool_call_id.clone()),
                    Said::User { .. } => {}
                }
            }
            for thing in shown(line) {
                let _ = (transcript::markdown(&thing), transcript::page_entry(&thing));
            }
            if matches!(line, Line::Session(_)) {
                continue;
            }
            let id = value["id"].as_str().unwrap().to_owned();
            prop_assert_eq!(value["parentId"].as_str(), before.as_deref());
            prop_assert!(ids.insert(id.clone()), "{} stands twice", id);
            before = Some(id);
        }
        if has_ended {
            called.sort();
            answered.sort();
            prop_assert_eq!(called, answered, "each call has one answer");
            prop_assert_eq!(tokens(&lines), used, "each token stands once");
        }
    }
}
