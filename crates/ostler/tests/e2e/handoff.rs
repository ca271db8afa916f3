//! Work that goes from one session to the next: asked for by people and by agents, also while no daemon runs.

use ostler_client::{CreateSession, SendMessage};
use ostler_domain::{
    Event, Reason,
    handoff::{Pack, Wish},
    session::{Attention, Outcome, View},
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
    let child = async {
        loop {
            let chain = client.chain(&first.id.to_string()).await.unwrap();
            if let [_, child, ..] = chain.as_slice() {
                return child.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let child = tokio::time::timeout(wait::PATIENCE, child).await.expect("nobody went on");
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
