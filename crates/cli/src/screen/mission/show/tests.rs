use insta::assert_snapshot;
use ostler_client::reply::MissionEta;
use ostler_domain::{
    CampaignId, Event, MissionId,
    event::{
        AssignmentEnded, AssignmentStarted, AssignmentsReady, By, CollisionForecast, MissionEnded,
        MissionPaused, MissionStarted,
    },
    mission::{
        self, Context, Key, Spent,
        eta::HitRate,
        plan::{Terms, read},
    },
    session::{Attention, Doing as SessionDoing, Outcome, Status as SessionStatus},
};

use super::*;
use crate::testing::{NOW, ago, session};

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

struct Stage {
    state: State,
    sessions: Vec<Session>,
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

    fn start(&mut self, place: usize, seconds_ago: i64) {
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

    fn end(&mut self, place: usize, seconds_ago: i64, status: AssignmentStatus, cents: u64) {
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
            spent: Spent { usage: Default::default(), cost },
        };
        if let Some(member) = slot.session().and_then(|id| self.sessions.iter_mut().find(|one| one.id == id))
        {
            member.cost.paid = cost;
        }
        self.state.apply(ago(seconds_ago), &Event::AssignmentEnded(Box::new(ended)));
    }

    fn shown(&self, eta: Option<&MissionEta>, width: usize) -> String {
        let look = Look::plain(Some(width));
        let seen = Seen { state: &self.state, sessions: &self.sessions, eta, now: NOW };
        let lines: Vec<String> = seen.lines(&look).iter().map(|line| line.show(&look)).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        let steps = seen.steps().into_iter().map(|(command, effect)| format!("> {command} | {effect}"));
        lines.into_iter().map(|line| line.trim_end().to_owned()).chain(steps).collect::<Vec<_>>().join("\n")
    }
}

fn in_the_middle() -> Stage {
    let mut stage = Stage::new(PLAN);
    stage.start(0, 1_080);
    stage.end(0, 900, AssignmentStatus::Completed, 41);
    for place in 1..=3 {
        stage.start(place, 660);
    }
    stage.end(1, 120, AssignmentStatus::Completed, 210);
    stage.end(2, 240, AssignmentStatus::Completed, 166);
    let busy = stage.sessions.last_mut().unwrap();
    busy.status = SessionStatus::Working;
    busy.attention = Some(Attention::Working);
    busy.doing = Some(SessionDoing { text: "run: npm test".to_owned(), since: ago(31) });
    busy.cost.paid = Dollars(2_250_000);
    stage
}

fn eta() -> MissionEta {
    let minutes = |n: u64| Duration::from_secs(n * 60);
    let interval = mission::Interval::new(minutes(10), minutes(14), minutes(22));
    let rate = HitRate { held: 30, of: 37 };
    MissionEta { words: mission::eta::Eta::In(interval).words(&rate), interval: Some(interval), rate }
}

#[test]
fn one_that_runs_says_what_each_does_and_who_waits() {
    let mut stage = in_the_middle();
    let id = |place: usize| stage.state.slots()[place].assignment.id;
    let collision = CollisionForecast {
        mission: stage.state.id(),
        one: id(1),
        other: id(3),
        paths: vec!["Cargo.lock".to_owned()],
        turn: Some(3),
    };
    stage.state.apply(ago(60), &Event::CollisionForecast(collision));
    assert_snapshot!("running_120", stage.shown(Some(&eta()), 120));
    assert_snapshot!("running_80", stage.shown(Some(&eta()), 80));
}

#[test]
fn one_that_is_paused_says_who_did_that_and_why() {
    let mut stage = in_the_middle();
    let (mission, by, why) = (stage.state.id(), By("ann".to_owned()), "lunch".to_owned());
    let paused = MissionPaused { mission, by, why, spared: Vec::new(), time_left_us: None };
    stage.state.apply(ago(20), &Event::MissionPaused(paused));
    assert_snapshot!("paused_120", stage.shown(None, 120));
    assert_snapshot!("paused_80", stage.shown(None, 80));
}

#[test]
fn one_that_is_over_says_what_was_not_done() {
    let mut stage = in_the_middle();
    stage.end(3, 30, AssignmentStatus::Failed, 225);
    stage.end(4, 30, AssignmentStatus::Skipped, 0);
    let (mission, why) = (stage.state.id(), "3 of 5 were completed".to_owned());
    let ended = MissionEnded { mission, status: Status::Partial, why, ran_us: 1_060_000_000 };
    stage.state.apply(ago(30), &Event::MissionEnded(ended));
    assert_snapshot!("partial_120", stage.shown(None, 120));
    assert_snapshot!("partial_80", stage.shown(None, 80));
}

#[test]
fn a_terminal_without_letters_gets_signs_of_its_own() {
    let look = Look { letters: crate::output::Letters::Ascii, ..Look::plain(Some(120)) };
    let stage = in_the_middle();
    let seen = Seen { state: &stage.state, sessions: &stage.sessions, eta: None, now: NOW };
    let graph: Vec<String> = seen.graph(Some(120)).iter().map(|line| line.show(&look)).collect();
    assert!(graph.iter().all(|line| line.is_ascii() && !line.contains('?')), "{graph:#?}");
}
