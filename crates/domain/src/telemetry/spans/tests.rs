use std::collections::BTreeMap;

use super::*;
use crate::{
    CampaignId, ConversationId, Message, MessageId,
    event::{By, MessageAccepted, Started, TurnStarted},
    price::Dollars,
    session::{Approve, Begin, Config, Obituary, Outcome, RestartPolicy, Sandbox, approval_limit},
    telemetry::TRACEPARENT,
};

const SECOND: i64 = 1_000_000;

fn created(environment: BTreeMap<String, String>) -> Created {
    let (at, id) = (Time::default(), SessionId::new(Time::from_micros(SECOND), 0xabcd_ef01));
    let config = Config {
        provider: "claude-code".to_owned(),
        model: None,
        working_dir: "/srv/shop".to_owned(),
        branch: None,
        worktree: None,
        budget: None,
        when_used_up: Default::default(),
        billing: Default::default(),
        timeout_us: None,
        deadline: None,
        restart: RestartPolicy::Never,
        approve: Approve::Policy,
        ends_with_turn: false,
        environment,
        provider_config: Default::default(),
        system_prompt: None,
        auth_profile: None,
        ticket: Some("gh:shop#1".to_owned()),
        ticket_id: None,
        mission: None,
        watchdogs: Default::default(),
        resumes_after_limit: true,
        approval_us: approval_limit(),
        priority: Default::default(),
        idle_stop_us: None,
        no_tools: false,
        leases: Vec::new(),
    };
    Created {
        id,
        campaign: CampaignId::new(at, 1),
        conversation: ConversationId::new(at, 2),
        name: "api-auth".parse().unwrap(),
        agent: None,
        config,
        sandbox: Sandbox::On,
        policy: Default::default(),
        continues: None,
        chain: id,
        spawned_by: None,
        bounded_by: None,
        restart_count: 0,
        short_lives: 0,
        begin: Begin::Fresh,
        imported: None,
    }
}

/// A turn with a model call, a tool call that fails, and another model call; one second between any two events.
fn life() -> Vec<Event> {
    let usage = |input| UsageRecorded {
        usage: Usage { input, cache_read: 100, cache_write: 10, output: 5, reasoning: 2 },
        model: Some("sonnet-1".to_owned()),
        cost: Some(Dollars(1_500)),
        ..UsageRecorded::default()
    };
    let message = Message {
        id: MessageId::new(Time::default(), 4),
        text: "a secret wish".to_owned(),
        mode: Default::default(),
    };
    let conversation = ConversationId::new(Time::default(), 2);
    let obituary: Obituary = serde_json::from_str("{\"sentence\":\"It ended.\"}").unwrap();
    vec![
        Event::MessageAccepted(MessageAccepted::new(message, conversation, By::ostler())),
        Event::SessionStarted(Started {
            provider_id: None,
            model: Some("sonnet".to_owned()),
            deadline: None,
        }),
        Event::TurnStarted(TurnStarted { turn: 1 }),
        Event::UsageRecorded(usage(1)),
        Event::UsageRecorded(UsageRecorded { usage: Usage::default(), ..usage(0) }),
        Event::AgentToolCall(ToolCall {
            tool: "Bash".to_owned(),
            tool_id: "t1".to_owned(),
            summary: "cat secret".to_owned(),
            input: "cat secret".to_owned(),
            subagent: None,
        }),
        Event::AgentToolCall(ToolCall {
            tool: "Read".to_owned(),
            tool_id: "t2".to_owned(),
            summary: String::new(),
            input: String::new(),
            subagent: Some("t1".to_owned()),
        }),
        Event::AgentToolResult(ToolResult {
            tool_id: "t1".to_owned(),
            success: false,
            exit: Some(1),
            output: "no secret".to_owned(),
            subagent: None,
        }),
        Event::UsageRecorded(usage(2)),
        Event::AgentCompletion("done, secretly".into()),
        Event::TurnEnded(TurnEnded::new(1, StopReason::Completed)),
        Event::SessionFailed(Ended {
            outcome: Outcome::Crashed,
            obituary,
            restart: None,
            machine_restarted: None,
        }),
    ]
}

fn recorded(n: usize, event: Event) -> Recorded {
    let place = n as u64 + 1;
    let time = Time::from_micros(place as i64 * SECOND);
    Recorded { seq: place, session: None, session_seq: Some(place), time, event }
}

fn spans(environment: BTreeMap<String, String>, with_content: bool) -> Vec<Span> {
    let first = recorded(0, Event::SessionCreated(Box::new(created(environment))));
    let mut trace = SessionTrace::begin(&first, with_content).unwrap();
    let spans =
        life().into_iter().enumerate().flat_map(|(n, event)| trace.apply(&recorded(n + 1, event))).collect();
    assert!(trace.has_ended());
    spans
}

fn value<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[test]
fn what_people_said_goes_no_further_with_a_secret_in_it() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!("my key is {secret}, {}{secret}", "x ".repeat(TELEMETRY_TEXT_BYTES / 2 - 16));
    let first = recorded(0, Event::SessionCreated(Box::new(created(BTreeMap::new()))));
    let mut trace = SessionTrace::begin(&first, true).unwrap();
    let spans: Vec<Span> = life()
        .into_iter()
        .map(|event| match event {
            Event::MessageAccepted(mut accepted) => {
                accepted.message.text.clone_from(&text);
                Event::MessageAccepted(accepted)
            }
            other => other,
        })
        .enumerate()
        .flat_map(|(n, event)| trace.apply(&recorded(n + 1, event)))
        .collect();
    let told = spans.iter().find_map(|span| value(span, "gen_ai.input.messages")).unwrap();
    let Value::Text(told) = told else { panic!("{told:?}") };
    assert!(told.contains("my key is ghp_[redacted]") && !told.contains("0123456789"), "{told}");
}

#[test]
fn a_life_becomes_a_tree_of_spans() {
    let spans = spans(BTreeMap::new(), false);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "chat sonnet-1",
            "execute_tool Bash",
            "chat sonnet-1",
            "invoke_agent claude-code",
            "execute_tool Read",
            "invoke_workflow claude-code"
        ]
    );
    let [first, bash, second, turn, read, session] = &spans[..] else { panic!("{names:?}") };
    assert_eq!(session.parent, None);
    assert_eq!(turn.parent, Some(session.id));
    assert_eq!((first.parent, bash.parent, second.parent), (Some(turn.id), Some(turn.id), Some(turn.id)));
    assert_eq!(read.parent, Some(bash.id), "a sub-agent's call belongs to the call that started it");
    let id = created(BTreeMap::new()).id;
    assert!(spans.iter().all(|span| span.trace == id.bits()));
    let seconds = |span: &Span| (span.start.micros() / SECOND, span.end.micros() / SECOND);
    assert_eq!((seconds(session), seconds(turn), seconds(bash)), ((1, 13), (4, 12), (7, 9)));
    assert_eq!((seconds(first), seconds(second)), ((4, 5), (9, 10)), "from the last thing before the call");
    assert_eq!(value(first, "gen_ai.usage.input_tokens"), Some(&Value::Number(111)));
    assert_eq!(value(turn, "gen_ai.usage.input_tokens"), Some(&Value::Number(223)));
    assert_eq!(value(first, "gen_ai.provider.name"), Some(&Value::from("anthropic")));
    assert_eq!(value(first, "ostler.cost.usd"), Some(&Value::Amount(0.0015)));
    assert_eq!(value(bash, "error.type"), Some(&Value::from("exit 1")));
    assert_eq!(value(read, "error.type"), Some(&Value::from("process_ended")));
    assert_eq!(value(session, "ostler.session.outcome"), Some(&Value::from("crashed")));
    assert!(turn.error.is_none() && session.error.is_some() && first.is_call && !turn.is_call);
}

#[test]
fn what_was_said_goes_along_only_where_it_is_wanted() {
    let text = |spans: &[Span]| format!("{spans:?}");
    let without = text(&spans(BTreeMap::new(), false));
    assert!(!without.contains("secret") && !without.contains("It ended"), "{without}");
    let with = text(&spans(BTreeMap::new(), true));
    for said in ["a secret wish", "cat secret", "no secret", "done, secretly", "It ended."] {
        assert!(with.contains(said), "{said}: {with}");
    }
}

#[test]
fn a_trace_goes_on_in_the_session() {
    let caller = |flags| {
        let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
        BTreeMap::from([(TRACEPARENT.to_owned(), text)])
    };
    let spans_of_sampled = spans(caller("01"), false);
    let session = spans_of_sampled.last().unwrap();
    assert_eq!(
        (session.trace, session.parent),
        (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, Some(0x00f0_67aa_0ba9_02b7))
    );
    let handed = Context::of_session(&created(caller("01")));
    assert_eq!((handed.trace, handed.span, handed.sampled), (session.trace, session.id, true));
    assert_eq!(spans(caller("00"), false), [], "nobody wants to hear of it");
    assert!(!Context::of_session(&created(caller("00"))).sampled);
}
