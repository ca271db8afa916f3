//! Machines that are set up from files, and campaigns whose directories move.

use std::{fs, path::Path};

use ostler_client::{Client, CreateSession};
use ostler_domain::{
    Reason,
    session::{Outcome, Status, View},
};
use ostler_testkit::{TestHome, scenario};

use crate::{OSTLER, money::waits_for};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/fleet.md");
    fs::read_to_string(page).unwrap()
}

#[tokio::test]
async fn campaigns_are_made_as_the_page_declares_them() {
    let home = TestHome::started(OSTLER).await;
    let page = page();
    let (_, toml) = page.split_once("```toml\n").unwrap();
    let (toml, _) = toml.split_once("```").unwrap();
    let code = home.path().join("code");
    for name in ["shop-2", "site"] {
        fs::create_dir_all(code.join(name)).unwrap();
    }
    // The home that the tests begin with has a campaign of that name.
    let toml = toml.replace("campaigns.shop", "campaigns.shop-2").replace("~/code/shop", "~/code/shop-2");
    let file = home.path().join("fleet.toml");
    fs::write(&file, toml.replace("~/code", &code.display().to_string())).unwrap();
    let file = file.display().to_string();
    let apply = |more: &[&str]| {
        let output = home.run(&[&["campaign", "apply", file.as_str()], more].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };

    let (code, shown, _) = apply(&["--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("+ shop-2") && shown.contains("budget  default (none) → 25usd/day"), "{shown}");
    let names = || home.run(&["campaign", "ls", "-o", "name"]).stdout;
    assert_eq!(names(), b"shop\n", "it was only shown");
    let (code, _, said) = apply(&[]);
    assert!(code == Some(2) && said.contains("-y"), "{said}");
    assert_eq!(names(), b"shop\n");

    let (code, _, said) = apply(&["-y"]);
    assert_eq!(code, Some(0), "{said}");
    let made = home.client().await.campaign("shop-2").await.unwrap();
    assert_eq!(made.policy.read, ["@rust", "@node"]);
    assert_eq!((made.policy.limits.sessions, made.policy.approve_rule.len()), (Some(12), 2));
    let (_, shown, _) = apply(&["-y"]);
    assert!(shown.contains("= shop-2") && shown.contains("= site") && !shown.contains('→'), "{shown}");
    assert!(shown.contains("1 campaign is not in the file"), "{shown}");

    // What was added by hand stays, what is declared comes back.
    assert!(home.run(&["campaign", "set", "shop-2", "commands+=make", "budget="]).status.success());
    let (_, shown, _) = apply(&["-y", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["applied"], true);
    assert_eq!(shown["campaigns"][0]["changes"][0]["key"], "budget");
    let made = home.client().await.campaign("shop-2").await.unwrap();
    assert!(made.policy.budget.is_some() && made.policy.commands == ["make"]);
}

#[tokio::test]
async fn a_campaign_that_was_moved_goes_on_where_it_is_said_to_be() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let begin = async || {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(vec![]));
        wanted.ends_with_turn = true;
        client.create_session(wanted).await
    };
    let first = begin().await.unwrap();
    assert_eq!(home.ended(&first.id.to_string()).await.outcome, Some(Outcome::Done));

    let (old, new) = (home.campaign_dir(), home.path().join("moved"));
    fs::rename(&old, &new).unwrap();
    let gone = begin().await.unwrap_err().to_refusal();
    assert!(gone.hints[0].command.contains("campaign relink shop DIR"), "{gone:?}");
    // Another directory in its place is not taken for it.
    fs::create_dir(&old).unwrap();
    let other = begin().await.unwrap_err().to_refusal();
    assert_eq!(other.reason, Reason::CampaignMoved, "{other:?}");
    assert!(other.hints[0].command.contains("campaign relink shop"), "{other:?}");

    let new = new.display().to_string();
    let relinked = home.run(&["campaign", "relink", "shop", &new]);
    assert!(relinked.status.success(), "{relinked:?}");
    let second = begin().await.unwrap();
    assert_eq!(second.working_dir, fs::canonicalize(&new).unwrap().to_string_lossy());
    assert_eq!(home.ended(&second.id.to_string()).await.outcome, Some(Outcome::Done));
    // Conversations of before go on there too.
    let resumed = client.restart_session(&first.id.to_string()).await.unwrap();
    assert_eq!(resumed.working_dir, second.working_dir);

    // It is the log that knows it.
    home.kill_daemon();
    let client = home.start().await;
    assert_eq!(client.campaign("shop").await.unwrap().root.path, second.working_dir);
    let refused = home.run(&["campaign", "relink", "shop", "/etc"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[tokio::test]
async fn on_a_drained_machine_nothing_new_starts_and_what_runs_goes_on() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let begin = async |client: &Client, steps| {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(steps));
        wanted.ends_with_turn = true;
        client.create_session(wanted).await.unwrap().id.to_string()
    };
    let works = begin(&client, vec![waits_for("go")]).await;
    home.reaches(&works, "its work", |view| view.status == Status::Working).await;
    let drained = home.run(&["node", "drain", "-m", "kernel update"]);
    assert!(String::from_utf8_lossy(&drained.stdout).contains("1 agent works"), "{drained:?}");
    let waits = begin(&client, vec![]).await;
    let is_told = |view: &View| view.evidence.contains("kernel update");
    home.reaches(&waits, "the reason to wait", is_told).await;
    let late = home.run(&["node", "drain", "--wait", "--timeout", "300ms", "-m", "kernel update"]);
    assert_eq!(late.status.code(), Some(8), "{late:?}");

    // A new daemon holds it too.
    home.kill_daemon();
    let client = home.start().await;
    let view = home.reaches(&waits, "the reason once more", is_told).await;
    assert_eq!(view.status, Status::Created);
    let listed = home.run(&["ls"]);
    assert!(String::from_utf8_lossy(&listed.stderr).contains("ostler node drain --end"), "{listed:?}");
    // What waits for it is told to it before anybody says that all is quiet.
    assert!(home.run(&["send", &works, &scenario::of(vec![])]).status.success());
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    let waited = home.run(&["node", "drain", "--wait", "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&waited.stdout).unwrap();
    assert!(waited.status.success() && said["working"].as_array().unwrap().is_empty(), "{said}");
    assert_eq!(home.ended(&works).await.outcome, Some(Outcome::Done));
    assert_eq!(client.session(&waits).await.unwrap().status, Status::Created);

    assert!(home.run(&["node", "drain", "--end"]).status.success());
    assert_eq!(home.ended(&waits).await.outcome, Some(Outcome::Done));
    let again = home.run(&["node", "drain", "--end"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("it was not drained"), "{again:?}");
}
