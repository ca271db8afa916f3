//! Agents and their conversations: one open for each key, one session at a time, and fresh ones in their place.

use std::{collections::HashSet, sync::Arc};

use ostler_client::{Client, CreateSession, SendMessage, Taken};
use ostler_domain::{
    Name, Reason,
    conversation::{CloseReason, Key, SendAction, TurnRef},
    query::{ConversationFilter, Page, Scope, SessionFilter},
    session::{Attention, Outcome, View},
};
use ostler_testkit::{TestHome, scenario};
use serde_json::json;

use crate::OSTLER;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn say(who: &str, text: &str) -> SendMessage {
    SendMessage { who: who.to_owned(), text: text.to_owned(), ..SendMessage::default() }
}

fn of_agent(agent: &str, prompt: &str) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "");
    wanted.agent = Some(agent.to_owned());
    wanted.initial_message = Some(prompt.to_owned());
    wanted
}

async fn idle(home: &TestHome, view: &View, turns: u32) -> View {
    let is_idle = |view: &View| view.turns == turns && view.attention == Some(Attention::Idle);
    home.reaches(&view.id.to_string(), "its turn to end", is_idle).await
}

/// All that crossed a session's border.
fn on_tape(home: &TestHome, view: &View) -> String {
    let dir = home.path().join("home/state/sessions").join(view.id.to_string());
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file()).filter_map(|path| std::fs::read(path).ok());
    files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

async fn with_agent(home: &TestHome) -> Client {
    let client = home.client().await;
    client.add_agent("shop", &name("api"), vec!["role=builder".to_owned()]).await.unwrap();
    client
}

#[tokio::test]
async fn an_agent_s_sessions_are_one_conversation() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let first =
        client.create_session(of_agent("api", &scenario::of(vec![scenario::say("one")]))).await.unwrap();
    assert_eq!(first.name.as_str(), "api");
    assert_eq!(first.agent.as_ref().unwrap().role.as_str(), "builder");
    // One session at a time, and whoever asks for another is told who is there.
    let refused = client.create_session(of_agent("api", "more")).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::ConversationBusy);
    idle(&home, &first, 1).await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let second = client.create_session(of_agent("api", "again")).await.unwrap();
    assert_eq!((second.continues, second.conversation), (Some(first.id), first.conversation));
    // Its whole address means it, wherever somebody is named; another role's is nobody's.
    let address = "shop/builder/api";
    assert_eq!(client.session(address).await.unwrap().id, second.id);
    assert_eq!(client.conversation(address).await.unwrap().id, first.conversation);
    assert!(client.session("shop/tester/api").await.is_err());
    let filter = SessionFilter { roles: vec!["builder".to_owned()], ..SessionFilter::default() };
    assert_eq!(client.sessions(&filter, Page::of(10, None)).await.unwrap().rows.len(), 2);
    // A name is an agent's or a session's, never both.
    let mut named = CreateSession::new("shop", "script");
    named.name = Some(name("api"));
    assert_eq!(client.create_session(named).await.unwrap_err().to_refusal().reason, Reason::NameTaken);
}

#[tokio::test]
async fn an_agent_is_told_who_it_is_when_it_begins() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    client.set_agent("api", vec!["system_prompt=You are the builder.".to_owned()]).await.unwrap();
    let first = client.create_session(of_agent("api", "hello")).await.unwrap();
    idle(&home, &first, 1).await;
    assert!(on_tape(&home, &first).contains("You are the builder."), "the agent was not told who it is");
    let refused = client.set_agent("api", vec!["auth_profile=work".to_owned()]).await.unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::InvalidArgument);
}

#[tokio::test]
async fn two_hundred_who_open_one_conversation_get_the_same() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    // A connection each, as two hundred processes have, and all of them at once.
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(home.client().await);
    }
    let all_are_there = Arc::new(tokio::sync::Barrier::new(clients.len()));
    let asked = clients.into_iter().enumerate().map(|(n, client)| {
        // The same key, as everybody writes it.
        let text = if n % 2 == 0 { "agent:api:slack:dm:U1" } else { "Agent:API:Slack:DM:u1" };
        let all_are_there = all_are_there.clone();
        tokio::spawn(async move {
            all_are_there.wait().await;
            client.open_conversation("api", &key(text)).await.unwrap()
        })
    });
    let asked: Vec<_> = asked.collect();
    let mut ids = HashSet::new();
    let mut new = 0;
    for asked in asked {
        let (conversation, is_new) = asked.await.unwrap();
        ids.insert(conversation.id);
        new += usize::from(is_new);
    }
    assert_eq!((ids.len(), new), (1, 1));
    let listed = client.conversations(&ConversationFilter::default(), Page::of(10, None)).await.unwrap();
    assert_eq!(listed.rows.len(), 1);
    assert_eq!(listed.rows[0].name.as_str(), "api-slack-dm-u1");
}

#[tokio::test]
async fn twenty_who_wake_one_conversation_make_one_session() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let asked: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.send_message(say("api", &format!("hello {n}"))).await })
        })
        .collect();
    let mut sessions = HashSet::new();
    for asked in asked {
        // Whoever is not first is heard by the first one's session.
        sessions.insert(asked.await.unwrap().unwrap().sent().unwrap().session.id);
    }
    assert_eq!(sessions.len(), 1);
    let filter = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
    assert_eq!(client.sessions(&filter, Page::of(50, None)).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_reset_begins_anew_under_the_same_key_and_keeps_the_old() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let sent = client.send_message(say("api", &scenario::of(vec![scenario::say("one")]))).await.unwrap();
    let first = sent.sent().unwrap().session;
    idle(&home, &first, 1).await;
    let settings = vec!["metadata.owner=ann".to_owned(), "state.phase=2".to_owned()];
    client.set_conversation("api", settings).await.unwrap();
    let Taken::Reset(fresh) = client.send_message(say("api", "/new")).await.unwrap() else {
        panic!("a bare /new says nothing to anybody");
    };
    let ended = home.ended(&first.id.to_string()).await;
    assert_eq!(ended.outcome, Some(Outcome::Reset));
    let old = client.conversation(&first.conversation.to_string()).await.unwrap();
    assert_eq!(old.closed.unwrap().why, CloseReason::Reset);
    let fresh = client.conversation(&fresh.to_string()).await.unwrap();
    assert_eq!((fresh.replaces, fresh.key.as_str(), &fresh.name), (Some(old.id), "main", &old.name));
    assert_eq!(fresh.notes.metadata["owner"], "ann");
    assert!(fresh.notes.state.is_empty());
    // The name now means the fresh one; the old one is spoken to by nobody.
    let sent = client.send_message(say("api", "/reset hello")).await.unwrap().sent().unwrap();
    assert_eq!(sent.session.continues, None);
    let newest = client.conversation(&sent.session.conversation.to_string()).await.unwrap();
    assert_eq!(newest.replaces, Some(fresh.id));
    let refused = client.send_message(say(&first.id.to_string(), "you?")).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::WrongState);
    // What nobody registered an agent for begins anew just so.
    let adhoc = home.session(&client, &scenario::of(vec![scenario::say("x")])).await;
    idle(&home, &adhoc, 1).await;
    let again = client.send_message(say(adhoc.name.as_str(), "/new go on")).await.unwrap().sent().unwrap();
    assert_ne!(again.session.conversation, adhoc.conversation);
    assert_eq!((again.session.name, again.session.provider), (adhoc.name, adhoc.provider));
}

#[tokio::test]
async fn archived_conversations_come_back_unless_their_key_is_taken() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let (opened, _) = client.open_conversation("api", &key("nightly:docs")).await.unwrap();
    let who = opened.id.to_string();
    client.close_conversation(&who, CloseReason::Archived).await.unwrap();
    let open = client.conversations(&ConversationFilter::default(), Page::of(10, None)).await.unwrap();
    assert!(open.rows.is_empty());
    client.reopen_conversation(&who).await.unwrap();
    client.close_conversation(&who, CloseReason::Archived).await.unwrap();
    let (other, is_new) = client.open_conversation("api", &key("nightly:docs")).await.unwrap();
    assert!(is_new && other.id != opened.id);
    let refused = client.reopen_conversation(&who).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::NameTaken);
}

#[tokio::test]
async fn what_is_set_on_a_conversation_holds_from_its_next_session_on() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let first = client.send_message(say("api", "hi")).await.unwrap().sent().unwrap().session;
    idle(&home, &first, 1).await;
    client.set_conversation("api", vec!["model=tiny".to_owned(), "label=Checkout".to_owned()]).await.unwrap();
    let listed = home.run(&["conversation", "ls", "-o", "json"]).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed["conversations"][0]["label"], "Checkout", "{listed}");
    client.stop_session("api", false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let second = client.send_message(say("api", "hi")).await.unwrap().sent().unwrap().session;
    assert_eq!((second.continues, second.model.as_deref()), (Some(first.id), Some("tiny")));
    let wrong = client.set_conversation("api", vec!["provider=nope".to_owned()]).await.unwrap_err();
    assert_eq!(wrong.to_refusal().reason, Reason::ProviderUnknown);
}

async fn told(client: &Client, home: &TestHome, view: &View, text: &str, turns: u32) -> View {
    client.send_message(say(&view.id.to_string(), text)).await.unwrap();
    idle(home, view, turns).await
}

#[tokio::test]
async fn a_fork_at_a_turn_knows_nothing_of_what_came_after() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some("heron".to_owned());
    let origin = client.create_session(wanted).await.unwrap();
    idle(&home, &origin, 1).await;
    told(&client, &home, &origin, "crane", 2).await;
    let origin = told(&client, &home, &origin, "ibis", 3).await;
    let who = origin.id.to_string();

    let fork = client.fork_session(&who, None, Some("2")).await.unwrap();
    let copy = client.conversation(&fork.conversation.to_string()).await.unwrap();
    assert_eq!(copy.forked_from, Some(origin.conversation));
    assert_eq!(copy.forked_at, Some(TurnRef { session: origin.id, turn: 2 }));
    let forked = told(&client, &home, &fork, "what do you know?", 1).await;
    let heard = on_tape(&home, &forked);
    assert!(heard.contains("You were told: heron") && heard.contains("You were told: crane"), "{heard}");
    assert!(!heard.contains("ibis"), "{heard}");
    // The other one stays as it is.
    assert_eq!(client.session(&who).await.unwrap().turns, 3);

    for wrong in ["0", "4", "nowhere"] {
        let refused = client.fork_session(&who, None, Some(wrong)).await.unwrap_err().to_refusal();
        assert_eq!(refused.reason, Reason::InvalidArgument, "{wrong}");
        assert_eq!(refused.why.as_deref(), Some("its turns are 1 to 3"), "{wrong}");
    }
    // Of the last turn on the agent's own memory is copied, where it has one.
    let whole = client.fork_session(&who, None, Some("3")).await.unwrap();
    let copy = client.conversation(&whole.conversation.to_string()).await.unwrap();
    assert_eq!(copy.forked_at, Some(TurnRef { session: origin.id, turn: 3 }));
    let shown = home.run(&["conversation", "show", &fork.conversation.to_string(), "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["forked_at"]["turn"], 2, "{shown}");
}

#[tokio::test]
async fn a_copy_of_a_copy_knows_what_came_before_both() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some("heron".to_owned());
    let origin = client.create_session(wanted).await.unwrap();
    idle(&home, &origin, 1).await;
    told(&client, &home, &origin, "crane", 2).await;
    let origin = told(&client, &home, &origin, "ibis", 3).await;
    let first = client.fork_session(&origin.id.to_string(), None, Some("2")).await.unwrap();
    told(&client, &home, &first, "egret", 1).await;
    told(&client, &home, &first, "stork", 2).await;
    let of_turn = client.fork_session(&first.id.to_string(), None, Some("1")).await.unwrap();
    let whole = client.fork_session(&first.id.to_string(), None, None).await.unwrap();
    // What either says from now on is not the other's.
    told(&client, &home, &first, "raven", 3).await;
    told(&client, &home, &of_turn, "what do you know?", 1).await;
    told(&client, &home, &whole, "what do you know?", 1).await;
    let third = client.fork_session(&whole.id.to_string(), None, None).await.unwrap();
    told(&client, &home, &third, "what do you know?", 1).await;
    for (copy, knows) in [
        (&of_turn, "heron crane egret"),
        (&whole, "heron crane egret stork"),
        (&third, "heron crane egret stork"),
    ] {
        let heard = on_tape(&home, copy);
        for bird in ["heron", "crane", "egret", "stork", "ibis", "raven"] {
            let is_told = heard.contains(&format!("You were told: {bird}"));
            assert_eq!(is_told, knows.contains(bird), "{bird} in {heard}");
        }
        let place = |bird: &str| heard.find(bird).unwrap();
        assert!(place("heron") < place("crane") && place("crane") < place("egret"), "{heard}");
    }
}

#[tokio::test]
async fn a_name_that_several_campaigns_have_is_nobody_s_outside_of_them() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let dir = home.path().join("site");
    std::fs::create_dir_all(&dir).unwrap();
    assert!(home.run(&["campaign", "add", dir.to_str().unwrap()]).status.success());
    client.add_agent("site", &name("api"), Vec::new()).await.unwrap();
    // Also if only one of them was ever spoken to.
    client.open_conversation("shop/api", &Key::main()).await.unwrap();
    let refused = client.send_message(say("api", "hi")).await.unwrap_err().to_refusal();
    let hints: Vec<_> = refused.hints.iter().map(|hint| hint.command.as_str()).collect();
    assert_eq!(hints, ["ostler send shop/api \"…\"", "ostler send site/api \"…\""], "{refused:?}");
    for agent in ["shop/api", "site/api"] {
        client.open_conversation(agent, &Key::main()).await.unwrap();
    }
    let refused = client.conversation("api").await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::Ambiguous);
    let hints: Vec<_> = refused.hints.iter().map(|hint| hint.command.as_str()).collect();
    assert_eq!(hints, ["ostler conversation show site/api", "ostler conversation show shop/api"]);
    for verb in ["rm", "reset"] {
        let answer = home.command(&["conversation", verb, "api"]).current_dir("/").output().unwrap();
        assert!(!answer.status.success(), "{verb}");
    }
    let open = client.conversations(&ConversationFilter::default(), Page::of(10, None)).await.unwrap().rows;
    assert_eq!(open.len(), 2, "both are what they were");
    // Within a campaign its own is meant, and one that is closed is in nobody's way.
    let set = home.command(&["agent", "set", "api", "role=writer"]).current_dir(&dir).output().unwrap();
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    assert_eq!(client.agent("site/api").await.unwrap().profile.role.as_str(), "writer");
    let elsewhere = home.command(&["agent", "rm", "api"]).current_dir("/").output().unwrap();
    let words = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(words.contains("ostler agent show site/api"), "{words}");
    let answer = home.command(&["conversation", "rm", "api"]).current_dir(&dir).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let left = client.conversation("api").await.unwrap();
    assert_eq!(left.campaign, client.campaign("shop").await.unwrap().id);
}

/// Two of one name in one campaign: the first was archived and opened again when another had its name.
#[tokio::test]
async fn a_name_that_two_open_conversations_have_is_nobody_s() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut twins = Vec::new();
    for _ in 0..2 {
        let mut wanted = CreateSession::new("shop", "script");
        (wanted.name, wanted.initial_message) = (Some(name("twin")), Some("hello".to_owned()));
        let view = client.create_session(wanted).await.unwrap();
        idle(&home, &view, 1).await;
        client.stop_session(&view.id.to_string(), false).await.unwrap();
        home.ended(&view.id.to_string()).await;
        let conversation = view.conversation.to_string();
        client.close_conversation(&conversation, CloseReason::Archived).await.unwrap();
        twins.push(view);
    }
    for twin in &twins {
        client.reopen_conversation(&twin.conversation.to_string()).await.unwrap();
    }
    let export = home.path().join("exported").to_string_lossy().into_owned();
    let all: Vec<Vec<&str>> = vec![
        vec!["conversation", "show", "twin"],
        vec!["conversation", "set", "twin", "model=x"],
        vec!["conversation", "label", "twin", "x"],
        vec!["conversation", "reset", "twin"],
        vec!["conversation", "fork", "twin"],
        vec!["conversation", "archive", "twin"],
        vec!["conversation", "rm", "twin"],
        vec!["conversation", "reopen", "twin"],
        vec!["label", "twin", "x"],
        vec!["fork", "twin"],
        vec!["send", "twin", "hi"],
        vec!["resume", "twin"],
        vec!["restart", "twin"],
        vec!["handoff", "twin"],
        vec!["stop", "twin"],
        vec!["done", "twin"],
        vec!["show", "twin"],
        vec!["logs", "twin"],
        vec!["wait", "twin"],
        vec!["diff", "twin"],
        vec!["rewind", "twin", "0", "--files", "-y"],
        vec!["message", "ls", "-a", "twin"],
        vec!["message", "clear", "twin", "-y"],
        vec!["transcript", "show", "twin"],
        vec!["transcript", "export", "twin"],
        vec!["transcript", "verify", "twin"],
        vec!["export", "twin", "--format", "openclaw", "--dir", &export],
        vec!["chain", "show", "twin"],
        vec!["seance", "twin", "who greeted?"],
        vec!["retention", "hold", "twin"],
        vec!["policy", "test", "send", "twin"],
        vec!["conversation", "rm", "shop/twin"],
    ];
    for words in &all {
        for from in [std::path::Path::new("/"), &home.campaign_dir()] {
            let answer = home.command(words).current_dir(from).output().unwrap();
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            assert_eq!(answer.status.code(), Some(3), "{words:?} in {}: {said}", from.display());
            assert!(said.contains("AMBIGUOUS"), "{words:?}: {said}");
            for twin in &twins {
                let is_named =
                    [twin.id.short(), twin.conversation.short()].iter().any(|id| said.contains(id));
                assert!(is_named, "{words:?} names no {}: {said}", twin.id.short());
            }
        }
    }
    let filter = ConversationFilter { closed_too: true, ..ConversationFilter::default() };
    let rows = client.conversations(&filter, Page::of(9, None)).await.unwrap().rows;
    assert_eq!(
        (rows.len(), rows.iter().filter(|row| row.closed.is_none()).count()),
        (2, 2),
        "nothing was done"
    );
    // What is said of them is typed as it is said.
    let refused = client.conversation("twin").await.unwrap_err().to_refusal();
    let hint = refused.hints.first().unwrap().command.replace("ostler conversation show", "conversation rm");
    let words: Vec<&str> = hint.split(' ').collect();
    assert!(home.run(&words).status.success(), "{words:?}");
    // One is open by now, and it is who is meant.
    let left = client.conversation("twin").await.unwrap();
    assert_eq!(client.session("twin").await.unwrap().conversation, left.id);
    // One that lives is who is read and stopped, however many of its name have ended.
    for twin in &twins {
        client.reopen_conversation(&twin.conversation.to_string()).await.unwrap();
    }
    let woken = client.send_message(say(&twins[0].id.to_string(), "again")).await.unwrap();
    let woken = woken.sent().unwrap().session.id;
    assert_eq!(client.session("twin").await.unwrap().id, woken);
}

#[tokio::test]
async fn every_verb_asks_whom_of_several_campaigns_a_name_means() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let site = home.path().join("site");
    std::fs::create_dir_all(&site).unwrap();
    assert!(home.run(&["campaign", "add", site.to_str().unwrap()]).status.success());
    client.add_agent("site", &name("api"), Vec::new()).await.unwrap();
    // Only one of them was ever spoken to.
    let first = client.create_session(of_agent("api", "hello")).await.unwrap();
    idle(&home, &first, 1).await;
    for words in [
        &["handoff", "api"][..],
        &["show", "api"],
        &["stop", "api"],
        &["logs", "api"],
        &["resume", "api"],
        &["fork", "api"],
        &["chain", "show", "api"],
        &["seance", "api", "who greeted?"],
        &["diff", "api"],
        &["send", "api", "hi"],
        &["message", "ls", "api"],
        &["transcript", "show", "api"],
        &["conversation", "show", "api"],
        &["conversation", "reset", "api"],
        &["conversation", "set", "api", "model=x"],
        &["label", "api", "x"],
    ] {
        // Outside of both, and where the other one is.
        for from in [std::path::Path::new("/"), site.as_path()] {
            // Whoever speaks to an agent, or looks for its conversation, means the one here: that has none yet.
            let means_agent = ["send", "message", "transcript", "conversation", "label"].contains(&words[0]);
            if from == site && means_agent {
                continue;
            }
            let answer = home.command(words).current_dir(from).output().unwrap();
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            assert_eq!(answer.status.code(), Some(3), "{words:?} in {}: {said}", from.display());
            assert!(said.contains("AMBIGUOUS") && said.contains("shop/api"), "{words:?}: {said}");
            assert!(said.contains("site/api"), "{words:?}: {said}");
        }
    }
    let now = client.session(&first.id.to_string()).await.unwrap();
    assert_eq!((now.outcome, now.turns), (None, 1), "nothing was done to it");
    assert_eq!(
        client.conversations(&ConversationFilter::default(), Page::of(9, None)).await.unwrap().rows.len(),
        1
    );
    let chosen = home.command(&["handoff", "shop/api", "-q"]).current_dir("/").output().unwrap();
    assert!(chosen.status.success(), "{}", String::from_utf8_lossy(&chosen.stderr));
    assert_eq!(home.ended(&first.id.to_string()).await.outcome, Some(Outcome::Handoff));
}

#[tokio::test]
async fn a_run_of_an_agent_begins_anew_with_the_words_that_a_message_does_it_with() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let first = client.create_session(of_agent("api", "hello")).await.unwrap();
    idle(&home, &first, 1).await;
    // Alone, as a message: the session that lives is ended, and none is started.
    let alone = home.run(&["run", "-C", "shop", "--agent", "api", "/new"]);
    let said = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(alone.status.success() && said.contains("begins anew"), "{alone:?}");
    assert_eq!(home.ended(&first.id.to_string()).await.outcome, Some(Outcome::Reset));
    let fresh = client.conversation("api").await.unwrap();
    assert_eq!(fresh.replaces, Some(first.conversation));
    // With more, the rest is what the agent is told.
    let second = client.create_session(of_agent("api", "hello again")).await.unwrap();
    assert_eq!((second.conversation, second.continues), (fresh.id, None));
    idle(&home, &second, 1).await;
    let third = client.create_session(of_agent("api", "/reset count to three")).await.unwrap();
    let third = idle(&home, &third, 1).await;
    assert_eq!(third.continues, None);
    let fresh = client.conversation("api").await.unwrap();
    assert_eq!((third.conversation, fresh.replaces), (fresh.id, Some(second.conversation)));
    let told = client.messages("api", Page::of(9, None)).await.unwrap().rows;
    assert_eq!(
        told.iter().map(|message| message.message.text.as_str()).collect::<Vec<_>>(),
        ["count to three"]
    );
    // Who may not speak there has nothing begin anew either.
    let denied = vec!["send_policy=deny".to_owned()];
    client.set_conversation(&fresh.id.to_string(), denied).await.unwrap();
    let refused = client.create_session(of_agent("api", "/new")).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::PermissionDenied);
    assert_eq!(client.conversation("api").await.unwrap().id, fresh.id);
}

#[tokio::test]
async fn what_a_removed_agent_left_is_not_taken_for_its_namesake_s() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let old = client.send_message(say("api", "hi")).await.unwrap().sent().unwrap().session;
    client.stop_session(&old.id.to_string(), false).await.unwrap();
    home.ended(&old.id.to_string()).await;
    let listed = || String::from_utf8(home.run(&["conversation", "ls", "-C", "shop"]).stdout).unwrap();
    assert!(!listed().contains("(removed)"), "{}", listed());
    assert!(home.run(&["agent", "rm", "api"]).status.success());
    assert!(home.run(&["agent", "add", "api", "-C", "shop", "-p", "script"]).status.success());
    assert!(home.run(&["conversation", "open", "api"]).status.success());
    let text = listed();
    let of = |id: &str| text.lines().find(|line| line.contains(id)).unwrap().to_owned();
    assert_eq!((text.matches("api").count() > 1, text.matches("(removed)").count()), (true, 1), "{text}");
    assert!(of(&old.conversation.short()).contains("api (removed)"), "{text}");
}

#[tokio::test]
async fn a_fork_of_a_conversation_finds_a_turn_in_whichever_session_has_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some("birds".parse().unwrap());
    wanted.initial_message = Some("heron".to_owned());
    let first = client.create_session(wanted).await.unwrap();
    idle(&home, &first, 1).await;
    told(&client, &home, &first, "crane", 2).await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let second = client.send_message(say("birds", "ibis")).await.unwrap().sent().unwrap().session;
    idle(&home, &second, 1).await;

    let forked = home.run(&["conversation", "fork", "birds", "--at", "2", "-q"]);
    assert!(forked.status.success(), "{}", String::from_utf8_lossy(&forked.stderr));
    let fork = client.session(String::from_utf8_lossy(&forked.stdout).trim()).await.unwrap();
    let copy = client.conversation(&fork.conversation.to_string()).await.unwrap();
    assert_eq!(copy.forked_at, Some(TurnRef { session: first.id, turn: 2 }));
    let fork = told(&client, &home, &fork, "what do you know?", 1).await;
    let heard = on_tape(&home, &fork);
    assert!(heard.contains("You were told: crane") && !heard.contains("ibis"), "{heard}");

    let refused = client.fork_session("birds", None, Some("3")).await.unwrap_err().to_refusal();
    assert_eq!(refused.message, "no session of birds has a turn 3");
    assert_eq!(refused.why.as_deref(), Some("its 2 sessions have 2 turns or fewer each"));
    // Whoever names a session means its turns.
    let refused =
        client.fork_session(&second.id.to_string(), None, Some("2")).await.unwrap_err().to_refusal();
    assert!(
        refused
            .hints
            .iter()
            .all(|hint| !hint.command.starts_with("ostler fork") || hint.command.contains("--at 2"))
    );
}

#[tokio::test]
async fn a_conversation_that_rested_for_long_begins_anew_with_the_next_message() {
    let home = TestHome::started(OSTLER).await;
    let client = with_agent(&home).await;
    let first = client.send_message(say("api", "one")).await.unwrap().sent().unwrap().session;
    idle(&home, &first, 1).await;
    client.set_conversation(&first.conversation.to_string(), vec!["label=Shop".to_owned()]).await.unwrap();
    // Off by default, and not before the time is over.
    assert!(home.run(&["campaign", "set", "shop", "reset.idle=1h"]).status.success());
    let same = client.send_message(say("api", "two")).await.unwrap().sent().unwrap().session;
    assert_eq!(same.id, first.id);
    idle(&home, &first, 2).await;
    assert!(home.run(&["campaign", "set", "shop", "reset.idle=1s"]).status.success());
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    // However many speak at once, it begins anew once.
    let asked: Vec<_> = (0..8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.send_message(say("api", &format!("three {n}"))).await })
        })
        .collect();
    let mut heard = HashSet::new();
    for asked in asked {
        heard.insert(asked.await.unwrap().unwrap().sent().unwrap().session.id);
    }
    assert_eq!(heard.len(), 1, "{heard:?}");
    let fresh = client.session(&heard.iter().next().unwrap().to_string()).await.unwrap();
    assert_ne!(fresh.conversation, first.conversation);
    assert_eq!(fresh.continues, None);
    let opened = client.conversation(&fresh.conversation.to_string()).await.unwrap();
    assert_eq!(opened.replaces, Some(first.conversation));
    assert_eq!(opened.notes.entry.label.as_deref(), Some("Shop"), "what is noted about it is kept");
    let old = client.conversation(&first.conversation.to_string()).await.unwrap();
    assert_eq!(old.closed.unwrap().why, CloseReason::Reset);
    let refused = home.run(&["campaign", "set", "shop", "reset.daily=noon"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[tokio::test]
async fn a_name_that_nobody_chose_is_nobody_else_s_ever_after() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let run = |args: &[&str]| {
        let output = home.run(&[&["run", "-q", "-p", "script"], args].concat());
        assert!(output.status.success(), "{output:?}");
    };
    (0..3).for_each(|_| run(&["hi"]));
    let listed = client.sessions(&SessionFilter::default(), Page::of(10, None)).await.unwrap().rows;
    let mut names: Vec<&str> = listed.iter().map(|view| view.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["hi", "hi-2", "hi-3"], "all of them had ended before the next one began");
    // One that somebody chose may be chosen again, and then means whoever is at work under it.
    (0..2).for_each(|_| run(&["--name", "nightly", "hi"]));
    let refused = home.run(&["send", "shop/nightly", "and now?"]);
    let err = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{err}");
    assert!(err.contains("nightly\" fits 2 sessions [AMBIGUOUS"), "{err}");
    let ways: Vec<&str> = err.split("ostler send ").skip(1).map(|way| &way[..5]).collect();
    assert!(ways.len() == 2 && err.matches("'and now?'").count() == 2, "{err}");
    let stays = scenario::of(vec![json!({ "sleep_ms": 600_000 })]);
    let sent = home.run(&["send", ways[1], &stays]);
    assert!(sent.status.success(), "{sent:?}");
    let woken = home.reaches("nightly", "somebody at work", |view| view.outcome.is_none()).await;
    let first = client.session(ways[1]).await.unwrap();
    assert_eq!(woken.conversation, first.conversation, "it was sent to the one that was named");
    assert!(home.run(&["send", "nightly", "and then?"]).status.success(), "one of them is at work");
}

#[tokio::test]
async fn what_restrains_a_conversation_is_not_dropped_by_a_reset() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"api".parse().unwrap(), vec!["provider=script".to_owned()]).await.unwrap();
    let view = client.create_session(of_agent("api", "hello")).await.unwrap();
    let settings = ["send_policy=deny", "queue_mode=collect", "metadata.owner=ann", "state.phase=2"];
    let settings = settings.map(str::to_owned).to_vec();
    client.set_conversation(&view.conversation.to_string(), settings).await.unwrap();
    let reset = home.run(&["conversation", "reset", "api"]);
    let words = String::from_utf8(reset.stdout).unwrap();
    assert!(words.contains(", with metadata.owner, state.phase"), "{words}");
    let fresh = client.conversation("api").await.unwrap();
    assert_ne!(fresh.id, view.conversation);
    assert_eq!(fresh.notes.entry.send_policy, Some(SendAction::Deny));
    assert!(fresh.notes.entry.queue_mode.is_some() && fresh.notes.metadata.is_empty());
    let say = SendMessage { who: "api".to_owned(), text: "x".to_owned(), ..SendMessage::default() };
    let refused = client.send_message(say).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::PermissionDenied, "{refused:?}");
}

#[tokio::test]
async fn names_and_keys_that_would_be_another_s_are_refused() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &name("bob"), vec!["provider=script".to_owned()]).await.unwrap();
    let alike = client.add_agent("shop", &name("BOB"), Vec::new()).await.unwrap_err().to_refusal();
    assert_eq!(alike.reason, Reason::NameTaken, "{alike:?}");
    let mut wanted = of_agent("bob", "hello");
    wanted.key = Some(key("import:claude:x"));
    let refused = client.create_session(wanted).await.unwrap_err().to_refusal();
    assert!(refused.message.contains("import:"), "{refused:?}");
    let view = client.create_session(of_agent("bob", "hello")).await.unwrap();
    let wait = vec!["queue_debounce_ms=99999999999".to_owned()];
    let refused =
        client.set_conversation(&view.conversation.to_string(), wait).await.unwrap_err().to_refusal();
    assert!(refused.message.contains("3600000"), "{refused:?}");
}
