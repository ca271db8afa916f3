//! Things are already broken, and an agent must end all the same.

use std::{fs, time::Duration};

use ostler_client::Client;
use ostler_domain::{
    Reason,
    session::{Attention, Outcome, Phase},
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
