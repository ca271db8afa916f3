//! Missions among the made-up work: what is recorded of them is what the real core decides, and their members' sessions are
//! lived like all others.

use std::{collections::VecDeque, time::Duration};

use ostler_domain::{
    AssignmentId, MissionId, Name, Now, Time,
    event::By,
    mission::{
        self, Context, Effect, Input, Member, Membership, Plan, Product, Request, SessionEnd, Spent,
        StartSession, State, Strategy,
    },
    provider::SCRIPT,
    session::{Outcome, RestartPolicy},
    time::BootId,
};

use super::{
    history::History,
    words::{entropy, rank, text},
};

/// Who is in a mission: names, which are roles too, and stages.
const MEMBERS: [(&str, u32); 4] = [("planner", 1), ("builder", 2), ("tester", 2), ("reviewer", 3)];
/// What a member does beyond the least.
const ACTIVITIES: u64 = 6;

/// A mission, as far as it has come.
struct Course {
    state: State,
    id: MissionId,
    now: Now,
    entropy: u128,
}

impl Course {
    fn context(&mut self) -> Context {
        self.entropy = self.entropy.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        Context {
            now: self.now.clone(),
            entropy: self.entropy,
            used: Default::default(),
            paused_by_hand: Default::default(),
            halted: false,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now.wall = self.now.wall.plus(time);
        self.now.since_boot += time;
    }
}

fn name(word: &str) -> Name {
    word.parse().unwrap_or_else(|_| unreachable!("a role is a name"))
}

impl History {
    /// A mission from its plan to its end.
    pub(super) fn make_mission(&mut self, at: Time) {
        let place = rank(&mut self.seed, self.campaigns.len() as f64);
        let (campaign, by) = (self.campaigns[place].id, self.somebody());
        let boot = BootId("6f1b0c5e-3b1d-4f0a-9d58-2c6a4e8f7a31".to_owned());
        let now = Now { wall: at, since_boot: Duration::from_secs(86_400), boot };
        let member = |(who, stage): (&str, u32), task: String| Member {
            stage: Some(stage),
            ..Member::new(name(who), task)
        };
        let agents = MEMBERS.map(|who| member(who, text(&mut self.seed, 80))).to_vec();
        let mut plan = Plan {
            objective: text(&mut self.seed, 60),
            strategy: Strategy::Pipeline,
            agents,
            ..Plan::default()
        };
        plan.defaults.provider = Some(SCRIPT.to_owned());
        let id = MissionId::new(at, entropy(&mut self.seed));
        let called = Name::slug(&plan.objective).unwrap_or_else(|| name("work"));
        let context = Context {
            now: now.clone(),
            entropy: entropy(&mut self.seed),
            used: Default::default(),
            paused_by_hand: Default::default(),
            halted: false,
        };
        let created = mission::create(plan, id, campaign, called, by.clone(), &context);
        let created = created.unwrap_or_else(|refusal| unreachable!("a plan of ours is sound: {refusal}"));
        let Some(state) = State::replay([(at, &created)]) else { return };
        self.push_node(at, created);
        let mut course = Course { state, id, now, entropy: entropy(&mut self.seed) };
        let mut effects =
            self.hear(&mut course, Input::Request(Request::Start { forecast: None }, by.clone()));
        let mut wake = None;
        loop {
            match effects.pop_front() {
                Some(Effect::Start(start)) => effects.extend(self.attempt(&mut course, place, &start, &by)),
                Some(Effect::WakeAt(deadline)) => wake = Some(deadline),
                Some(_) => {}
                // Nobody is at work: what is left waits for its time.
                None => {
                    let Some(deadline) = wake.take() else { break };
                    course.pass(deadline.remaining(&course.now));
                    effects = self.hear(&mut course, Input::Tick);
                }
            }
        }
    }

    fn hear(&mut self, course: &mut Course, input: Input) -> VecDeque<Effect> {
        let context = course.context();
        let Ok(decision) = mission::decide(&course.state, input, &context) else { return VecDeque::new() };
        for event in decision.events {
            course.state.apply(course.now.wall, &event);
            self.push_node(course.now.wall, event);
        }
        decision.effects.into()
    }

    /// One attempt at an assignment: a session, from its start to what its end means to the mission.
    fn attempt(
        &mut self,
        course: &mut Course,
        place: usize,
        start: &StartSession,
        by: &By,
    ) -> VecDeque<Effect> {
        let (assignment, attempt, session) = (start.assignment, start.attempt, start.session);
        let mut effects = self.hear(course, Input::SessionStarted { assignment, attempt, session });
        let outcome = if self.seed.chance(85) { Outcome::Done } else { Outcome::Crashed };
        self.live_member(course, place, start, outcome, by);
        course.pass(Duration::from_secs(90));
        let end = SessionEnd {
            outcome,
            why: String::new(),
            said_done: outcome == Outcome::Done,
            is_final: false,
            product: Product { text: text(&mut self.seed, 60), ..Product::default() },
            spent: Spent::default(),
        };
        let ended = Input::SessionEnded { assignment, attempt, session, end: Box::new(end) };
        effects.extend(self.hear(course, ended));
        effects
    }

    fn live_member(
        &mut self,
        course: &Course,
        place: usize,
        start: &StartSession,
        outcome: Outcome,
        by: &By,
    ) {
        let (mission, assignment): (MissionId, AssignmentId) = (course.id, start.assignment);
        let at = course.now.wall;
        let mut begun = self.begun_as(start.session, place, at, outcome);
        begun.created.config.restart = RestartPolicy::Never;
        begun.created.config.mission = Some(Membership { mission, assignment, attempt: start.attempt });
        self.record(begun, outcome, ACTIVITIES, at, Some(by));
    }
}

/// How many missions a store of so many sessions has.
pub(super) fn is_due(made: u64) -> bool {
    const SESSIONS_PER_MISSION: u64 = 200;
    made % SESSIONS_PER_MISSION == SESSIONS_PER_MISSION / 2
}

#[cfg(test)]
mod tests {
    use ostler_domain::Event;
    use ostler_store::Bulk;

    use super::*;
    use crate::fill::Size;

    #[test]
    fn a_mission_is_recorded_from_its_plan_to_its_end() {
        let mut history = History::new(Size { sessions: 1_000, events: 20_000 }, 7);
        history.make_mission(Time::from_micros(1_701_388_800_000_000));
        let (mut created, mut ended, mut members) = (0, 0, 0);
        for item in std::iter::from_fn(|| history.ready.pop_front()) {
            match item {
                Bulk::Node(_, event) => {
                    created += u32::from(matches!(*event, Event::MissionCreated(_)));
                    ended += u32::from(matches!(*event, Event::MissionEnded(_)));
                }
                Bulk::Session(events) => {
                    let Event::SessionCreated(session) = &events[0].1 else { panic!("{:?}", events[0]) };
                    members += u32::from(session.config.mission.is_some());
                }
            }
        }
        assert!((created, ended) == (1, 1) && members >= 3, "{created} {ended} {members}");
    }
}
