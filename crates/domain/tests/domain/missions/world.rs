//! A machine that runs missions, made of nothing: a clock that is turned by hand, and sessions that do as they are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ostler_domain::{
    AssignmentId, CampaignId, Event, MissionId, Now, Refusal, SessionId, Time, Usage,
    budget::Used,
    event::By,
    mission::{
        AssignmentStatus, Context, Effect, Input, Merging, Plan, Product, Request, SessionEnd, Spent, State,
        Step, Wait, create, decide, effects_to_repeat, plan,
    },
    price::Dollars,
    session::Outcome,
    time::BootId,
};

pub(crate) const BASE: i64 = 1_763_000_000_000_000;

/// A session as the machine has it.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) assignment: AssignmentId,
    pub(crate) attempt: u32,
    pub(crate) frozen: bool,
    pub(crate) stopping: bool,
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) log: Vec<(Time, Event)>,
    pub(crate) seconds: u64,
    steps: u64,
    pub(crate) used: Used,
    pub(crate) paused_by_hand: BTreeSet<SessionId>,
    pub(crate) live: BTreeMap<SessionId, Live>,
    /// Every session that was ever created, with the one that it goes on with.
    pub(crate) sessions: BTreeMap<SessionId, Option<SessionId>>,
    pub(crate) checks: BTreeMap<(AssignmentId, u32), String>,
    pub(crate) merge: Option<u32>,
    pub(crate) merges: BTreeSet<u32>,
    pub(crate) told: Vec<String>,
    pub(crate) reports: u32,
    pub(crate) wakes: bool,
    pub(crate) last: Vec<Effect>,
    /// Whether everything that must hold is looked at after each step; it takes time.
    pub(crate) checked: bool,
}

pub(crate) fn plan_of(text: &str) -> Plan {
    plan::read(text, &plan::Terms::default()).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

pub(crate) fn by() -> By {
    By("ann".to_owned())
}

pub(crate) fn end(outcome: Outcome) -> SessionEnd {
    SessionEnd {
        outcome,
        why: format!("it ended {}", outcome.as_str()),
        said_done: false,
        is_final: false,
        product: Product { text: "It works.".to_owned(), outputs: Vec::new() },
        spent: Spent { usage: Usage { input: 10, output: 5, ..Usage::default() }, cost: Dollars(1_000) },
    }
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let context = context(0, 0, &Used::default(), &BTreeSet::new());
        let id = MissionId::new(Time::from_micros(BASE), 7);
        let campaign = CampaignId::new(Time::from_micros(BASE), 1);
        let name = plan.named();
        let event = create(plan, id, campaign, name, by(), &context).unwrap();
        let Event::MissionCreated(created) = &event else { unreachable!() };
        World {
            state: State::new(created, context.now.wall),
            log: vec![(context.now.wall, event)],
            seconds: 0,
            steps: 0,
            used: Used::default(),
            paused_by_hand: BTreeSet::new(),
            live: BTreeMap::new(),
            sessions: BTreeMap::new(),
            checks: BTreeMap::new(),
            merge: None,
            merges: BTreeSet::new(),
            told: Vec::new(),
            reports: 0,
            wakes: false,
            last: Vec::new(),
            checked: true,
        }
    }

    /// Of a text, and started.
    pub(crate) fn started(text: &str) -> World {
        let mut world = World::new(plan_of(text));
        world.ask(Request::Start { forecast: None });
        world
    }

    pub(crate) fn context(&self) -> Context {
        context(self.seconds, self.steps, &self.used, &self.paused_by_hand)
    }

    pub(crate) fn now(&self) -> Now {
        self.context().now
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.try_ask(request).unwrap();
    }

    pub(crate) fn try_ask(&mut self, request: Request) -> Result<(), Refusal> {
        self.give(Input::Request(request, by()))
    }

    /// Decides, records, and does what follows.
    pub(crate) fn give(&mut self, input: Input) -> Result<(), Refusal> {
        self.steps += 1;
        let context = self.context();
        let decision = decide(&self.state, input, &context)?;
        for event in decision.events {
            if self.checked {
                self.look_at(&event);
            }
            self.state.apply(context.now.wall, &event);
            // What is stored is what was decided.
            let stored = Event::decode(event.kind(), &event.body()).unwrap();
            assert_eq!(stored, event);
            self.log.push((context.now.wall, event));
        }
        self.last.clone_from(&decision.effects);
        decision.effects.into_iter().for_each(|effect| self.carry_out(effect));
        if self.checked {
            self.look();
        }
        Ok(())
    }

    pub(crate) fn tick(&mut self, seconds: u64) {
        self.seconds += seconds;
        self.give(Input::Tick).unwrap();
    }

    /// The daemon dies and comes back: only the log is left, and the sessions, which lived on.
    pub(crate) fn crash(&mut self) {
        let log = self.log.iter().map(|(at, event)| (*at, event));
        self.state = State::replay(log).unwrap();
        self.wakes = false;
        effects_to_repeat(&self.state).into_iter().for_each(|effect| self.carry_out(effect));
        // What ended while nobody looked is told of again, and what was told is heard twice.
        self.give(Input::Tick).unwrap();
    }

    pub(crate) fn repeat(&mut self) {
        self.last.clone().into_iter().for_each(|effect| self.carry_out(effect));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Start(start) => {
                if self.sessions.contains_key(&start.session) {
                    return;
                }
                let is_last = |live: &Live| live.assignment != start.assignment;
                assert!(self.live.values().all(is_last), "two sessions work on one assignment");
                self.sessions.insert(start.session, start.continues);
                let (assignment, attempt) = (start.assignment, start.attempt);
                let live = Live { assignment, attempt, frozen: false, stopping: false };
                self.live.insert(start.session, live);
            }
            Effect::Stop { session } => {
                self.live.entry(session).and_modify(|live| live.stopping = true);
            }
            Effect::Freeze { session, frozen } => {
                self.live.entry(session).and_modify(|live| live.frozen = frozen);
            }
            Effect::Check { assignment, attempt, command, .. } => {
                self.checks.insert((assignment, attempt), command);
            }
            Effect::Tell { text, .. } => self.told.push(text),
            Effect::Merge { attempt, .. } => {
                self.merge = (!self.merges.contains(&attempt)).then_some(attempt);
            }
            Effect::WakeAt(_) => self.wakes = true,
            Effect::WriteReport => self.reports += 1,
        }
    }

    /// The session of an assignment, by name.
    pub(crate) fn session(&self, name: &str) -> SessionId {
        let place = self.state.find(name).unwrap();
        self.state.slots()[place].session().unwrap_or_else(|| panic!("{name} does not run"))
    }

    pub(crate) fn id(&self, name: &str) -> AssignmentId {
        self.state.slots()[self.state.find(name).unwrap()].assignment.id
    }

    pub(crate) fn status(&self, name: &str) -> AssignmentStatus {
        self.state.status_of(self.state.find(name).unwrap())
    }

    /// The names of those that run, in their order.
    pub(crate) fn running(&self) -> Vec<&str> {
        let slots = self.state.slots().iter().filter(|slot| slot.is_active());
        slots.map(|slot| slot.assignment.name.as_str()).collect()
    }

    pub(crate) fn waits_for(&self, name: &str) -> Wait {
        let place = self.state.find(name).unwrap();
        let mut waits = self.state.waits(&self.now()).into_iter();
        waits.find(|(waiting, _)| *waiting == place).unwrap_or_else(|| panic!("{name} does not wait")).1
    }

    pub(crate) fn finish(&mut self, name: &str, outcome: Outcome) {
        self.finish_as(name, end(outcome));
    }

    pub(crate) fn finish_as(&mut self, name: &str, end: SessionEnd) {
        let session = self.session(name);
        self.end_session(session, end);
    }

    pub(crate) fn end_session(&mut self, session: SessionId, end: SessionEnd) {
        let Some(live) = self.live.remove(&session) else { return };
        self.paused_by_hand.remove(&session);
        let (assignment, attempt, end) = (live.assignment, live.attempt, Box::new(end));
        self.give(Input::SessionEnded { assignment, attempt, session, end }).unwrap();
    }

    pub(crate) fn check(&mut self, name: &str, passed: bool) {
        let id = self.id(name);
        let attempt = self.state.slots()[self.state.find(name).unwrap()].attempt;
        self.answer_check((id, attempt), passed);
    }

    pub(crate) fn answer_check(&mut self, check: (AssignmentId, u32), passed: bool) {
        self.checks.remove(&check).unwrap();
        let (assignment, attempt) = check;
        self.give(Input::Checked { assignment, attempt, passed, output: "1 failed".to_owned() }).unwrap();
    }

    pub(crate) fn answer_merge(&mut self, ok: bool) {
        let attempt = self.merge.take().unwrap();
        self.merges.insert(attempt);
        let commit = ok.then(|| "0123abc".to_owned());
        self.give(Input::Merged { attempt, ok, output: "conflict".to_owned(), commit }).unwrap();
    }

    /// What must hold when an event is recorded.
    fn look_at(&self, event: &Event) {
        match event {
            Event::AssignmentStarted(started) => {
                let place = self.state.place_of(started.assignment).unwrap();
                let slot = &self.state.slots()[place];
                assert!(
                    matches!(slot.step, Step::Ready { .. }),
                    "{} starts from {:?}",
                    slot.assignment.name,
                    slot.step
                );
                for need in self.state.graph().needs(place) {
                    let need = &self.state.slots()[*need as usize];
                    assert!(
                        need.end().is_some(),
                        "{} starts before {}",
                        slot.assignment.name,
                        need.assignment.name
                    );
                }
                let done = self.log.iter().any(|(_, event)| {
                    matches!(event, Event::AssignmentEnded(ended)
                        if ended.assignment == started.assignment && ended.status == AssignmentStatus::Completed)
                });
                assert!(!done, "{} was completed, and is done again", slot.assignment.name);
            }
            Event::AssignmentEnded(ended) => {
                let place = self.state.place_of(ended.assignment).unwrap();
                assert!(ended.status.is_final());
                assert!(self.state.slots()[place].end().is_none(), "it ends once");
            }
            _ => {}
        }
    }

    /// What must hold at any time.
    pub(crate) fn look(&self) {
        let log = self.log.iter().map(|(at, event)| (*at, event));
        assert_eq!(State::replay(log).as_ref(), Some(&self.state), "what is replayed is what is");
        let slots = self.state.slots();
        let limits = &self.state.plan().limits;
        let active: Vec<usize> = (0..slots.len()).filter(|place| slots[*place].is_active()).collect();
        let most = limits.concurrency.unwrap_or(u32::MAX) as usize;
        assert!(active.len() <= most, "{} run, {most} may", active.len());
        for (role, most) in &limits.roles {
            let of_role =
                active.iter().filter(|place| self.state.work(**place).role.as_str() == role).count();
            assert!(of_role <= *most as usize);
        }
        for (provider, most) in &limits.providers {
            let of =
                active.iter().filter(|place| self.state.work(**place).provider.as_ref() == Some(provider));
            assert!(of.count() <= *most as usize);
        }
        for (session, live) in &self.live {
            let place = self.state.place_of(live.assignment).unwrap();
            assert_eq!(slots[place].session(), Some(*session), "a session works for nobody");
            if !live.stopping {
                let spared = self.paused_by_hand.contains(session);
                assert!(
                    spared || live.frozen == self.state.is_frozen(place),
                    "{session} is frozen as it should be"
                );
            }
        }
        self.look_at_waits(&active);
    }

    /// Whatever neither works nor is over says what it waits for, and nothing waits for nothing.
    fn look_at_waits(&self, active: &[usize]) {
        if self.state.is_over() {
            assert!(self.state.slots().iter().all(|slot| slot.end().is_some()));
            return;
        }
        let now = self.now();
        let waits: BTreeMap<usize, Wait> = self.state.waits(&now).into_iter().collect();
        for place in 0..self.state.slots().len() {
            let is_at_work = self.state.slots()[place].end().is_some() || active.contains(&place);
            assert!(is_at_work || waits.contains_key(&place), "{place} waits without a reason");
        }
        assert!(!waits.values().any(|wait| *wait == Wait::Next), "somebody could have started");
        waits.values().for_each(|wait| assert!(!wait.words(&self.state, &now).is_empty()));
        let is_merging = matches!(self.state.merging(), Merging::Running { .. });
        if active.is_empty() && !is_merging {
            assert!(!waits.is_empty() || self.state.wait().is_some(), "it hangs");
        }
        // Whoever waits for a moment is woken.
        let is_due = waits.values().any(|wait| matches!(wait, Wait::Again { .. }));
        assert!(!is_due || self.wakes, "nobody wakes it");
    }
}

fn context(seconds: u64, step: u64, used: &Used, paused_by_hand: &BTreeSet<SessionId>) -> Context {
    let span = Duration::from_secs(seconds) + Duration::from_micros(step);
    Context {
        now: Now {
            wall: Time::from_micros(BASE).plus(span),
            since_boot: Duration::from_secs(1_000) + span,
            boot: BootId("boot".to_owned()),
        },
        // Spreads as entropy does.
        entropy: u128::from(step + 1).wrapping_mul(0x1234_5678_9abc_def0_0fed_cba9_8765_4321),
        used: used.clone(),
        paused_by_hand: paused_by_hand.clone(),
    }
}
