//! Things break: keepers, disks, sockets, databases, clocks. What breaks is said, and nothing else suffers.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::Command,
    time::Duration,
};

use ostler_client::{Client, CreateSession};
use ostler_domain::{
    Event, Kind, Reason,
    query::{EventFilter, Page, SessionFilter},
    session::{Attention, Outcome, Status},
};
use ostler_testkit::{TestHome, numbers, scenario, skip, wait};
use serde_json::json;

use crate::OSTLER;

fn counting(n: u64) -> String {
    scenario::of(vec![scenario::count("tick", n, 10)])
}

#[tokio::test]
async fn a_killed_keeper_takes_its_agent_along_and_is_recorded() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let bystander = home.session(&client, &counting(200)).await;
    // A grandchild that nobody's parent-death signal reaches.
    let steps =
        vec![scenario::say("now"), json!({"run": ["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & wait"]})];
    let victim = home.session(&client, &scenario::of(steps)).await;
    wait::until("the tree to grow", wait::PATIENCE, || home.session_processes(victim.id).len() >= 3);
    home.keeper(victim.id).unwrap().kill_and_wait();
    let view = home.ended(&victim.id.to_string()).await;
    assert_eq!((view.outcome, view.status), (Some(Outcome::Lost), Status::Failed));
    assert!(view.obituary.as_ref().unwrap().sentence.contains("keeper"), "{:?}", view.obituary);
    wait::until("the tree to be gone", Duration::from_secs(5), || {
        home.session_processes(victim.id).is_empty()
    });
    home.reaches(&bystander.id.to_string(), "the bystander to finish", |view| {
        view.attention == Some(Attention::Idle)
    })
    .await;
    numbers::assert_complete(
        &numbers::counted(&home.events(&client, bystander.id).await, "tick"),
        200,
        "the bystander",
    );
}

#[tokio::test]
async fn what_outlives_keeper_and_init_is_found_ended_and_recorded() {
    let home = TestHome::started_unconfined(OSTLER).await;
    let client = home.client().await;
    let steps =
        vec![scenario::say("now"), json!({"run": ["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & wait"]})];
    let victim = home.session(&client, &scenario::of(steps)).await;
    wait::until("the tree to grow", wait::PATIENCE, || home.session_processes(victim.id).len() >= 3);
    // Both at once, so that neither can clean up after the other; only the detached grandchild is left.
    let keeper = home.keeper(victim.id).unwrap();
    keeper.signal(rustix::process::Signal::STOP);
    for init in home.children_of(&keeper) {
        init.kill();
    }
    keeper.kill_and_wait();
    let view = home.ended(&victim.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Lost));
    wait::until("the tree to be gone", Duration::from_secs(5), || {
        home.session_processes(victim.id).is_empty()
    });
    let events = home.events(&client, victim.id).await;
    assert!(
        events.iter().any(|event| event.event.kind() == Kind::LeftoversEnded),
        "what outlived the keeper was not recorded"
    );
}

#[tokio::test]
async fn a_keeper_killed_while_no_daemon_runs_is_found_out() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let victim = home.session(&client, &counting(100_000)).await;
    home.reaches(&victim.id.to_string(), "work", |view| view.last_completion.is_some()).await;
    let keeper = home.keeper(victim.id).unwrap();
    client.stop_daemon(false).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    keeper.kill_and_wait();
    let client = home.start().await;
    let view = home.ended(&victim.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Lost));
    let events = home.events(&client, victim.id).await;
    let counted = numbers::counted(&events, "tick");
    numbers::assert_complete(&counted, counted.len() as u64, "what was taped before");
}

#[tokio::test]
async fn a_daemon_that_dies_between_commit_and_effect_does_it_when_it_is_back() {
    for pass in [1, 2, 3, 4, 5, 6, 8] {
        let home = TestHome::new(OSTLER);
        let dir = home.campaign_dir();
        // Dies right after the commit number `pass` of a session.
        let mut daemon = home
            .command(&["daemon", "run"])
            .env("OSTLER_FAULT", format!("before-effects:{pass}"))
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let client = wait_for_client(&home).await;
        client
            .add_campaign(ostler_client::AddCampaign {
                path: dir.display().to_string(),
                name: Some("shop".parse().unwrap()),
            })
            .await
            .unwrap();
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(vec![scenario::count("tick", 20, 5)]));
        wanted.ends_with_turn = true;
        // The answer may die with the daemon; what it says is committed either way.
        let answer = client.create_session(wanted).await;
        wait::until("the daemon to die at the fault", wait::PATIENCE, || {
            daemon.try_wait().unwrap().is_some()
        });
        let client = home.start().await;
        let all = client.sessions(&SessionFilter::default(), Page::of(10, None)).await.unwrap().rows;
        let id = all[0].id;
        assert_eq!(all.len(), 1, "created once");
        assert!(answer.is_err() || answer.is_ok_and(|created| created.id == id));
        let view = home.ended(&id.to_string()).await;
        assert_eq!(view.outcome, Some(Outcome::Done), "fault at pass {pass}: {:?}", view.obituary);
        let events = home.events(&client, id).await;
        numbers::assert_gapless(&events, "the session");
        numbers::assert_complete(&numbers::counted(&events, "tick"), 20, &format!("fault at pass {pass}"));
    }
}

async fn wait_for_client(home: &TestHome) -> Client {
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        match Client::connect(&home.home).await {
            Ok(client) => return client,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_second_daemon_says_who_is_there() {
    let home = TestHome::started(OSTLER).await;
    let output = home.run(&["daemon", "run"]);
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(&home.daemon().unwrap().pid.to_string()), "{text}");
}

#[tokio::test]
async fn a_stale_socket_and_a_stale_file_are_taken_over() {
    let home = TestHome::new(OSTLER);
    fs::create_dir_all(home.home.run()).unwrap();
    drop(UnixListener::bind(home.home.control_socket()).unwrap());
    assert!(home.home.control_socket().exists());
    home.start().await.status().await.unwrap();
    // Killed, it leaves everything behind; the next one takes it over.
    home.kill_daemon();
    home.start().await.status().await.unwrap();
    let mode = fs::metadata(home.home.control_socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    for dir in [home.home.state(), home.home.run()] {
        assert_eq!(fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700, "{}", dir.display());
    }
}

#[tokio::test]
async fn a_damaged_record_is_refused_and_left_alone() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("garbage", |db| {
            fs::write(db, b"this is no database, and never was one, whatever its name says").unwrap()
        }),
        ("empty", |db| fs::write(db, b"").unwrap()),
        ("truncated", |db| {
            let bytes = fs::read(db).unwrap();
            fs::write(db, &bytes[..bytes.len() / 3]).unwrap();
        }),
        ("gone", |db| fs::remove_file(db).unwrap()),
    ];
    for (name, damage) in damages {
        let home = TestHome::started(OSTLER).await;
        home.client().await.stop_daemon(true).await.unwrap();
        wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
        let db = home.home.db();
        damage(&db);
        let before = fs::read(&db).ok();
        let output = home.run(&["daemon", "run"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains("STORE_CORRUPT"), "{name}: {text}");
        assert_eq!(fs::read(&db).ok(), before, "{name}: the damaged file was changed");
        // The starter says the same, instead of waiting in vain.
        let error = Client::connect_or_start(&home.home, home.program()).await.unwrap_err();
        assert!(error.to_string().to_lowercase().contains("daemon") || !error.to_string().is_empty());
    }
}

#[tokio::test]
async fn a_watcher_that_does_not_read_costs_nobody_anything() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    // Watches that are opened and never read, and one that is dropped at once.
    let mut stuck = vec![];
    for _ in 0..20 {
        stuck.push(home.client().await.watch(EventFilter::default(), Some(0)).await.unwrap());
    }
    drop(home.client().await.watch(EventFilter::default(), Some(0)).await.unwrap());
    let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 3_000, 0)])).await.id;
    home.reaches(&id.to_string(), "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    // A slow one reads all of it later, in order and once.
    let mut seen = vec![];
    while seen.len() < 3_000 {
        match stuck[0].next().await.unwrap().unwrap() {
            ostler_client::Watched::Event(recorded) => {
                if let Event::AgentCompletion(text) = &recorded.event {
                    seen.push(text.text["tick ".len()..].parse::<u64>().unwrap());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    numbers::assert_complete(&seen, 3_000, "the slow watcher");
}

#[tokio::test]
async fn a_watch_goes_on_over_a_killed_daemon_without_gap_or_double() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, &counting(200)).await.id;
    let filter =
        EventFilter { session: Some(id), kinds: vec![Kind::AgentCompletion], ..EventFilter::default() };
    let mut watch = client.watch(filter, Some(0)).await.unwrap();
    let mut seen: Vec<u64> = vec![];
    let mut reconnected = 0;
    while seen.len() < 200 {
        match watch.next().await.unwrap().unwrap() {
            ostler_client::Watched::Event(recorded) => {
                let Event::AgentCompletion(text) = &recorded.event else {
                    panic!("the filter let {:?} through", recorded.event)
                };
                seen.push(text.text["tick ".len()..].parse().unwrap());
                if seen.len() == 50 || seen.len() == 120 {
                    home.kill_daemon();
                    home.start().await;
                }
            }
            ostler_client::Watched::Reconnected => reconnected += 1,
            other => panic!("{other:?}"),
        }
    }
    numbers::assert_complete(&seen, 200, "the watcher");
    assert!(reconnected >= 1);
}

/// Mounts a small file system for the state directory; only root can.
pub(crate) struct SmallDisk {
    dir: std::path::PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(dir: &Path, bytes: &str) -> Option<Self> {
        fs::create_dir_all(dir).unwrap();
        let options = format!("size={bytes},mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "ostler-test"]).arg(dir).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip::lacking("mounting a small file system needs root");
            return None;
        }
        Some(Self { dir: dir.to_owned() })
    }

    fn remount(&self, options: &str) {
        assert!(
            Command::new("mount")
                .args(["-o", &format!("remount,{options}")])
                .arg(&self.dir)
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

#[tokio::test]
async fn a_full_disk_holds_everything_and_loses_nothing() {
    let home = TestHome::new(OSTLER);
    let Some(disk) = SmallDisk::mount(home.home.state(), "24m") else { return };
    let client = home.start().await;
    let dir = home.campaign_dir();
    client
        .add_campaign(ostler_client::AddCampaign {
            path: dir.display().to_string(),
            name: Some("shop".parse().unwrap()),
        })
        .await
        .unwrap();
    let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 400, 10)])).await.id;
    home.reaches(&id.to_string(), "work", |view| view.last_completion.is_some()).await;
    // Fill what is left.
    let filler = home.home.state().join("filler");
    let _ = fs::write(&filler, vec![0_u8; 24 * 1024 * 1024]);
    // New things are refused with the reason, and reading goes on.
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some("hello".into());
    let refused = client.create_session(wanted).await;
    if let Err(error) = &refused {
        assert_eq!(error.to_refusal().reason, Reason::DiskFull, "{error}");
    }
    client.session(&id.to_string()).await.unwrap();
    std::thread::sleep(Duration::from_millis(500));
    fs::remove_file(&filler).unwrap();
    home.reaches(&id.to_string(), "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    let events = home.events(&client, id).await;
    numbers::assert_gapless(&events, "the session");
    numbers::assert_complete(&numbers::counted(&events, "tick"), 400, "the session on a full disk");
    drop(disk);
}

#[tokio::test]
async fn a_record_on_a_read_only_file_system_is_said_to_be() {
    let home = TestHome::new(OSTLER);
    let Some(disk) = SmallDisk::mount(home.home.state(), "24m") else { return };
    home.start().await.stop_daemon(true).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    disk.remount("ro");
    let output = home.run(&["daemon", "run"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("STORE_READ_ONLY"), "{text}");
    disk.remount("rw");
    home.start().await.status().await.unwrap();
}
