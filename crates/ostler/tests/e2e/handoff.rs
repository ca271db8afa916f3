//! Work that goes from one session to the next: asked for by people and by agents, also while no daemon runs.

use ostler_client::{AddTicket, Client, CreateSession, SendMessage};
use ostler_domain::{
    Event, Policy, Reason, Recorded, Secret,
    event::Answer,
    handoff::{Pack, Wish},
    session::{Attention, Outcome, RestartPolicy, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use crate::OSTLER;

fn wanted(steps: Vec<serde_json::Value>) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(steps));
    wanted
}

async fn pack_of(home: &TestHome, view: &View) -> Pack {
    let events = home.events(&home.client().await, view.id).await;
    let pack = events.into_iter().find_map(|recorded| match recorded.event {
        Event::HandoffPacked(pack) => Some(*pack),
        _ => None,
    });
    pack.expect("the session was handed something")
}

async fn idle(home: &TestHome, view: &View) {
    let is_idle = |view: &View| view.turns == 1 && view.attention == Some(Attention::Idle);
    home.reaches(&view.id.to_string(), "its turn to end", is_idle).await;
}

#[tokio::test]
async fn a_person_hands_work_on() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = vec![json!({"run": ["sh", "-c", "make test || true"]}), scenario::say("half of it works")];
    let first = client.create_session(wanted(steps)).await.unwrap();
    idle(&home, &first).await;
    let wish = Wish { note: "mind the cache".into(), open: vec!["the docs".into()], ..Wish::default() };
    let child = client.hand_off(&first.id.to_string(), "", wish).await.unwrap();
    let parent = home.ended(&first.id.to_string()).await;
    assert_eq!(parent.outcome, Some(Outcome::Handoff));
    assert_eq!((child.continues, child.chain), (Some(first.id), first.chain));
    assert_eq!((child.conversation, child.name.clone()), (first.conversation, first.name.clone()));
    let pack = pack_of(&home, &child).await;
    assert_eq!(pack.from, first.id);
    assert_eq!(pack.known.last_turns.last().unwrap().answered, "half of it works");
    assert_eq!(pack.wish.note, "mind the cache");
    // The child is told first what it has.
    let events = home.events(&client, child.id).await;
    let told = events.iter().find_map(|recorded| match &recorded.event {
        Event::MessageAccepted(accepted) => Some(accepted.message.text.clone()),
        _ => None,
    });
    let told = told.unwrap();
    for part in ["mind the cache", "- the docs", "half of it works"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // What was handed on once is gone on with by one.
    let again = client.hand_off(&first.id.to_string(), "", Wish::default()).await.unwrap_err();
    assert_eq!(again.to_refusal().reason, Reason::WrongState);
}

async fn successor(client: &Client, first: &View) -> View {
    let child = async {
        loop {
            let chain = client.chain(&first.id.to_string()).await.unwrap();
            if let [_, child, ..] = chain.as_slice() {
                return child.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(wait::PATIENCE, child).await.expect("nobody went on")
}

#[tokio::test]
async fn an_agent_hands_on_also_while_no_daemon_runs() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let say = ["ostler", "handoff", "-m", "out of context", "--done", "the parser", "--decided", "no cache"];
    let steps = vec![
        json!({"run": ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]}),
        json!({"run": say}),
        json!({"run": ["touch", "handed"]}),
        json!({"run": ["sh", "-c", "while [ ! -e end ]; do sleep 0.05; done"]}),
        scenario::say("done with it"),
    ];
    let first = client.create_session(wanted(steps)).await.unwrap();
    home.reaches(&first.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    // What is said to it meanwhile is for whoever has the work then.
    let text = scenario::of(vec![scenario::say("heard")]);
    let message = SendMessage { who: first.id.to_string(), text: text.clone(), ..SendMessage::default() };
    let message = client.send_message(message).await.unwrap().sent().unwrap().message;
    home.kill_daemon();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("the agent to have said it", wait::PATIENCE, || home.campaign_dir().join("handed").exists());
    std::fs::write(home.campaign_dir().join("end"), "").unwrap();
    let client = home.start().await;
    let parent = home.ended(&first.id.to_string()).await;
    assert_eq!(parent.outcome, Some(Outcome::Handoff));
    let sentence = parent.obituary.as_ref().unwrap().sentence.clone();
    assert!(sentence.contains("asked by its own agent"), "{sentence}");
    let child = successor(&client, &first).await;
    let pack = pack_of(&home, &child).await;
    assert_eq!(
        (pack.wish.done.as_slice(), pack.wish.decided.as_slice()),
        (&["the parser".to_owned()][..], &["no cache".to_owned()][..])
    );
    let heard = |view: &View| view.last_completion.as_deref() == Some("heard");
    home.reaches(&child.id.to_string(), "what waited to be heard", heard).await;
    assert_eq!(client.message(&message.to_string()).await.unwrap().session, child.id);
}

#[tokio::test]
async fn nothing_is_handed_on_of_work_that_is_over() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let ticket =
        AddTicket { campaign: "shop".to_owned(), intent: "Fix it".to_owned(), ..AddTicket::default() };
    let ticket = client.add_ticket(ticket).await.unwrap().0.id.to_string();
    let waits =
        |file: &str| json!({"run": ["sh", "-c", format!("while [ ! -e {file} ]; do sleep 0.05; done")]});
    let hand_on = json!({"run": ["sh", "-c", "ostler handoff -m 'go on' 2>&1"]});
    let with_ticket = |steps| CreateSession { ticket: Some(ticket.clone()), ..wanted(steps) };
    // It asks, and its ticket is closed before it ends.
    let steps = vec![hand_on.clone(), json!({"run": ["touch", "asked"]}), waits("end")];
    let asked = client.create_session(with_ticket(steps)).await.unwrap();
    // Its ticket is closed before it asks.
    let late = client.create_session(with_ticket(vec![waits("go"), hand_on])).await.unwrap();
    wait::until("the first to have asked", wait::PATIENCE, || home.campaign_dir().join("asked").exists());
    let closed = home.run(&["ticket", "done", &ticket]);
    assert!(closed.status.success(), "{closed:?}");
    std::fs::write(home.campaign_dir().join("end"), "").unwrap();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    let view = home.ended(&asked.id.to_string()).await;
    let sentence = view.obituary.as_ref().unwrap().sentence.clone();
    assert!(sentence.contains("Nobody goes on with it"), "{sentence}");
    assert_eq!(view.restart, None);
    let is_idle = |view: &View| view.turns == 1 && view.attention == Some(Attention::Idle);
    home.reaches(&late.id.to_string(), "its turn to end", is_idle).await;
    let events = home.events(&client, late.id).await;
    let told = events.iter().any(|recorded| {
        matches!(&recorded.event, Event::AgentToolResult(result) if result.output.contains("TICKET_CLOSED"))
    });
    assert!(told, "{events:#?}");
}

#[tokio::test]
async fn work_goes_to_another_agent_and_stays_one_chain() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"reviewer".parse().unwrap(), vec!["role=reviewer".into()]).await.unwrap();
    let first = client.create_session(wanted(vec![scenario::say("built")])).await.unwrap();
    idle(&home, &first).await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let unknown = client.hand_off(&first.id.to_string(), "agent:nobody", Wish::default()).await.unwrap_err();
    assert_eq!(unknown.to_refusal().reason, Reason::AgentUnknown);
    let child = client.hand_off(&first.id.to_string(), "reviewer", Wish::default()).await.unwrap();
    assert_eq!(child.agent.as_ref().unwrap().name.as_str(), "reviewer");
    assert_eq!((child.chain, child.continues), (first.chain, Some(first.id)));
    assert_ne!(child.conversation, first.conversation);
    let output = home.run(&["chain", "show", &first.id.to_string(), "--json"]);
    let chain: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(chain["sessions"].as_array().unwrap().len(), 2);
    let output = home.run(&["seance", &child.id.to_string(), "what was built?", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let texts: Vec<_> =
        answer["citations"].as_array().unwrap().iter().map(|cited| cited["text"].as_str().unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("built")), "{texts:?}");
}

#[tokio::test]
async fn an_agent_hands_its_work_only_to_those_it_may_speak_to() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"reviewer".parse().unwrap(), vec![]).await.unwrap();
    let hands_on =
        || wanted(vec![json!({"run": ["ostler", "handoff", "--to", "agent:reviewer", "-m", "look"]})]);
    let first = client.create_session(hands_on()).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let child = successor(&client, &first).await;
    assert!(child.agent.is_none() && child.conversation == first.conversation, "{child:?}");
    let note = pack_of(&home, &child).await.wish.note;
    let refused = |name: &str| format!("look\nIt was to go to {name}: nobody of that name takes its work.");
    assert_eq!(note, refused("agent:reviewer"));
    // Whether there is such an agent is not learnt, however it is named; and no provider is had that nobody chose.
    for name in ["reviewer", "nobody", "openai-api"] {
        let handed = wanted(vec![json!({"run": ["ostler", "handoff", "--to", name, "-m", "look"]})]);
        let asking = client.create_session(handed).await.unwrap();
        home.ended(&asking.id.to_string()).await;
        let child = successor(&client, &asking).await;
        assert_eq!(pack_of(&home, &child).await.wish.note, refused(name));
        client.stop_session(&child.id.to_string(), true).await.unwrap();
    }
    // Whom its campaign names gets it.
    assert!(home.run(&["campaign", "set", "shop", "peers+=reviewer"]).status.success());
    let second = client.create_session(hands_on()).await.unwrap();
    home.ended(&second.id.to_string()).await;
    let child = successor(&client, &second).await;
    assert_eq!(child.agent.unwrap().name.as_str(), "reviewer");
    // A person may name anybody.
    assert!(home.run(&["campaign", "set", "shop", "peers-=reviewer"]).status.success());
    let third = client.create_session(wanted(vec![scenario::say("built")])).await.unwrap();
    idle(&home, &third).await;
    let child = client.hand_off(&third.id.to_string(), "agent:reviewer", Wish::default()).await.unwrap();
    assert_eq!(child.agent.unwrap().name.as_str(), "reviewer");
}

#[tokio::test]
async fn somebody_who_is_gone_is_asked_without_tools() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let ticket = home.run(&["ticket", "add", "limit logins", "-C", "shop", "-q"]);
    let ticket = String::from_utf8(ticket.stdout).unwrap().trim().to_owned();
    let mut first = wanted(vec![scenario::say("the limit is five a minute")]);
    first.ticket = Some(ticket.clone());
    let first = client.create_session(first).await.unwrap();
    idle(&home, &first).await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let who = first.id.to_string();

    let output = home.run(&["seance", &who, "what is the limit?", "--ask", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seance: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(seance["citations"][0]["text"].as_str().unwrap().contains("five a minute"), "{seance}");
    assert!(seance["answer"]["text"].as_str().unwrap().contains("You said:"), "{seance}");
    let copy = client.session(seance["answer"]["session"].as_str().unwrap()).await.unwrap();
    assert_eq!((copy.outcome, copy.continues, copy.ticket_id), (Some(Outcome::Done), None, None));
    assert!(copy.budget.is_some_and(|budget| budget.tokens.is_some()), "{copy:?}");
    let whole = home.run(&["ticket", "show", &ticket, "--json"]);
    let whole: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["iterations"].as_array().unwrap().len(), 1, "{whole}");
    let shown = String::from_utf8(home.run(&["seance", &who, "the limit?", "--ask"]).stdout).unwrap();
    let (cited, answered) = (shown.find("five a minute").unwrap(), shown.find("asked itself").unwrap());
    assert!(cited < answered, "{shown}");

    // Whatever it tries: it writes nothing, is given no leave, and says nothing of a session's work.
    assert!(home.run(&["campaign", "set", "shop", "limits.sessions=1"]).status.success());
    let other = client.create_session(wanted(vec![scenario::say("in its place")])).await.unwrap();
    idle(&home, &other).await;
    let copy = client.ask_session(&who, "what is the limit?", Default::default()).await.unwrap();
    let tries = scenario::of(vec![
        json!({"write": {"path": "note.txt", "text": "x"}}),
        json!({"run": ["ostler", "done", "-m", "finished"]}),
        json!({"ask": {"tool": "read", "input": "a.txt"}}),
    ]);
    let more = SendMessage { who: copy.id.to_string(), text: tries, ..SendMessage::default() };
    client.send_message(more).await.unwrap();
    client.stop_session(&other.id.to_string(), false).await.unwrap();
    let copy = home.ended(&copy.id.to_string()).await;
    assert_eq!((copy.turns, copy.outcome), (2, Some(Outcome::Done)));
    let events = home.events(&client, copy.id).await;
    let wrote = |event: &Event| matches!(event, Event::AgentToolResult(result) if result.success);
    let left =
        |event: &Event| matches!(event, Event::ApprovalAnswered(given) if given.answer == Answer::Allowed);
    let reported = |event: &Event| matches!(event, Event::DoneReported(_));
    for (what, happened) in
        [("wrote", &wrote as &dyn Fn(&Event) -> bool), ("leave", &left), ("done", &reported)]
    {
        assert!(!events.iter().any(|recorded| happened(&recorded.event)), "{what}");
    }
    assert!(!home.campaign_dir().join("note.txt").exists());
    let empty = client.ask_session(&who, " ", Default::default()).await.unwrap_err().to_refusal();
    assert_eq!(empty.reason, Reason::InvalidArgument);
}

fn policy_of(events: &[Recorded]) -> Policy {
    let created = events.iter().find_map(|recorded| match &recorded.event {
        Event::SessionCreated(created) => Some(created.policy.clone()),
        _ => None,
    });
    created.unwrap()
}

#[tokio::test]
async fn an_agent_hands_on_no_right_that_it_lacks_and_a_person_may() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script = "until test -e go; do sleep 0.05; done; ostler handoff -m more";
    let mut first = wanted(vec![json!({"run": ["sh", "-c", script]}), scenario::say("handed on")]);
    first.restart = RestartPolicy::OnFailure;
    client.set_campaign("shop", vec!["env+=OLD".to_owned()]).await.unwrap();
    let first = client.create_session(first).await.unwrap();
    home.reaches(&first.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    client.set_campaign("shop", vec!["env+=NEW".to_owned()]).await.unwrap();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    let child = successor(&client, &first).await;
    let policy = |id| {
        let (home, client) = (&home, &client);
        async move { policy_of(&home.events(client, id).await).env }
    };
    assert_eq!(policy(child.id).await, ["OLD"], "what was granted since is not its agent's to give");
    // Nor does it have more when it is gone on with by itself.
    idle(&home, &child).await;
    let text = scenario::of(vec![json!({"exit": 3})]);
    let crash = SendMessage { who: child.id.to_string(), text, ..SendMessage::default() };
    client.send_message(crash).await.unwrap();
    let next = async {
        loop {
            if let [_, _, next, ..] = client.chain(&first.id.to_string()).await.unwrap().as_slice() {
                return next.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let next = tokio::time::timeout(wait::PATIENCE, next).await.expect("nobody went on");
    assert_eq!(policy(next.id).await, ["OLD"]);
    // A person gives what the campaign allows.
    let given = client.hand_off(&next.id.to_string(), "", Wish::default()).await.unwrap();
    assert_eq!(policy(given.id).await, ["OLD", "NEW"]);
}

#[tokio::test]
async fn an_imported_session_is_handed_on_where_its_directory_is_in_a_campaign_by_now() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let (store, work) = (home.path().join("outside/.claude"), home.path().join("outside/work"));
    let project = store.join("projects/-work");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&work).unwrap();
    let line = |role: &str, text: &str| {
        json!({
            "type": role, "sessionId": "d1", "cwd": work.to_str().unwrap(), "isSidechain": false,
            "timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": role, "content": text},
        })
    };
    let dialogue = format!("{}\n{}\n", line("user", "build the shed"), line("user", "and paint it"));
    std::fs::write(project.join("d1.jsonl"), dialogue).unwrap();
    let brought = home.run(&["import", "claude", "--from", store.to_str().unwrap()]);
    assert!(brought.status.success(), "{brought:?}");
    let refused = home.run(&["handoff", "d1", "--to", "script"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{words}");
    let dir = work.to_str().unwrap();
    assert!(words.contains(&format!("ostler campaign add {dir}")), "{words}");
    assert!(words.contains("ostler handoff "), "{words}");
    assert!(home.run(&["campaign", "add", dir]).status.success());
    let child = client.hand_off("d1", "script", Wish::default()).await.unwrap();
    assert_eq!(child.campaign, client.campaign(dir).await.unwrap().id);
    assert_eq!((child.working_dir.as_str(), &child.imported), (dir, &None));
    let old = client.session("d1").await.unwrap();
    assert_eq!(child.continues, Some(old.id));
    assert_eq!(pack_of(&home, &child).await.known.asked, "build the shed");
}

#[tokio::test]
async fn another_provider_goes_on_with_the_key_that_comes_along_or_nothing_is_ended() {
    let home = TestHome::started(OSTLER).await;
    home.configure(
        "[providers.openai-api]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
         api_key_env = \"OSTLER_TEST_KEY_OF_AN_HEIR\"\n",
    );
    let client = home.client().await;
    let first = client.create_session(wanted(vec![scenario::say("half of it")])).await.unwrap();
    idle(&home, &first).await;
    let (who, to) = (first.id.to_string(), "openai-api");
    let refused = client.hand_off(&who, to, Wish::default()).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::ProviderAuth, "{refused:?}");
    assert_eq!(client.session(&who).await.unwrap().outcome, None, "nothing was ended for it");
    let key = ("OSTLER_TEST_KEY_OF_AN_HEIR".to_owned(), Secret::new("sk-of-an-heir"));
    let client = client.with_keys([key].into_iter().collect());
    let child = client.hand_off(&who, to, Wish::default()).await.unwrap();
    assert_eq!((child.provider.as_str(), child.continues), (to, Some(first.id)));
}

#[tokio::test]
async fn an_agent_s_name_means_the_session_that_has_its_work() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    for name in ["api", "rev", "chat"] {
        let settings = vec!["provider=script".to_owned()];
        client.add_agent("shop", &name.parse().unwrap(), settings).await.unwrap();
    }
    let mut of_api = wanted(vec![scenario::say("half of it")]);
    of_api.agent = Some("api".to_owned());
    let first = client.create_session(of_api).await.unwrap();
    idle(&home, &first).await;
    let child = client.hand_off("api", "rev", Wish::default()).await.unwrap();
    assert_eq!(client.session("rev").await.unwrap().id, child.id);
    assert_eq!(client.chain("shop/rev").await.unwrap().len(), 2);
    let say =
        |who: &str| SendMessage { who: who.to_owned(), text: "how far?".into(), ..SendMessage::default() };
    assert_eq!(client.send_message(say("rev")).await.unwrap().sent().unwrap().session.id, child.id);
    client.stop_session("rev", false).await.unwrap();
    home.ended(&child.id.to_string()).await;
    assert_eq!(client.session("rev").await.unwrap().id, child.id, "its last one");
    // Nobody speaks in a chat without naming it.
    let mut of_chat = wanted(vec![scenario::say("hello")]);
    of_chat.agent = Some("chat".to_owned());
    of_chat.key = Some("agent:chat:slack:dm:u1".parse().unwrap());
    let chat = client.create_session(of_chat.clone()).await.unwrap();
    assert_eq!(client.session("chat").await.unwrap().id, chat.id);
    let main = client.send_message(say("chat")).await.unwrap().sent().unwrap().session.id;
    assert_ne!(main, chat.id);
    assert_eq!(client.session("chat").await.unwrap().id, main, "its first conversation comes first");
    client.stop_session(&main.to_string(), false).await.unwrap();
    home.ended(&main.to_string()).await;
    assert_eq!(client.session("chat").await.unwrap().id, chat.id);
    of_chat.key = Some("agent:chat:slack:dm:u2".parse().unwrap());
    client.create_session(of_chat).await.unwrap();
    let refused = client.session("chat").await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::Ambiguous, "{refused:?}");
}
