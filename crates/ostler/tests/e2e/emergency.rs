//! Things are already broken, and an agent must end all the same.

use std::{fs, time::Duration};

use ostler_client::{Client, ListEvents, Place, Received, query::EventFilter};
use ostler_domain::{
    Event, Kind, Reason,
    session::{Attention, Outcome, Phase, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use rustix::process::Signal;
use serde_json::json;

use crate::{OSTLER, faults::SmallDisk};

fn sleeping() -> String {
    scenario::of(vec![scenario::say("now"), json!({"run": ["sleep", "300"]})])
}

async fn at_work(home: &TestHome, client: &Client) -> ostler_domain::SessionId {
    let id = home.session(client, &sleeping()).await.id;
    home.reaches(&id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    wait::until("the tool to run", wait::PATIENCE, || home.session_processes(id).len() >= 2);
    id
}

#[tokio::test]
async fn a_full_disk_keeps_no_agent_alive() {
    let home = TestHome::new(OSTLER);
    let Some(_disk) = SmallDisk::mount(home.home.state(), "12m") else { return };
    let client = home.start().await;
    let path = home.campaign_dir().display().to_string();
    client
        .add_campaign(ostler_client::AddCampaign { path, name: Some("shop".parse().unwrap()) })
        .await
        .unwrap();
    let (one, two) = (at_work(&home, &client).await, at_work(&home, &client).await);
    let filler = home.home.state().join("filler");
    let _ = fs::write(&filler, vec![0_u8; 12 * 1024 * 1024]);
    let refused = client.stop_session(&one.to_string(), true).await;
    wait::until("the killed agent to be gone", Duration::from_secs(5), || {
        home.session_processes(one).is_empty()
    });
    let halted = client.halt(false, "the disk is full").await;
    wait::until("the halted agent to be gone", Duration::from_secs(5), || {
        home.session_processes(two).is_empty()
    });
    // What could not be recorded is said to be so; where a page was still free, it was recorded.
    for error in [refused.err(), halted.err()].into_iter().flatten() {
        assert_eq!(error.to_refusal().reason, Reason::DiskFull);
    }
    fs::remove_file(&filler).unwrap();
    assert_eq!(home.ended(&one.to_string()).await.outcome, Some(Outcome::Killed));
    assert_eq!(home.ended(&two.to_string()).await.outcome, Some(Outcome::Killed));
}

#[tokio::test]
async fn a_daemon_that_died_on_a_full_disk_comes_back_and_obeys() {
    let home = TestHome::new(OSTLER);
    let Some(_disk) = SmallDisk::mount(home.home.state(), "12m") else { return };
    let client = home.start().await;
    let path = home.campaign_dir().display().to_string();
    client
        .add_campaign(ostler_client::AddCampaign { path, name: Some("shop".parse().unwrap()) })
        .await
        .unwrap();
    let (one, two) = (at_work(&home, &client).await, at_work(&home, &client).await);
    home.daemon().unwrap().signal(Signal::STOP);
    home.daemon().unwrap().signal(Signal::KILL);
    // Whatever room there is, also what the dead daemon gives back, is taken at once and all the time.
    let fillers = home.home.state().join("fillers");
    fs::create_dir(&fillers).unwrap();
    let fill = |from: u32| {
        for n in from.. {
            let full = fs::write(fillers.join(n.to_string()), vec![0_u8; 64 * 1024]).is_err();
            if full && fs::write(fillers.join(format!("{n}s")), vec![0_u8; 4096]).is_err() {
                return n + 1;
            }
        }
        unreachable!("no disk is that large")
    };
    let next = fill(0);
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    fill(next);
    let client = Client::connect_or_start(&home.home, home.program()).await.unwrap();
    let before = client.status().await.unwrap();
    assert_eq!(client.session(&one.to_string()).await.unwrap().outcome, None);
    let _ = client.stop_session(&one.to_string(), true).await;
    wait::until("the killed agent to be gone", Duration::from_secs(5), || {
        home.session_processes(one).is_empty()
    });
    let _ = client.halt(false, "the disk is full").await;
    wait::until("the halted agent to be gone", Duration::from_secs(5), || {
        home.session_processes(two).is_empty()
    });
    fs::remove_dir_all(&fillers).unwrap();
    assert_eq!(home.ended(&one.to_string()).await.outcome, Some(Outcome::Killed));
    assert_eq!(home.ended(&two.to_string()).await.outcome, Some(Outcome::Killed));
    // What could not be written down at the start is made good.
    wait::until("the daemon to be announced", wait::PATIENCE, || {
        home.daemon().is_some_and(|daemon| daemon.pid == before.pid)
    });
    let starts = EventFilter { kinds: vec![Kind::DaemonStarted], ..EventFilter::default() };
    let deadline = std::time::Instant::now() + wait::PATIENCE;
    loop {
        let request = ListEvents { filter: starts.clone(), from: Place::After(0), limit: 100 };
        let pids: Vec<u32> = client
            .events(&request)
            .await
            .unwrap()
            .events
            .iter()
            .filter_map(|event| match event {
                Received::Known(known) => match &known.event {
                    Event::DaemonStarted(started) => Some(started.pid),
                    _ => None,
                },
                Received::Unknown(_) => None,
            })
            .collect();
        if pids.last() == Some(&before.pid) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the start is never recorded: {pids:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn one_event_that_rotted_hides_no_other() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let ticks = scenario::of(vec![scenario::count("tick", 20, 1)]);
    let id = home.session(&client, &ticks).await.id.to_string();
    home.reaches(&id, "its end", |view| view.last_completion.as_deref() == Some("tick 20")).await;
    client.stop_daemon(true).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    // One byte of one body, as a disk would do it.
    let db = home.home.db();
    let mut bytes = fs::read(&db).unwrap();
    let rotten = br#"{"text":"tick 7"}"#;
    let place = bytes.windows(rotten.len()).position(|window| window == rotten).unwrap();
    bytes[place] = b'!';
    fs::write(&db, bytes).unwrap();
    for command in [vec!["events", "-o", "jsonl", "--session", &id], vec!["logs", &id]] {
        let output = home.run(&command);
        let (shown, said) =
            (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("STORE_CORRUPT"), "{command:?}: {said}");
        assert!(!output.status.success());
        for n in (1..=20).filter(|n| *n != 7) {
            assert!(shown.contains(&format!("tick {n}")), "{command:?} hides tick {n}: {shown}");
        }
        assert!(shown.contains("cannot be read") || shown.contains("UNREADABLE"), "{shown}");
    }
}

#[tokio::test]
async fn a_socket_that_was_removed_is_made_anew() {
    let home = TestHome::started(OSTLER).await;
    let daemon = home.daemon().unwrap();
    fs::remove_dir_all(home.home.run()).unwrap();
    wait::until("a new socket", wait::PATIENCE, || home.home.control_socket().exists());
    assert_eq!(home.client().await.status().await.unwrap().pid, daemon.pid);
}

#[tokio::test]
async fn a_keeper_that_hangs_is_killed_with_its_agent() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let (one, two) = (at_work(&home, &client).await, at_work(&home, &client).await);
    home.keeper(one).unwrap().signal(Signal::STOP);
    client.stop_session(&one.to_string(), true).await.unwrap();
    assert_eq!(home.ended(&one.to_string()).await.outcome, Some(Outcome::Killed));
    assert!(home.session_processes(one).is_empty());
    home.keeper(two).unwrap().signal(Signal::STOP);
    assert_eq!(client.halt(false, "").await.unwrap().sessions, 1, "a halt counts what it killed");
    assert!(home.session_processes(two).is_empty());
}

#[tokio::test]
async fn who_is_not_found_again_yet_has_been_so_no_longer_than_there_is_a_daemon() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, "hello").await.id.to_string();
    let is = |attention| move |view: &View| view.attention == Some(attention) && view.turns == 1;
    let rests = home.reaches(&id, "rest", is(Attention::Idle)).await;
    let keeper = home.keeper(rests.id).unwrap();
    keeper.signal(Signal::STOP);
    home.kill_daemon();
    let status = home.start().await.status().await.unwrap();
    let gone = home.reaches(&id, "its keeper's silence", is(Attention::Detached)).await;
    assert!(rests.attention_since < status.started && gone.attention_since >= rests.attention_since);
    let before_it_listened = status.started.since(gone.attention_since);
    assert!(before_it_listened < Duration::from_secs(1), "{before_it_listened:?}");
    keeper.signal(Signal::CONT);
    let again = home.reaches(&id, "rest", is(Attention::Idle)).await;
    assert_eq!(again.attention_since, rests.attention_since, "it has rested all the while");
}

#[tokio::test]
async fn a_session_whose_directory_was_removed_ends_lost() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = at_work(&home, &client).await;
    fs::remove_dir_all(home.home.session_dir(&id)).unwrap();
    let view = home.ended(&id.to_string()).await;
    assert_eq!((view.outcome, view.phase), (Some(Outcome::Lost), Phase::Ended));
    wait::until("the tree to be gone", Duration::from_secs(5), || home.session_processes(id).is_empty());
}

#[tokio::test]
async fn a_restart_that_cannot_be_is_refused_before_anything_is_stopped() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = at_work(&home, &client).await;
    let dir = home.campaign_dir();
    let moved = home.path().join("moved");
    fs::rename(&dir, &moved).unwrap();
    let refused = client.restart_session(&id.to_string()).await.unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::CampaignRoot);
    assert_eq!(
        client.session(&id.to_string()).await.unwrap().outcome,
        None,
        "the old one was stopped for nothing"
    );
    fs::rename(&moved, &dir).unwrap();
    client.restart_session(&id.to_string()).await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_another_s_id_is_not_guessed() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let first = home.session(&client, "hello").await;
    let mut shadow = ostler_client::CreateSession::new("shop", "script");
    shadow.name = Some(first.id.short().parse().unwrap());
    client.create_session(shadow).await.unwrap();
    let refused = client.session(&first.id.short()).await.unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::Ambiguous);
}

#[tokio::test]
async fn a_halt_reaches_those_whom_a_new_daemon_has_not_found_yet() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut sessions = Vec::new();
    for _ in 0..12 {
        sessions.push(at_work(&home, &client).await);
    }
    home.kill_daemon();
    let client = Client::connect_or_start(&home.home, home.program()).await.unwrap();
    client.halt(false, "fire").await.unwrap();
    for session in sessions {
        assert_eq!(home.ended(&session.to_string()).await.outcome, Some(Outcome::Killed));
        assert!(home.session_processes(session).is_empty());
    }
}

#[tokio::test]
async fn a_warden_that_takes_its_time_has_the_last_word_and_holds_up_no_halt() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script =
        json!({"run": ["sh", "-c", "mkdir -p vendor/.git/hooks; touch vendor/.git/config; exec sleep 300"]});
    let id = home.session(&client, &scenario::of(vec![script])).await.id;
    let config = home.campaign_dir().join("vendor/.git/config");
    wait::until("the repository", wait::PATIENCE, || config.exists());
    let keeper = home.keeper(id).unwrap();
    let [warden] = &home.children_of(&keeper)[..] else { panic!("a keeper has one child") };
    warden.signal(Signal::STOP);
    assert_eq!(client.halt(false, "").await.unwrap().sessions, 1, "its agent is dead");
    assert!(home.session_processes(id).is_empty());
    // Longer than a keeper has for ending its agent.
    tokio::time::sleep(Duration::from_secs(2)).await;
    client.stop_session(&id.to_string(), true).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    warden.signal(Signal::CONT);
    assert_eq!(home.ended(&id.to_string()).await.outcome, Some(Outcome::Killed));
    let events = home.events(&client, id).await;
    let names = events.iter().find_map(|recorded| match &recorded.event {
        Event::Tamper(tamper) => Some(tamper.names.clone()),
        _ => None,
    });
    assert_eq!(names, Some(vec!["vendor/.git".to_owned()]), "what the warden had to say is lost");
}
