//! Kills the daemon again and again under load, and then counts.
//!
//! Agents print numbered lines; people send numbered messages around the kills. Afterwards every line must be
//! there once and in order, and every acknowledged message delivered at most once, and never lost without a
//! receipt that says so.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ostler_client::{Client, CreateSession, SendMessage, Taken};
use ostler_domain::{MessageId, Receipt, SessionId, session::Attention};

use crate::{Seed, TestHome, numbers, scenario};

/// People who talk to the agents at once.
const TALKERS: u64 = 6;

/// How much, how often, and with which choices.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub sessions: usize,
    /// Kills of the daemon.
    pub rounds: u64,
    /// Lines that each agent prints, and the pause between two.
    pub lines: u64,
    pub every_ms: u64,
    pub seed: u64,
}

/// What was counted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    pub kills: u64,
    /// Kills of a daemon that had not finished starting.
    pub kills_in_recovery: u64,
    pub lines: u64,
    pub messages: u64,
    /// Messages whose fate nobody can know, and that say so.
    pub unknown: u64,
    pub slowest_restart: Duration,
}

struct Told {
    message: MessageId,
    session: SessionId,
    marker: String,
}

/// Runs the plan. Panics when a promise is broken.
pub async fn run(program: &std::path::Path, plan: Plan) -> Report {
    let home = Arc::new(TestHome::started(program).await);
    let mut seed = Seed::of(plan.seed);
    let client = home.client().await;
    let mut ids = Vec::new();
    for _ in 0..plan.sessions {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(vec![scenario::count("line", plan.lines, plan.every_ms)]));
        ids.push(client.create_session(wanted).await.unwrap().id);
    }
    let done = Arc::new(AtomicBool::new(false));
    let talkers: Vec<_> = (1..=TALKERS)
        .map(|n| tokio::spawn(talk(home.clone(), ids.clone(), n, Seed::of(plan.seed ^ n), done.clone())))
        .collect();
    let mut report = Report::default();
    for _ in 0..plan.rounds {
        tokio::time::sleep(Duration::from_millis(seed.below(400))).await;
        home.kill_daemon();
        report.kills += 1;
        let restarted = Instant::now();
        if seed.chance(40) {
            // Dies again while it is coming back.
            let starting = home.command(&["daemon", "run", "--background"]).spawn();
            tokio::time::sleep(Duration::from_millis(seed.below(60))).await;
            if let Ok(mut starting) = starting {
                let _ = starting.kill();
                let _ = starting.wait();
                report.kills_in_recovery += 1;
            }
        }
        // Otherwise a keeper or the next caller starts one.
        if seed.chance(50) {
            let _ = Client::connect_or_start(&home.home, home.program()).await;
            report.slowest_restart = report.slowest_restart.max(restarted.elapsed());
        }
    }
    done.store(true, Ordering::Release);
    let mut told = Vec::new();
    for talker in talkers {
        told.extend(talker.await.unwrap());
    }
    let _ = Client::connect_or_start(&home.home, home.program()).await;
    count(&home, &ids, plan, &told, &mut report).await;
    report
}

/// Says things to random sessions, whatever happens to the daemon meanwhile.
async fn talk(
    home: Arc<TestHome>,
    ids: Vec<SessionId>,
    talker: u64,
    mut seed: Seed,
    done: Arc<AtomicBool>,
) -> Vec<Told> {
    let said = AtomicU64::new(0);
    let mut told = Vec::new();
    while !done.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(20 + seed.below(60))).await;
        let session = ids[usize::try_from(seed.below(ids.len() as u64)).unwrap()];
        let marker = format!("marker-{talker}-{}", said.fetch_add(1, Ordering::Relaxed));
        let Ok(client) = Client::connect(&home.home).await else { continue };
        let message = SendMessage {
            who: session.to_string(),
            text: scenario::of(vec![scenario::say(&marker)]),
            ..SendMessage::default()
        };
        // An error promises nothing; only what was acknowledged counts.
        if let Ok(Some(sent)) = client.send_message(message).await.map(Taken::sent) {
            told.push(Told { message: sent.message, session: sent.session.id, marker });
        }
    }
    told
}

async fn count(home: &TestHome, ids: &[SessionId], plan: Plan, told: &[Told], report: &mut Report) {
    for id in ids {
        let who = id.to_string();
        home.reaches(&who, "the agent to finish", |view| {
            view.attention == Some(Attention::Idle) && view.messages_waiting == 0
        })
        .await;
    }
    let client = home.client().await;
    let mut logs = std::collections::HashMap::new();
    for id in ids {
        let events = home.events(&client, *id).await;
        numbers::assert_gapless(&events, &id.to_string());
        let lines = numbers::counted(&events, "line");
        numbers::assert_complete(&lines, plan.lines, &id.to_string());
        report.lines += lines.len() as u64;
        logs.insert(*id, events);
    }
    for Told { message, session, marker } in told {
        let times = logs[session]
            .iter()
            .filter(|recorded| matches!(&recorded.event, ostler_domain::Event::AgentCompletion(text) if text.text == *marker))
            .count();
        let receipt = client.message(&message.to_string()).await.unwrap().receipt;
        assert!(times <= 1, "{marker} was delivered {times} times");
        assert!(
            times == 1 || matches!(receipt, Receipt::Unknown | Receipt::Accepted),
            "{marker} is lost and its receipt says {receipt:?}"
        );
        report.messages += 1;
        report.unknown += u64::from(receipt == Receipt::Unknown);
    }
}
