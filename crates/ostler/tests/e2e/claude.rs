//! The real Claude Code in its sandbox, against a model server of our own.

use std::{fs, path::PathBuf, time::Duration};

use ostler_client::{AnswerApproval, Client, CreateSession, SendMessage};
use ostler_domain::{
    Event, Kind, Recorded, SessionId, Usage,
    event::{Answer, StopReason, UsageSource},
    session::{Approve, Attention, Outcome, Phase, RestartPolicy, View},
};
use ostler_testkit::{FakeOpenai, TestHome, programs, wait};
use serde_json::{Value, json};

use crate::OSTLER;

const KEY: &str = "sk-ant-the-real-key-of-this-test";

/// A home whose Claude Code calls our server, a campaign, and the server.
struct Stage {
    model: FakeOpenai,
    home: TestHome,
    client: Client,
}

impl Stage {
    async fn set(who: &str) -> Option<Stage> {
        let program = programs::find("claude", who)?;
        let model = FakeOpenai::start();
        let home = TestHome::started(OSTLER).await;
        let key = home.path().join("key");
        fs::write(&key, KEY).unwrap();
        fs::create_dir_all(home.home.config()).unwrap();
        let config = format!(
            "[providers.claude-code]\nprogram = \"{}\"\nbase_url = \"{}\"\napi_key_file = \"{}\"\nmodel = \"claude-sonnet-5\"\n",
            program.display(),
            model.origin(),
            key.display()
        );
        fs::write(home.home.config_toml(), config).unwrap();
        let client = home.client().await;
        Some(Stage { model, home, client })
    }

    async fn begin(&self, approve: Approve, steps: Value) -> View {
        let mut wanted = CreateSession::new("shop", "claude-code");
        wanted.initial_message = Some(prompt(steps));
        wanted.approve = approve;
        self.client.create_session(wanted).await.unwrap()
    }

    async fn say(&self, who: SessionId, steps: Value) -> View {
        let message = SendMessage { who: who.to_string(), text: prompt(steps), ..SendMessage::default() };
        self.home.client().await.send_message(message).await.unwrap().sent().unwrap().session
    }

    /// Waits until so many turns have ended and nothing runs on.
    async fn turns(&self, who: SessionId, turns: u32) -> View {
        let rests = |view: &View| {
            view.outcome.is_some()
                || (view.turns >= turns
                    && view.attention == Some(Attention::Idle)
                    && view.phase == Phase::Live)
        };
        self.home.reaches(&who.to_string(), "the turns to end", rests).await
    }

    async fn events(&self, who: SessionId) -> Vec<Recorded> {
        self.home.events(&self.home.client().await, who).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.campaign_dir().join(name)
    }
}

fn prompt(steps: Value) -> String {
    format!("Do as you are told. @@fake {steps}")
}

fn kinds(events: &[Recorded]) -> Vec<Kind> {
    events.iter().map(|recorded| recorded.event.kind()).collect()
}

/// What was counted, and what each source said.
fn used(events: &[Recorded]) -> (Usage, Usage, Usage) {
    let mut sums = (Usage::default(), Usage::default(), Usage::default());
    for recorded in events {
        if let Event::UsageRecorded(used) = &recorded.event {
            sums.0 += used.usage;
            match used.source {
                UsageSource::Report | UsageSource::History => sums.1 += used.said(),
                UsageSource::Wire => sums.2 += used.said(),
            }
        }
    }
    sums
}

fn ends(events: &[Recorded]) -> Vec<StopReason> {
    let ends = events.iter().filter_map(|recorded| match &recorded.event {
        Event::TurnEnded(ended) => Some(ended.stop_reason),
        _ => None,
    });
    ends.collect()
}

#[tokio::test]
async fn two_turns_and_a_tool_that_writes_a_file() {
    let Some(stage) = Stage::set("two_turns_and_a_tool_that_writes_a_file").await else { return };
    let path = stage.file("plan.md");
    let session = stage
        .begin(
            Approve::All,
            json!([
                {"reasoning": "I need a file.", "text": "I will write it.",
                 "write": {"path": path, "content": "# plan\n"},
                 "usage": {"input": 3011, "cached": 3000, "cache_write": 40, "output": 61}},
                {"text": "The plan is written.", "usage": {"input": 3112, "cached": 3100, "cache_write": 7, "output": 23}},
            ]),
        )
        .await;
    let view = stage.turns(session.id, 1).await;
    assert_eq!(view.last_completion.as_deref(), Some("The plan is written."), "{view:#?}");
    let context = view.context.unwrap();
    assert!(context.used >= 3_000 && context.percent().is_some(), "how full its context is: {context:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "# plan\n");
    stage.say(session.id, json!([{"text": "You are welcome.", "usage": {"input": 9, "output": 7}}])).await;
    let view = stage.turns(session.id, 2).await;
    assert_eq!(view.last_completion.as_deref(), Some("You are welcome."), "{view:#?}");
    let events = stage.events(session.id).await;
    let kinds = kinds(&events);
    for kind in [
        Kind::ProviderBound,
        Kind::AgentThinking,
        Kind::AgentToolCall,
        Kind::AgentToolResult,
        Kind::MessageAnswered,
    ] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    assert_eq!(ends(&events), [StopReason::Completed, StopReason::Completed]);
    let (counted, reported, on_the_wire) = used(&events);
    let sent = stage.model.sent();
    assert_eq!((counted, reported, on_the_wire), (sent, sent, sent));
    assert_eq!(view.usage, sent);
    // The key is outside; what the agent has is worth nothing.
    let seen = stage.model.seen();
    assert!(
        seen.iter()
            .filter(|seen| seen.path.ends_with("/messages"))
            .all(|seen| seen.headers["x-api-key"] == KEY)
    );
    stage.client.stop_session(&session.id.to_string(), false).await.unwrap();
    let ended = stage.home.ended(&session.id.to_string()).await;
    assert_eq!(ended.outcome, Some(Outcome::Stopped));
    wait::until("no process is left", wait::PATIENCE, || stage.home.session_processes(session.id).is_empty());
}

#[tokio::test]
async fn a_rule_answers_and_nobody_is_asked() {
    let Some(stage) = Stage::set("a_rule_answers_and_nobody_is_asked").await else { return };
    let rules = ["approve.rule+=deny run touch denied", "approve.rule+=allow run touch *"];
    stage.client.set_campaign("shop", rules.map(str::to_owned).to_vec()).await.unwrap();
    let steps = json!([
        {"shell": "touch allowed"},
        {"shell": "touch denied"},
        {"write": {"path": stage.file("plan.md"), "content": "in the campaign"}},
        {"text": "so be it"},
    ]);
    let session = stage.begin(Approve::Policy, steps).await;
    stage.turns(session.id, 1).await;
    let exist = ["allowed", "denied", "plan.md"].map(|name| stage.file(name).exists());
    assert_eq!(exist, [true, false, true]);
    let events = stage.events(session.id).await;
    let answered = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ApprovalAnswered(answered) => Some((answered.answer, answered.rules[0].number)),
        _ => None,
    });
    assert_eq!(
        answered.collect::<Vec<_>>(),
        [(Answer::Allowed, Some(2)), (Answer::Denied, Some(1)), (Answer::Allowed, None)]
    );
}

#[tokio::test]
async fn an_approval_is_allowed_and_another_denied() {
    let Some(stage) = Stage::set("an_approval_is_allowed_and_another_denied").await else { return };
    let steps = |name: &str| json!([{"shell": format!("touch {name}")}, {"text": "so be it"}]);
    let session = stage.begin(Approve::Ask, steps("allowed")).await;
    for (turn, allow, name) in [(1, true, "allowed"), (2, false, "denied")] {
        if turn == 2 {
            stage.say(session.id, steps(name)).await;
        }
        let asks = |view: &View| view.attention == Some(Attention::WaitingApproval);
        let view = stage.home.reaches(&session.id.to_string(), "a question", asks).await;
        assert!(!stage.file(name).exists());
        let answer = AnswerApproval {
            approval: view.approvals_open[0].to_string(),
            allow,
            always: false,
            message: if allow { String::new() } else { "not in this house".to_owned() },
        };
        stage.client.answer_approval(answer).await.unwrap();
        stage.turns(session.id, turn).await;
        assert_eq!(stage.file(name).exists(), allow, "{name}");
    }
    let events = stage.events(session.id).await;
    let results: Vec<_> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::AgentToolResult(result) => {
                Some((result.success, result.output.contains("not in this house")))
            }
            _ => None,
        })
        .collect();
    assert_eq!(results, [(true, false), (false, true)]);
    assert_eq!(used(&events).0, stage.model.sent());
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_not_the_session() {
    let Some(stage) = Stage::set("an_interrupt_ends_the_turn_and_not_the_session").await else { return };
    let session = stage.begin(Approve::All, json!([{"text": "one two three four", "hang": 4}])).await;
    wait::until("the answer hangs", wait::PATIENCE, || {
        stage.model.seen().iter().any(|seen| seen.path.ends_with("/messages"))
    });
    let works = |view: &View| view.attention == Some(Attention::Working);
    stage.home.reaches(&session.id.to_string(), "a turn", works).await;
    stage.client.interrupt_session(&session.id.to_string()).await.unwrap();
    stage.turns(session.id, 1).await;
    stage.say(session.id, json!([{"text": "still here"}])).await;
    let view = stage.turns(session.id, 2).await;
    assert_eq!(view.last_completion.as_deref(), Some("still here"));
    assert_eq!(ends(&stage.events(session.id).await), [StopReason::Interrupted, StopReason::Completed]);
}

#[tokio::test]
async fn a_daemon_killed_in_the_middle_of_a_turn_finds_its_agent_again() {
    let Some(stage) = Stage::set("a_daemon_killed_in_the_middle_of_a_turn_finds_its_agent_again").await
    else {
        return;
    };
    let session = stage
        .begin(
            Approve::All,
            json!([{"shell": "echo once >> log"}, {"text": "it went on without you", "hang": 3}]),
        )
        .await;
    wait::until("the tool ran", wait::PATIENCE, || stage.file("log").exists());
    wait::until("the second answer hangs", wait::PATIENCE, || {
        // The first one may not be over yet when its tool has run.
        let knows_result = |body: &serde_json::Value| body["messages"].to_string().contains("tool_result");
        stage.model.seen().iter().any(|seen| !seen.complete && knows_result(&seen.body))
    });
    stage.home.kill_daemon();
    // It ends its turn while nobody looks.
    let releasing = async {
        loop {
            // An answer that is just about to hang is let go by the next word.
            stage.model.release();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let view = tokio::select! {
        view = stage.turns(session.id, 1) => view,
        () = releasing => unreachable!("it never ends"),
    };
    assert_eq!(view.last_completion.as_deref(), Some("it went on without you"));
    let events = stage.events(session.id).await;
    assert_eq!(fs::read_to_string(stage.file("log")).unwrap(), "once\n");
    assert_eq!(ends(&events), [StopReason::Completed]);
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == Kind::AgentToolCall).count(), 1);
    assert_eq!(used(&events).0, stage.model.sent());
}

#[tokio::test]
async fn a_killed_agent_goes_on_with_what_it_remembers() {
    let Some(stage) = Stage::set("a_killed_agent_goes_on_with_what_it_remembers").await else { return };
    let mut wanted = CreateSession::new("shop", "claude-code");
    wanted.initial_message = Some(prompt(json!([{"text": "the word is heron"}])));
    wanted.approve = Approve::All;
    wanted.restart = RestartPolicy::OnFailure;
    let first = stage.client.create_session(wanted).await.unwrap();
    let view = stage.turns(first.id, 1).await;
    let id = view.provider_id.clone().unwrap();
    let agent = view.process.unwrap();
    ostler_testkit::Proc { pid: agent.pid, start_time: agent.start_time }.kill();
    let dead = stage.home.ended(&first.id.to_string()).await;
    assert_eq!(dead.outcome, Some(Outcome::Crashed), "{dead:#?}");
    let is_next = |view: &View| view.continues == Some(first.id) && view.phase == Phase::Live;
    let next = stage.home.reaches(view.name.as_str(), "the next session", is_next).await;
    stage.say(next.id, json!([{"text": "I remember"}])).await;
    let view = stage.turns(next.id, 1).await;
    assert_eq!((view.provider_id, view.last_completion.as_deref()), (Some(id), Some("I remember")));
    let last = stage.model.seen().pop().unwrap();
    assert!(last.body["messages"].to_string().contains("the word is heron"), "{:#}", last.body["messages"]);
    assert!(!kinds(&stage.events(next.id).await).contains(&Kind::ContextReset));
}

#[tokio::test]
async fn an_agent_killed_in_its_turn_is_told_so_and_goes_on_with_it() {
    let Some(stage) = Stage::set("an_agent_killed_in_its_turn_is_told_so_and_goes_on_with_it").await else {
        return;
    };
    let mut wanted = CreateSession::new("shop", "claude-code");
    wanted.initial_message = Some(prompt(json!([
        {"text": "the word is heron", "shell": "touch begun; sleep 6543"},
        {"text": "went on"},
    ])));
    wanted.approve = Approve::All;
    wanted.restart = RestartPolicy::OnFailure;
    let first = stage.client.create_session(wanted).await.unwrap();
    wait::until("the command to run", wait::PATIENCE, || stage.file("begun").exists());
    let view = stage.client.session(&first.id.to_string()).await.unwrap();
    let (id, agent) = (view.provider_id.clone().unwrap(), view.process.unwrap());
    ostler_testkit::Proc { pid: agent.pid, start_time: agent.start_time }.kill();
    stage.home.ended(&first.id.to_string()).await;
    let is_done = |view: &View| view.continues == Some(first.id) && view.last_completion.is_some();
    let next = stage.home.reaches(view.name.as_str(), "the turn gone on with", is_done).await;
    assert_eq!(next.provider_id, Some(id));
    let last = stage.model.seen().pop().unwrap().body["messages"].to_string();
    assert!(last.contains("You were interrupted in the middle of your work"), "{last}");
    assert!(last.contains("the word is heron"), "{last}");
    assert!(!kinds(&stage.events(next.id).await).contains(&Kind::ContextReset));
}

#[tokio::test]
async fn a_turn_about_what_was_left_running_answers_no_message() {
    let who = "a_turn_about_what_was_left_running_answers_no_message";
    let Some(stage) = Stage::set(who).await else { return };
    let mut wanted = CreateSession::new("shop", "claude-code");
    let left = json!({"command": "tail -f /dev/null", "description": "wait", "run_in_background": true});
    let steps = json!([{"tools": [{"name": "Bash", "arguments": left}]}, {"text": "It runs."}]);
    wanted.initial_message = Some(prompt(steps));
    wanted.approve = Approve::All;
    wanted.ends_with_turn = true;
    let first = stage.client.create_session(wanted).await.unwrap();
    let has_left_it = |view: &View| view.turns == 1 && view.last_completion.is_some();
    stage.home.reaches(&first.id.to_string(), "something left running", has_left_it).await;
    stage.client.stop_session(&first.id.to_string(), false).await.unwrap();
    stage.home.ended(&first.id.to_string()).await;
    let path = stage.file("plan.md");
    let steps = json!([{"write": {"path": path, "content": "# plan\n"}}, {"text": "The plan is written."}]);
    let next = stage.say(first.id, steps).await;
    let view = stage.home.ended(&next.id.to_string()).await;
    assert_eq!(
        (view.outcome, view.last_completion.as_deref()),
        (Some(Outcome::Done), Some("The plan is written."))
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "# plan\n");
    let kinds = kinds(&stage.events(next.id).await);
    let place = |kind: Kind| kinds.iter().rposition(|other| *other == kind);
    assert!(place(Kind::MessageAnswered) > place(Kind::AgentToolResult), "{kinds:?}");
}

#[tokio::test]
async fn an_agent_whose_record_is_gone_is_told_what_was_said() {
    let Some(stage) = Stage::set("an_agent_whose_record_is_gone_is_told_what_was_said").await else { return };
    let first = stage.begin(Approve::All, json!([{"text": "the word is heron"}])).await;
    stage.turns(first.id, 1).await;
    stage.client.stop_session(&first.id.to_string(), false).await.unwrap();
    let view = stage.home.ended(&first.id.to_string()).await;
    let records =
        stage.home.home.state().join("homes").join(view.conversation.to_string()).join(".claude/projects");
    fs::remove_dir_all(&records).unwrap();
    let next = stage.say(first.id, json!([{"text": "so I was told"}])).await;
    assert_ne!(next.id, first.id);
    let view = stage.turns(next.id, 1).await;
    assert_eq!(view.last_completion.as_deref(), Some("so I was told"), "{view:#?}");
    assert!(kinds(&stage.events(next.id).await).contains(&Kind::ContextReset));
    let last = stage.model.seen().pop().unwrap();
    assert!(
        last.body["messages"].to_string().contains("You said: the word is heron"),
        "{:#}",
        last.body["messages"]
    );
}

#[tokio::test]
async fn a_copy_whose_record_is_gone_is_told_what_came_before_it() {
    let Some(stage) = Stage::set("a_copy_whose_record_is_gone_is_told_what_came_before_it").await else {
        return;
    };
    let origin = stage.begin(Approve::All, json!([{"text": "the word is heron"}])).await;
    stage.turns(origin.id, 1).await;
    let copy = stage.client.fork_session(&origin.id.to_string(), None, None).await.unwrap();
    stage.say(copy.id, json!([{"text": "the other word is crane"}])).await;
    stage.turns(copy.id, 1).await;
    stage.say(origin.id, json!([{"text": "only here it is ibis"}])).await;
    stage.turns(origin.id, 2).await;
    stage.client.stop_session(&copy.id.to_string(), false).await.unwrap();
    let view = stage.home.ended(&copy.id.to_string()).await;
    let conversation = view.conversation.to_string();
    fs::remove_dir_all(stage.home.home.state().join("homes").join(&conversation).join(".claude/projects"))
        .unwrap();
    let next = stage.say(copy.id, json!([{"text": "so I was told"}])).await;
    stage.turns(next.id, 1).await;
    let knows = |text: &str| {
        assert!(text.contains("You said: the word is heron"), "{text}");
        assert!(text.contains("You said: the other word is crane"), "{text}");
        assert!(!text.contains("ibis"), "{text}");
    };
    knows(&stage.model.seen().pop().unwrap().body["messages"].to_string());
    // Another provider goes on with it, and is told the same.
    stage.client.stop_session(&next.id.to_string(), false).await.unwrap();
    stage.home.ended(&next.id.to_string()).await;
    stage.client.set_conversation(&conversation, vec!["provider=script".to_owned()]).await.unwrap();
    let message =
        SendMessage { who: next.id.to_string(), text: "go on".to_owned(), ..SendMessage::default() };
    let other = stage.client.send_message(message).await.unwrap().sent().unwrap().session;
    assert_eq!(other.provider, "script");
    stage.turns(other.id, 1).await;
    let tape = stage.home.home.state().join("sessions").join(other.id.to_string());
    let files = fs::read_dir(tape).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let bytes: Vec<u8> = files.filter_map(|path| fs::read(path).ok()).flatten().collect();
    knows(&String::from_utf8_lossy(&bytes));
}

#[tokio::test]
async fn a_429_is_a_limit_and_a_500_is_tried_again() {
    let Some(stage) = Stage::set("a_429_is_a_limit_and_a_500_is_tried_again").await else { return };
    let limited =
        json!([{"status": 429, "headers": {"retry-after": "1"}, "times": 1, "text": "after the limit"}]);
    let session = stage.begin(Approve::All, limited).await;
    let view = stage.turns(session.id, 1).await;
    assert_eq!(view.last_completion.as_deref(), Some("after the limit"), "{view:#?}");
    stage.say(session.id, json!([{"status": 500, "times": 1, "text": "after the failure"}])).await;
    let view = stage.turns(session.id, 2).await;
    assert_eq!(view.last_completion.as_deref(), Some("after the failure"));
    let events = stage.events(session.id).await;
    let kinds = kinds(&events);
    assert!(kinds.contains(&Kind::RateLimited) && kinds.contains(&Kind::AgentRetrying), "{kinds:?}");
    let until = events.iter().find_map(|recorded| match &recorded.event {
        Event::RateLimited(limited) => limited.until,
        _ => None,
    });
    assert!(until.is_some(), "the server said when it ends");
    assert_eq!(used(&events).0, stage.model.sent());
}

#[tokio::test]
async fn a_refused_key_fails_at_once_with_its_reason() {
    let Some(stage) = Stage::set("a_refused_key_fails_at_once_with_its_reason").await else { return };
    let began = std::time::Instant::now();
    let session = stage.begin(Approve::All, json!([{"status": 401}])).await;
    let view = stage.home.ended(&session.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::TurnFailed), "{view:#?}");
    assert!(view.evidence.contains("401"), "{}", view.evidence);
    assert!(began.elapsed() < Duration::from_secs(45), "Claude Code itself would try for minutes");
    assert!(kinds(&stage.events(session.id).await).contains(&Kind::ProviderAuthFailed));
}

#[tokio::test]
async fn a_fork_goes_its_own_way_and_the_origin_hears_nothing_of_it() {
    let who = "a_fork_goes_its_own_way_and_the_origin_hears_nothing_of_it";
    let Some(stage) = Stage::set(who).await else { return };
    let session = stage.begin(Approve::All, json!([{"text": "The word is heron."}])).await;
    let origin = stage.turns(session.id, 1).await;
    let fork = stage.client.fork_session(&session.id.to_string(), None, None).await.unwrap();
    assert_eq!(fork.name.as_str(), format!("{}-2", origin.name));
    stage.say(fork.id, json!([{"text": "The fork says crane.", "usage": {"input": 30, "output": 3}}])).await;
    let forked = stage.turns(fork.id, 1).await;
    assert_ne!(forked.provider_id, origin.provider_id);
    let last = || stage.model.seen().last().unwrap().body.to_string();
    assert!(last().contains("The word is heron."), "the fork knows what was said");
    stage
        .say(session.id, json!([{"text": "The origin says stork.", "usage": {"input": 40, "output": 4}}]))
        .await;
    let origin = stage.turns(session.id, 2).await;
    assert!(last().contains("The word is heron.") && !last().contains("crane"), "the origin has not heard");
    assert_eq!(origin.usage + forked.usage, stage.model.sent());
    assert!(!kinds(&stage.events(fork.id).await).contains(&Kind::ContextReset));
}

#[tokio::test]
async fn another_model_is_called_from_the_next_turn_on_and_who_asked_is_recorded() {
    let who = "another_model_is_called_from_the_next_turn_on_and_who_asked_is_recorded";
    let Some(stage) = Stage::set(who).await else { return };
    let session = stage.begin(Approve::All, json!([{"text": "First."}])).await;
    stage.turns(session.id, 1).await;
    let changed = stage.home.run(&["model", &session.id.to_string(), "claude-opus-5"]);
    assert!(changed.status.success(), "{changed:?}");
    stage.say(session.id, json!([{"text": "Second."}])).await;
    let view = stage.turns(session.id, 2).await;
    assert_eq!(view.model.as_deref(), Some("claude-opus-5"));
    assert_eq!(stage.model.seen().last().unwrap().body["model"], "claude-opus-5");
    let events = stage.events(session.id).await;
    let by = events.iter().find_map(|recorded| match &recorded.event {
        Event::ModelChanged(changed) => Some(changed.by.0.clone()),
        _ => None,
    });
    assert!(by.is_some_and(|by| !by.is_empty()));
}
