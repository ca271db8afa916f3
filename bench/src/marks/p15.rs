//! P15: missions. What a decision costs in a large one, how fast a wide one starts its agents beside the same agents
//! started one by one, and what the daemon takes for it.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use ostler_client::{Client, CreateMission, CreateSession, Watch, Watched, query::EventFilter};
use ostler_domain::{
    CampaignId, Event, Kind, MissionId, Now, SessionId, Time,
    budget::Used,
    event::By,
    mission::{
        Context, Effect, Input, Product, Request, SessionEnd, Spent, StartSession, State, create, decide,
        plan::{Terms, read},
    },
    session::Outcome as SessionOutcome,
    time::BootId,
};
use ostler_testkit::{TestHome, scenario};

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::procfs,
};

/// What stands beside a large mission.
const SMALL: usize = 100;
/// Agents at work at once while decisions are counted.
const AT_ONCE: usize = 50;
/// How long a daemon is left alone before it is looked at.
const REST: Duration = Duration::from_secs(2);

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let (agents, assignments) = (bench.agents, bench.assignments);
    let (mut large, mut small) = (Vec::new(), Vec::new());
    let (mut fan_out, mut one_by_one) = (Vec::new(), Vec::new());
    let (mut wide, mut many) = (Vec::new(), Vec::new());
    for round in 1..=bench.rounds {
        large.push(microseconds_for_a_decision(assignments)?);
        small.push(microseconds_for_a_decision(SMALL)?);
        let (rate, grown) = runtime.block_on(fanned_out(bench))?;
        fan_out.push(rate);
        wide.push(grown);
        one_by_one.push(runtime.block_on(started_singly(bench))?);
        many.push(runtime.block_on(kept(bench))?);
        let at = round - 1;
        say(&format!(
            "  round {round}: {:.1} µs a decision, {:.1} starts/s, singly {:.1}/s",
            large[at], fan_out[at], one_by_one[at]
        ));
    }
    let sample = |unit, values: Vec<f64>| Sample::new(unit, values);
    Ok(Section {
        name: "P15",
        rows: vec![
            Row::new(
                format!("a decision in a mission of {assignments} assignments; raw is one of {SMALL}"),
                sample(Unit::Microseconds, large),
                Goal::RatioAtMost(3.0),
            )
            .beside(sample(Unit::Microseconds, small)),
            Row::new(
                format!("sandboxed agents ready, a mission of {agents} at once; raw is {agents} sessions by themselves"),
                sample(Unit::PerSecond, fan_out),
                Goal::RatioAtLeast(0.8),
            )
            .beside(sample(Unit::PerSecond, one_by_one)),
            Row::new(
                format!("what the daemon has grown by with {agents} agents of a mission at work"),
                sample(Unit::Megabytes, wide),
                Goal::Shown,
            ),
            Row::new(
                format!("what it has grown by with a mission of {assignments} assignments, one of them at work"),
                sample(Unit::Megabytes, many),
                Goal::Shown,
            ),
        ],
        notes: vec![
            "A decision is one call of the scheduler with what follows from it: a session that ended, the assignment that is over, \
             the next one that starts. The daemon adds a durable commit to each."
                .to_owned(),
        ],
    })
}

fn plan(instances: usize, at_once: usize, task: &str) -> String {
    format!(
        "objective = \"Measure\"\nstrategy = \"parallel\"\n[defaults]\nprovider = \"script\"\nretries = 0\n\
         [limits]\nconcurrency = {at_once}\n[[agents]]\nname = \"a\"\ninstances = {instances}\ntask = '''\n{task}\n'''\n"
    )
}

fn context(step: u64) -> Context {
    let wall = Time::from_micros(1_763_000_000_000_000 + i64::try_from(step).unwrap_or(0));
    let now = Now { wall, since_boot: Duration::from_micros(step), boot: BootId::default() };
    Context {
        now,
        entropy: u128::from(step) << 20,
        used: Used::default(),
        paused_by_hand: BTreeSet::new(),
        halted: false,
    }
}

/// Plays a mission to its end, as the engine would: every session starts, and ends well.
fn microseconds_for_a_decision(assignments: usize) -> Outcome<f64> {
    let plan =
        read(&plan(assignments, AT_ONCE, "t"), &Terms::default()).map_err(|faults| faults.to_string())?;
    let by = By("bench".to_owned());
    let first = Time::from_micros(1_763_000_000_000_000);
    let (id, campaign) = (MissionId::new(first, 7), CampaignId::new(first, 1));
    let name = plan.named();
    let created =
        create(plan, id, campaign, name, by.clone(), &context(0)).map_err(|error| error.to_string())?;
    let mut state = State::replay([(first, &created)]).ok_or("the mission cannot be replayed")?;
    let mut at_work: VecDeque<StartSession> = VecDeque::new();
    let mut next = Some(Input::Request(Request::Start { forecast: None }, by));
    let (mut decisions, mut took) = (0_u64, Duration::ZERO);
    while let Some(input) = next.take() {
        let context = context(decisions + 1);
        let began = Instant::now();
        let decision = decide(&state, input, &context).map_err(|error| error.to_string())?;
        for event in &decision.events {
            state.apply(context.now.wall, event);
        }
        took += began.elapsed();
        decisions += 1;
        at_work.extend(decision.effects.into_iter().filter_map(|effect| match effect {
            Effect::Start(start) => Some(start),
            _ => None,
        }));
        next = at_work.pop_front().map(ended);
    }
    if !state.is_over() {
        return Err("the mission did not come to its end".into());
    }
    Ok(took.as_secs_f64() * 1e6 / decisions as f64)
}

fn ended(start: StartSession) -> Input {
    let StartSession { assignment, attempt, session, .. } = start;
    let end = SessionEnd {
        outcome: SessionOutcome::Done,
        why: String::new(),
        said_done: false,
        is_final: false,
        product: Product { text: "done".to_owned(), outputs: Vec::new() },
        spent: Spent::default(),
    };
    Input::SessionEnded { assignment, attempt, session, end: Box::new(end) }
}

/// What an agent plays that stays at work until it is ended.
fn busy() -> String {
    scenario::of(vec![serde_json::json!({"run": ["sleep", "600"]})])
}

fn mission(instances: usize, at_once: usize) -> CreateMission {
    let task = format!("```scenario\n{}\n```", busy());
    CreateMission {
        campaign: "shop".to_owned(),
        plan: plan(instances, at_once, &task),
        starts: true,
        ..CreateMission::default()
    }
}

/// Agents ready in a second, from asking for the mission to the last of them; and what the daemon has grown by.
async fn fanned_out(bench: &Bench) -> Outcome<(f64, f64)> {
    let home = TestHome::started(&bench.ostler).await;
    let client = home.client().await;
    let before = resident(&client).await?;
    let mut watch = started(&client).await?;
    let began = Instant::now();
    client.create_mission(mission(bench.agents, bench.agents)).await?;
    all_ready(&mut watch, bench.agents).await?;
    let rate = bench.agents as f64 / began.elapsed().as_secs_f64();
    tokio::time::sleep(REST).await;
    let grown = resident(&client).await? - before;
    client.halt(false, "measured").await?;
    Ok((rate, grown))
}

/// The same agents, each asked for by itself.
async fn started_singly(bench: &Bench) -> Outcome<f64> {
    let home = TestHome::started(&bench.ostler).await;
    let client = home.client().await;
    let mut watch = started(&client).await?;
    let began = Instant::now();
    for _ in 0..bench.agents {
        let wanted = CreateSession {
            initial_message: Some(busy()),
            ends_with_turn: true,
            ..CreateSession::new("shop", "script")
        };
        client.create_session(wanted).await?;
    }
    all_ready(&mut watch, bench.agents).await?;
    let rate = bench.agents as f64 / began.elapsed().as_secs_f64();
    client.halt(false, "measured").await?;
    Ok(rate)
}

/// What the daemon has grown by with one large mission.
async fn kept(bench: &Bench) -> Outcome<f64> {
    let home = TestHome::started(&bench.ostler).await;
    let client = home.client().await;
    let before = resident(&client).await?;
    let mut watch = started(&client).await?;
    client.create_mission(mission(bench.assignments, 1)).await?;
    all_ready(&mut watch, 1).await?;
    tokio::time::sleep(REST).await;
    let grown = resident(&client).await? - before;
    client.halt(false, "measured").await?;
    Ok(grown)
}

async fn started(client: &Client) -> Outcome<Watch> {
    let kinds = vec![Kind::SessionStarted, Kind::SessionFailed];
    Ok(client.watch(EventFilter { kinds, ..EventFilter::default() }, None).await?)
}

async fn all_ready(watch: &mut Watch, count: usize) -> Outcome<()> {
    let mut ready: BTreeSet<SessionId> = BTreeSet::new();
    while ready.len() < count {
        match watch.next().await {
            Some(Ok(Watched::Event(event))) => match &event.event {
                Event::SessionStarted(_) => ready.extend(event.session),
                _ => return Err("a session did not start".into()),
            },
            Some(Ok(_)) => {}
            _ => return Err("the daemon is gone".into()),
        }
    }
    Ok(())
}

/// In megabytes.
async fn resident(client: &Client) -> Outcome<f64> {
    let pid = client.status().await?.pid;
    Ok(procfs::resident(pid) as f64 / f64::from(1 << 20))
}
