//! What every agent is put through.

use std::{process::Stdio, time::Duration};

use ostler_domain::{
    Event, Recorded,
    event::{Answer, By, StopReason, UsageRecorded, UsageSource},
    session::{Approve, Attention, Outcome, RestartPolicy},
};
use ostler_testkit::{numbers, wait};
use serde_json::json;

use super::stage::{Agent, KEY, Stage, completions, results, said, script};

/// Two turns, a tool that writes a file, and tokens that add up on both sides.
pub(super) async fn two_turns(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(Approve::All, &json!([
            {"text": "Let me look.", "shell": "echo hi > hello.txt && cat hello.txt && ostler note written", "usage": {"input": 1000, "cached": 400, "output": 50}},
            {"text": "All done.", "usage": {"input": 1200, "cached": 1000, "output": 20}},
        ]))
        .await;
    stage.turns(session, 1).await;
    stage
        .say(session, &json!([{"text": "And again.", "usage": {"input": 1300, "cached": 1200, "output": 7}}]))
        .await;
    let view = stage.turns(session, 2).await;
    assert_eq!(stage.file("hello.txt").as_deref(), Some("hi\n"));
    let events = stage.events(session).await;
    numbers::assert_gapless(&events, "the session");
    assert_eq!(completions(&events), ["All done.", "And again."]);
    let results = results(&events);
    assert!(results.len() == 1 && results[0].success, "{results:?}");
    if stage.agent.shows_output {
        assert!(results[0].output.contains("hi"), "{results:?}");
    }
    let noted = events
        .iter()
        .any(|recorded| matches!(&recorded.event, Event::AgentStatus(said) if said.text == "written"));
    assert!(noted, "its tools speak to Ostler: {results:?}");
    let sent = stage.model.sent();
    assert_eq!(view.usage, sent, "what is shown is what the server sent");
    assert_eq!(said(&events, UsageSource::Wire), sent);
    if stage.agent.reports_all {
        assert_eq!(said(&events, UsageSource::Report), sent);
    }
    let context = view.context.map(|context| context.used);
    assert!(
        stage.agent.says_context == context.is_some_and(|used| (1_000..=1_400).contains(&used)),
        "how full the context is: {context:?}"
    );
    // The key is the gateway's alone.
    let (header, shown) = match stage.agent.provider {
        "acp:gemini" => ("x-goog-api-key", KEY.to_owned()),
        _ => ("authorization", format!("Bearer {KEY}")),
    };
    assert!(stage.model.seen().iter().all(|seen| seen.headers[header] == shown));
    for process in stage.home.session_processes(session) {
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains(KEY));
    }
    stage.client().await.stop_session(&session.to_string(), false).await.unwrap();
    assert_eq!(stage.home.ended(&session.to_string()).await.outcome, Some(Outcome::Stopped));
    wait::until("nothing to be left of it", wait::PATIENCE, || {
        stage.home.session_processes(session).is_empty()
    });
}

/// A question allowed and one denied.
pub(super) async fn approvals(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session =
        stage.begin(Approve::Ask, &json!([{"shell": "touch allowed.txt"}, {"text": "First."}])).await;
    stage.answer(session, true).await;
    stage.turns(session, 1).await;
    assert!(stage.file("allowed.txt").is_some());
    stage.say(session, &json!([{"shell": "touch denied.txt"}, {"text": "Second."}])).await;
    stage.answer(session, false).await;
    // Whose protocol has no room for the reason is told it in a turn of its own.
    let is_told_later = stage.agent.provider.starts_with("acp:");
    stage.turns(session, if is_told_later { 3 } else { 2 }).await;
    assert!(stage.file("denied.txt").is_none());
    let heard = stage.model.seen().iter().any(|seen| seen.body.to_string().contains("not this"));
    assert!(heard, "the model reads why");
    let successes: Vec<bool> =
        results(&stage.events(session).await).iter().map(|result| result.success).collect();
    assert_eq!(successes, [true, false]);
}

/// An answer is cut and asked for again. What is estimated of it is no part of what other calls took.
pub(super) async fn cut_answers(agent: Agent) {
    let stage = Stage::new(agent).await;
    let long = "w".repeat(9_000);
    let cut = json!([{
        "text": long, "chunks": 400, "usage": {"input": 700, "output": 2_250},
        "cut": 300, "cut_closed": true, "times": 1
    }]);
    let session = stage.begin(Approve::All, &cut).await;
    stage.turns(session, 1).await;
    stage.say(session, &json!([{"text": "z", "usage": {"input": 800, "output": 5_000}}])).await;
    let view = stage.turns(session, 2).await;
    let used: Vec<_> = stage
        .events(session)
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::UsageRecorded(used) => Some(used),
            _ => None,
        })
        .collect();
    let whole: Vec<_> = used.iter().filter(|used| used.source == UsageSource::Wire && !used.cut).collect();
    let outputs: Vec<u64> = whole.iter().map(|used| used.said().output).collect();
    assert_eq!(outputs, [2_250, 5_000], "{used:#?}");
    let counted: u64 = used.iter().map(|used| used.usage.output).sum();
    assert_eq!(counted, view.usage.output);
    let estimated = counted - 7_250;
    assert!((500..=2_250).contains(&estimated), "a part of nine thousand letters: {estimated}, {used:#?}");
}

/// The same of a server that gives all its answers one name, as small ones do: also what was interrupted is counted.
pub(super) async fn cut_answers_of_one_name(agent: Agent) {
    let stage = Stage::new(agent).await;
    let long = "w".repeat(9_000);
    let whole = |text: &str, output: u64| json!([{"id": "one", "text": text, "usage": {"input": 700, "output": output}}]);
    let cut = json!([{
        "id": "one", "text": long, "chunks": 400, "usage": {"input": 700, "output": 2_250},
        "cut": 300, "cut_closed": true, "times": 1
    }]);
    let session = stage.begin(Approve::All, &cut).await;
    stage.turns(session, 1).await;
    stage.say(session, &whole("z", 5_000)).await;
    stage.turns(session, 2).await;
    stage.say(session, &json!([{"id": "one", "text": long, "chunks": 400, "hang": 300}])).await;
    wait::until("the third answer to begin", wait::PATIENCE, || stage.model.seen().len() == 4);
    stage.client().await.interrupt_session(&session.to_string()).await.unwrap();
    stage.turns(session, 3).await;
    stage.say(session, &whole("y", 6_000)).await;
    let is_last = |used: &UsageRecorded| used.source == UsageSource::Wire && used.said().output == 6_000;
    stage
        .sees(session, "the wire", |event| matches!(event, Event::UsageRecorded(used) if is_last(used)))
        .await;
    let view = stage.turns(session, 4).await;
    let events = stage.events(session).await;
    let is_cut = |recorded: &&Recorded| matches!(&recorded.event, Event::UsageRecorded(used) if used.cut);
    // What was interrupted may not have begun.
    assert!((1..=2).contains(&events.iter().filter(is_cut).count()), "{events:#?}");
    assert_eq!(said(&events, UsageSource::Wire).output, 2_250 + 5_000 + 6_000);
    assert_eq!(view.usage, said(&events, UsageSource::Report), "it tells of each call: {view:#?}");
}

/// A rule of the campaign answers, and nobody is asked.
pub(super) async fn rules(agent: Agent) {
    let stage = Stage::new(agent).await;
    let rules = ["approve.rule+=deny run touch denied.txt", "approve.rule+=allow run touch *"];
    let client = stage.client().await;
    client.set_campaign("shop", rules.map(str::to_owned).to_vec()).await.unwrap();
    let session = stage
        .begin(
            Approve::Policy,
            &json!([{"shell": "touch allowed.txt"}, {"shell": "touch denied.txt"}, {"text": "Done."}]),
        )
        .await;
    stage.turns(session, 1).await;
    assert!(stage.file("allowed.txt").is_some());
    assert!(stage.file("denied.txt").is_none());
    let events = stage.events(session).await;
    let answered = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ApprovalAnswered(answered) => Some((answered.answer, answered.rules[0].number)),
        _ => None,
    });
    assert_eq!(answered.collect::<Vec<_>>(), [(Answer::Allowed, Some(2)), (Answer::Denied, Some(1))]);
}

/// A rule is about a command line: where an agent shows only a title of what it would run, a person is asked.
pub(super) async fn rules_do_not_guess(agent: Agent) {
    let stage = Stage::new(agent).await;
    let client = stage.client().await;
    client.set_campaign("shop", vec!["approve.rule+=allow run touch *".to_owned()]).await.unwrap();
    let session =
        stage.begin(Approve::Policy, &json!([{"shell": "touch asked.txt"}, {"text": "Done."}])).await;
    stage.answer(session, true).await;
    stage.turns(session, 1).await;
    assert!(stage.file("asked.txt").is_some());
    let by = stage.events(session).await.into_iter().find_map(|recorded| match recorded.event {
        Event::ApprovalAnswered(answered) => Some(answered.rules.len()),
        _ => None,
    });
    assert_eq!(by, Some(0), "no rule answered");
}

/// An interrupt ends the command that runs, and the agent goes on with the next prompt.
pub(super) async fn interrupt(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(Approve::All, &json!([{"shell": "echo started > started.txt; sleep 600"}, {"text": "never"}]))
        .await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("started.txt").is_some());
    // The command may run before the agent says that it does.
    stage.sees(session, "the call", |event| matches!(event, Event::AgentToolCall(_))).await;
    let before = stage.home.session_processes(session).len();
    stage.client().await.interrupt_session(&session.to_string()).await.unwrap();
    stage.turns(session, 1).await;
    wait::until("the command to be gone", wait::PATIENCE, || {
        stage.home.session_processes(session).len() < before
    });
    stage.say(session, &json!([{"text": "Here I am."}])).await;
    stage.turns(session, 2).await;
    let events = stage.events(session).await;
    let ends: Vec<_> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::TurnEnded(ended) => Some(ended.stop_reason),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [StopReason::Interrupted, StopReason::Completed]);
    assert_eq!(completions(&events), ["Here I am."]);
    // Some agents call what was interrupted a success.
    assert_eq!(results(&events).len(), 1, "every call has one result");
}

/// The daemon dies in mid-turn; the next one finds the agent at work, and nothing is missing or doubled.
pub(super) async fn daemon_dies(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(Approve::All, &json!([
            {"text": "Wait.", "shell": "echo 1 > one.txt; while [ ! -e go ]; do sleep 0.05; done; echo 2 > two.txt", "usage": {"input": 100, "output": 5}},
            {"text": "Through.", "usage": {"input": 200, "output": 6}},
        ]))
        .await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("one.txt").is_some());
    let agent = stage.process(session).expect("the agent's process");
    stage.home.kill_daemon();
    std::fs::write(stage.home.campaign_dir().join("go"), "").unwrap();
    wait::until("the agent to go on alone", Duration::from_secs(60), || stage.file("two.txt").is_some());
    let view = stage.turns(session, 1).await;
    assert!(agent.is_alive(), "it is the same process");
    let events = stage.events(session).await;
    numbers::assert_gapless(&events, "the session");
    assert_eq!(completions(&events), ["Through."]);
    assert_eq!(results(&events).len(), 1);
    assert_eq!(view.usage, stage.model.sent());
}

/// The agent is killed; what it is told next goes on with what it knew.
pub(super) async fn agent_dies(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "The word is heron."}])).await;
    stage.turns(session, 1).await;
    // Some agents write down what was said a moment after they have said it.
    wait::until("the agent to have written it down", Duration::from_secs(60), || {
        stage.remembers("The word is heron.")
    });
    stage.process(session).expect("the agent's process").kill();
    let view = stage.home.ended(&session.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Crashed), "{view:#?}");
    let before = stage.model.seen().len();
    let next = stage.say(session, &json!([{"text": "Still heron."}])).await;
    assert_eq!(next.continues, Some(session));
    stage.turns(next.id, 1).await;
    let events = stage.events(next.id).await;
    assert_eq!(completions(&events), ["Still heron."]);
    let lost = events.iter().find_map(|recorded| match &recorded.event {
        Event::ContextReset(reset) => Some(reset.why.clone()),
        _ => None,
    });
    if stage.agent.finds_itself {
        assert_eq!(lost, None, "it did not lose its memory");
    }
    // Some ask a second time, for a title or a summary.
    let asked: Vec<String> =
        stage.model.seen()[before..].iter().map(|request| request.body.to_string()).collect();
    let is_told = asked.iter().any(|body| body.contains("The word is heron."));
    assert!(is_told, "the model is told what was said before: {lost:?}: {asked:#?}");
}

/// The agent is killed within its turn: a new one has its memory, is told that it was interrupted, and whoever waits for
/// the turn has its end.
pub(super) async fn agent_dies_in_a_turn(agent: Agent) {
    let stage = Stage::new(agent).await;
    let prompt = script(&json!([
        {"text": "The word is heron.", "shell": "touch begun; sleep 6543"},
        {"text": "never said"},
    ]));
    agent_dies_while_waited_for(stage, prompt, false).await;
}

/// The same for one that may not have written down a turn that was not over: whether it remembers it or is told by us what
/// had been said, it is told to go on.
pub(super) async fn agent_dies_in_a_turn_and_may_forget(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps =
        json!([{"text": "The word is heron.", "shell": "touch begun; sleep 6543"}, {"text": "never said"}]);
    let session =
        stage.begin_with(Approve::All, &steps, |wanted| wanted.restart = RestartPolicy::OnFailure).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    let before = stage.model.seen().len();
    stage.process(session).expect("the agent's process").kill();
    assert_eq!(stage.ended(session).await.outcome, Some(Outcome::Crashed));
    let told = |body: &str| body.contains("go on where you were stopped");
    wait::until("the next one to be told", Duration::from_secs(120), || {
        stage.model.seen()[before..].iter().any(|seen| told(&seen.body.to_string()))
    });
    let chain = stage.client().await.chain(&session.to_string()).await.unwrap();
    assert_eq!((chain.len(), chain[1].continues), (2, Some(session)), "{chain:#?}");
    let asked =
        stage.model.seen().iter().rev().find(|seen| told(&seen.body.to_string())).unwrap().body.to_string();
    assert!(asked.contains("The word is heron."), "it knows what was said: {asked}");
    stage.client().await.stop_session(&chain[1].id.to_string(), true).await.unwrap();
    stage.ended(chain[1].id).await;
}

/// The agent is killed when its turn has ended and a command of it runs on: that is work that was interrupted, too.
pub(super) async fn agent_dies_beside_its_turn(agent: Agent) {
    let stage = Stage::new(agent).await;
    let prompt = script(&json!([
        {"text": "The word is heron.", "shell": "touch begun; sleep 6543"},
        {"text": "It runs on."},
    ]));
    agent_dies_while_waited_for(stage, prompt, true).await;
}

async fn agent_dies_while_waited_for(stage: Stage, prompt: String, after_its_turn: bool) {
    let model = stage.agent.model.map(|model| ["-m", model]);
    let settings: Vec<String> =
        stage.agent.settings.iter().map(|(key, value)| format!("--config={key}={value}")).collect();
    let mut args = vec!["run", "-p", stage.agent.provider, "--name", "doomed", "--approve", "all"];
    args.extend(["--restart", "on-failure"]);
    args.extend(model.into_iter().flatten());
    args.extend(settings.iter().map(String::as_str));
    args.push(&prompt);
    let waiting = stage.home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    let first = stage.client().await.session("doomed").await.unwrap();
    if after_its_turn {
        stage.sees(first.id, "its turn to end", |event| matches!(event, Event::TurnEnded(_))).await;
        stage
            .sees(first.id, "a command beside it", |event| matches!(event, Event::BackgroundChanged(_)))
            .await;
    }
    stage.process(first.id).expect("the agent's process").kill();
    let ended = tokio::task::spawn_blocking(|| waiting.wait_with_output()).await.unwrap().unwrap();
    let (answer, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    assert!(answer.contains("You were interrupted in the middle of your work"), "{answer}\n{said}");
    assert!(said.contains("It goes on in session"), "{said}");
    let chain = stage.client().await.chain("doomed").await.unwrap();
    assert_eq!((chain.len(), chain[0].outcome), (2, Some(Outcome::Crashed)), "{chain:#?}");
    assert_eq!((chain[1].continues, chain[1].outcome), (Some(first.id), Some(Outcome::Done)));
    let asked = stage.model.seen().last().unwrap().body.to_string();
    assert!(asked.contains("The word is heron."), "it has its memory: {asked}");
}

/// A server that wants patience, and one that fails: both are waited out, and told.
pub(super) async fn failures(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(Approve::All, &json!([{"status": 429, "headers": {"retry-after": "1"}, "times": 1, "text": "after 429", "usage": {"input": 10, "output": 1}}]))
        .await;
    stage.turns(session, 1).await;
    stage
        .say(
            session,
            &json!([{"status": 500, "times": 1, "text": "after 500", "usage": {"input": 20, "output": 2}}]),
        )
        .await;
    let view = stage.turns(session, 2).await;
    let events = stage.events(session).await;
    assert_eq!(completions(&events), ["after 429", "after 500"]);
    assert_eq!(view.usage, stage.model.sent());
    assert_eq!(view.attention, Some(Attention::Idle));
    let statuses: Vec<u16> =
        stage.model.seen().iter().map(|seen| seen.status).filter(|status| *status != 200).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 500).count(), 1);
}

/// A key that is not accepted ends the session at once, with the reason.
pub(super) async fn wrong_key(agent: Agent) {
    let stage = Stage::new(agent).await;
    let refusal = json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}});
    let session = stage.begin(Approve::All, &json!([{"status": 401, "body": refusal}])).await;
    let view = stage.home.ended(&session.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::TurnFailed));
    let events = stage.events(session).await;
    let told = events.iter().any(
        |recorded| matches!(&recorded.event, Event::ProviderAuthFailed(text) if text.text.contains("401")),
    );
    assert!(told, "{view:#?}");
}

/// A fork knows what its origin knew, and neither hears of the other.
pub(super) async fn fork(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "The word is heron."}])).await;
    let origin = stage.turns(session, 1).await;
    wait::until("the agent to have written it down", Duration::from_secs(60), || {
        stage.remembers("The word is heron.")
    });
    let name = "other".parse().unwrap();
    let fork = stage.client().await.fork_session(&session.to_string(), Some(&name), None).await.unwrap();
    assert_ne!(fork.conversation, origin.conversation);
    assert_eq!((fork.name.as_str(), fork.continues, fork.chain), ("other", None, fork.id));
    // Both live and both go on, each its own way.
    stage.say(fork.id, &json!([{"text": "The fork says crane."}])).await;
    let forked = stage.turns(fork.id, 1).await;
    assert_ne!(forked.provider_id, origin.provider_id);
    let asked = stage.model.seen().last().unwrap().body.to_string();
    assert!(asked.contains("The word is heron."), "the fork knows what was said");
    stage.say(session, &json!([{"text": "The origin says stork."}])).await;
    let origin = stage.turns(session, 2).await;
    let asked = stage.model.seen().last().unwrap().body.to_string();
    assert!(asked.contains("The word is heron.") && !asked.contains("crane"), "the origin has not heard");
    let events = stage.events(fork.id).await;
    assert_eq!(completions(&events), ["The fork says crane."]);
    assert!(!events.iter().any(|recorded| matches!(recorded.event, Event::ContextReset(_))));
    // What a fork used is its own alone.
    assert_eq!(origin.usage + forked.usage, stage.model.sent());
}

/// Another model: at once where the agent can, else from the next session on, and said so.
pub(super) async fn model_change(agent: Agent, while_it_lives: bool) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "First."}])).await;
    stage.turns(session, 1).await;
    let who = session.to_string();
    let (_, now) = stage.client().await.set_model(&who, "another-model").await.unwrap();
    assert_eq!(now, while_it_lives);
    stage.say(session, &json!([{"text": "Second."}])).await;
    let view = stage.turns(session, 2).await;
    let asked = || stage.model.seen().last().unwrap().body["model"].as_str().unwrap_or_default().to_owned();
    assert_eq!(asked() == "another-model", while_it_lives, "{}", asked());
    assert_eq!(view.model.as_deref() == Some("another-model"), while_it_lives, "{view:#?}");
    let changed = stage.events(session).await.into_iter().find_map(|recorded| match recorded.event {
        Event::ModelChanged(changed) => Some(changed),
        _ => None,
    });
    let changed = changed.expect("it is recorded");
    assert!(!changed.by.0.is_empty() && changed.by != By::ostler(), "{changed:?}");
    assert_eq!(changed.at_next_session, !while_it_lives);
    // The next session begins with it, and a restart can name one too.
    let next = stage.client().await.restart_session(&who).await.unwrap();
    stage.say(next.id, &json!([{"text": "Third."}])).await;
    stage.turns(next.id, 1).await;
    assert_eq!(asked(), "another-model");
    let last =
        stage.client().await.restart_with_model(&next.id.to_string(), Some("third-model")).await.unwrap();
    stage.say(last.id, &json!([{"text": "Fourth."}])).await;
    stage.turns(last.id, 1).await;
    assert_eq!(asked(), "third-model");
}

/// What the agent reports and what the wire saw are compared as one model's.
pub(super) async fn audit(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(
            Approve::All,
            &json!([{"text": "Done.", "usage": {"input": 1000, "cached": 400, "output": 50}}]),
        )
        .await;
    stage.turns(session, 1).await;
    let output = stage.home.run(&["usage", "audit", &session.to_string(), "-o", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let models = said["sessions"][0]["models"].as_array().unwrap();
    assert_eq!(models.len(), 1, "{said}");
    assert_eq!(models[0]["model"], "fake-model", "{said}");
}
