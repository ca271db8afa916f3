//! A mission of which some is done, at the fixed moment.

use std::time::Duration;

use ostler_client::{
    Mission, Session,
    reply::{AssignmentRow, MissionEta, WholeMission},
};
use ostler_domain::{
    CampaignId, Event, MissionId,
    event::{AssignmentEnded, AssignmentStarted, AssignmentsReady, By, MissionStarted},
    mission::{
        self, AssignmentStatus, Beside, Context, Counts, Key, Spent, State,
        eta::HitRate,
        plan::{Terms, read},
    },
    price::Dollars,
    session::{Attention, Doing, Outcome, Status},
};

use super::{NOW, ago, session};
use crate::mission::show::moment;

const PLAN: &str = r#"
objective = "Move the checkout into its own crate, tests green, reviewed"
name = "checkout-v2"
strategy = "pipeline"
budget = "20usd"
[defaults]
worktree = true
[merge]
into = "main"
[[agents]]
name = "plan"
role = "planner"
stage = 1
task = "t"
[[agents]]
name = "build-api"
role = "builder"
stage = 2
task = "t"
[[agents]]
name = "build-db"
role = "builder"
stage = 2
task = "t"
[[agents]]
name = "build-ui"
role = "builder"
stage = 2
task = "t"
[[agents]]
name = "review"
role = "reviewer"
stage = 3
task = "t"
"#;

/// A mission, and the sessions of its members.
pub struct Stage {
    pub state: State,
    pub sessions: Vec<Session>,
}

impl Stage {
    /// A mission that was started eighteen minutes ago.
    fn new(text: &str) -> Self {
        let plan = read(text, &Terms::default()).unwrap();
        let context = Context {
            now: moment(ago(1_100)),
            entropy: 7,
            used: Default::default(),
            paused_by_hand: Default::default(),
            halted: false,
        };
        let (id, campaign) = (MissionId::new(ago(1_100), 7), CampaignId::new(ago(1_100), 1));
        let created =
            mission::create(plan.clone(), id, campaign, plan.named(), By("ann".to_owned()), &context);
        let state = State::replay([(ago(1_100), &created.unwrap())]).unwrap();
        let mut stage = Self { state, sessions: Vec::new() };
        let started =
            MissionStarted { mission: id, by: By("ann".to_owned()), deadline: None, forecast: None };
        stage.state.apply(ago(1_090), &Event::MissionStarted(started));
        stage
    }

    pub fn start(&mut self, place: usize, seconds_ago: i64) {
        let member = session(u32::try_from(place).unwrap(), "member");
        let (mission, id) = (self.state.id(), self.state.slots()[place].assignment.id);
        let ready = AssignmentsReady { mission, assignments: vec![id] };
        self.state.apply(ago(seconds_ago), &Event::AssignmentsReady(ready));
        let key = Key::of(mission, &self.state.slots()[place].assignment, self.state.work(place));
        let started = AssignmentStarted {
            mission,
            assignment: id,
            attempt: 1,
            session: member.id,
            continues: None,
            key,
        };
        self.state.apply(ago(seconds_ago), &Event::AssignmentStarted(started));
        self.sessions.push(member);
    }

    pub fn end(&mut self, place: usize, seconds_ago: i64, status: AssignmentStatus, cents: u64) {
        let cost = Dollars(cents * 10_000);
        let slot = &self.state.slots()[place];
        let ended = AssignmentEnded {
            mission: self.state.id(),
            assignment: slot.assignment.id,
            status,
            attempt: 1,
            session: slot.session(),
            outcome: Some(Outcome::Done),
            why: match status {
                AssignmentStatus::Completed => String::new(),
                _ => "the agent's process ended within a turn (signal 9)".to_owned(),
            },
            product: Default::default(),
            spent: Spent { usage: Default::default(), cost, unpriced: false },
            took_us: None,
        };
        if let Some(member) = slot.session().and_then(|id| self.sessions.iter_mut().find(|one| one.id == id))
        {
            member.cost.paid = cost;
        }
        self.state.apply(ago(seconds_ago), &Event::AssignmentEnded(Box::new(ended)));
    }
}

/// So many with one task, side by side.
pub fn crowd(of: u32) -> Stage {
    let member = format!("[[agents]]\nname = \"member\"\ninstances = {of}\ntask = \"t\"\n");
    Stage::new(&format!("objective = \"Many hands\"\nname = \"crowd\"\n{member}"))
}

pub fn in_the_middle() -> Stage {
    let mut stage = Stage::new(PLAN);
    stage.start(0, 1_080);
    stage.end(0, 900, AssignmentStatus::Completed, 41);
    for place in 1..=3 {
        stage.start(place, 660);
    }
    stage.end(1, 120, AssignmentStatus::Completed, 210);
    stage.end(2, 240, AssignmentStatus::Completed, 166);
    let busy = stage.sessions.last_mut().unwrap();
    busy.status = Status::Working;
    busy.attention = Some(Attention::Working);
    busy.doing = Some(Doing { text: "run: npm test".to_owned(), since: ago(31) });
    busy.cost.paid = Dollars(2_250_000);
    stage
}

fn eta() -> MissionEta {
    let minutes = |n: u64| Duration::from_secs(n * 60);
    let interval = mission::Interval::new(minutes(10), minutes(14), minutes(22));
    let rate = HitRate { held: 30, of: 37 };
    MissionEta { words: mission::eta::Eta::In(interval).words(&rate), interval: Some(interval), rate }
}

/// The same as the daemon tells it.
pub fn whole(stage: &Stage) -> WholeMission {
    let (state, progress) = (&stage.state, stage.state.progress().all);
    let mission = Mission {
        id: state.id(),
        campaign: state.campaign(),
        name: state.name().clone(),
        objective: state.plan().objective.clone(),
        strategy: state.plan().strategy,
        status: state.status(),
        created_at: state.created_at(),
        started_at: state.started_at(),
        ended_at: None,
        updated_at: NOW,
        counts: Counts {
            total: progress.total,
            completed: progress.completed,
            failed: progress.failed,
            ..Counts::default()
        },
        spent: state.spent(),
    };
    WholeMission {
        mission,
        assignments: AssignmentRow::all(state, &moment(NOW), &Beside::default()),
        wait: String::new(),
        eta: eta(),
        collisions: Vec::new(),
        why: String::new(),
        metadata: Default::default(),
    }
}
