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
        AssignmentStatus, Beside, Context, Effect, Errand, Input, Merging, Plan, Product, Request,
        SessionEnd, Spent, State, Step, Tried, Wait, create, decide, effects_to_repeat, lease, plan,
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

/// What becomes of a branch that is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moves {
    Well,
    /// Somebody else has moved it.
    Fails,
    /// The daemon dies before it is moved.
    DiesBefore,
    /// The daemon dies when it is.
    DiesAfter,
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
    /// What runs beside sessions, and whether it is frozen. It dies with the daemon.
    pub(crate) errands: BTreeMap<Errand, bool>,
    /// Errands that are to end, and have not said that they have.
    pub(crate) ending: BTreeSet<Errand>,
    answered: BTreeSet<Errand>,
    pub(crate) halted: bool,
    /// What comes of the next moves of the branch.
    pub(crate) moves: Moves,
    moving: Vec<u32>,
    /// The merges that the branch has.
    pub(crate) branch: BTreeSet<u32>,
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
        spent: Spent {
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            cost: Dollars(1_000),
            unpriced: false,
        },
    }
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let context = context(0, 0, &Used::default(), &BTreeSet::new(), false);
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
            errands: BTreeMap::new(),
            ending: BTreeSet::new(),
            answered: BTreeSet::new(),
            halted: false,
            moves: Moves::Well,
            moving: Vec::new(),
            branch: BTreeSet::new(),
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
        context(self.seconds, self.steps, &self.used, &self.paused_by_hand, self.halted)
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
        self.end_moves();
        Ok(())
    }

    /// Nobody is heard before a branch that is moved has been.
    fn end_moves(&mut self) {
        let Some(attempt) = self.moving.pop() else { return };
        if self.moves == Moves::Fails && !self.branch.contains(&attempt) {
            let output = "somebody else has moved it".to_owned();
            return self.give(Input::Merged { attempt, ok: false, output, commit: None }).unwrap();
        }
        if matches!(self.moves, Moves::Well | Moves::DiesAfter) {
            self.branch.insert(attempt);
        }
        match std::mem::replace(&mut self.moves, Moves::Well) {
            Moves::DiesBefore | Moves::DiesAfter => self.crash(),
            Moves::Well | Moves::Fails => {
                let commit = Some("0123abc".to_owned());
                self.give(Input::Merged { attempt, ok: true, output: String::new(), commit }).unwrap();
            }
        }
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
        self.errands.clear();
        self.ending.clear();
        effects_to_repeat(&self.state).into_iter().for_each(|effect| self.carry_out(effect));
        self.end_moves();
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
            Effect::Check { assignment, attempt, .. } => self.run(Errand::Check { assignment, attempt }),
            Effect::Tell { text, .. } => self.told.push(text),
            Effect::Merge { attempt, .. } => self.run(Errand::Merge { attempt }),
            Effect::FreezeErrand(errand) => {
                self.errands.entry(errand).and_modify(|frozen| *frozen = true);
            }
            Effect::EndErrand(errand) => {
                self.errands.remove(&errand);
                if !self.answered.contains(&errand) {
                    self.ending.insert(errand);
                }
            }
            Effect::Move { attempt, .. } => {
                if matches!(self.state.merging(), Merging::Moving { attempt: moving, .. } if *moving == attempt)
                {
                    self.moving = vec![attempt];
                }
            }
            Effect::WakeAt(_) => self.wakes = true,
            Effect::WriteReport => self.reports += 1,
        }
    }

    fn run(&mut self, errand: Errand) {
        if !self.answered.contains(&errand) {
            self.errands.insert(errand, false);
        }
    }

    /// The merge that runs.
    pub(crate) fn merge(&self) -> Option<u32> {
        self.errands.keys().find_map(|errand| match errand {
            Errand::Merge { attempt } => Some(*attempt),
            Errand::Check { .. } => None,
        })
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
        let mut waits = self.waits().into_iter();
        waits.find(|(waiting, _)| *waiting == place).unwrap_or_else(|| panic!("{name} does not wait")).1
    }

    pub(crate) fn waits(&self) -> Vec<(usize, Wait)> {
        let beside = Beside { halted: self.halted, ..Beside::default() };
        self.state.waits(&self.now(), &beside)
    }

    /// What the whole mission waits for.
    pub(crate) fn wait(&self) -> Option<Wait> {
        self.state.wait(self.halted)
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
        self.answer(Errand::Check { assignment: id, attempt }, passed);
    }

    pub(crate) fn answer_merge(&mut self, ok: bool) {
        let attempt = self.merge().unwrap();
        self.answer(Errand::Merge { attempt }, ok);
    }

    /// An errand has ended, by itself or not.
    pub(crate) fn answer(&mut self, errand: Errand, ok: bool) {
        let is_ended = self.ending.remove(&errand);
        assert!(self.errands.remove(&errand).is_some() || is_ended, "{errand:?} does not run");
        self.answered.insert(errand);
        let tried = || Tried { old: "0123abb".to_owned(), commit: "0123abc".to_owned() };
        let input = match errand {
            Errand::Check { assignment, attempt } => {
                Input::Checked { assignment, attempt, passed: ok, output: "1 failed".to_owned() }
            }
            Errand::Merge { attempt } => {
                let tried = ok.then(tried).ok_or_else(|| "conflict".to_owned());
                Input::MergeTried { attempt, tried }
            }
        };
        self.give(input).unwrap();
    }

    /// What the plan has it need, and in the place of what was removed, what that needed.
    fn declared_needs(&self, place: usize) -> Vec<usize> {
        let slots = self.state.slots();
        let needs = slots[place].assignment.needs.iter().map(|need| *need as usize);
        needs
            .flat_map(|need| if slots[need].removed { self.declared_needs(need) } else { vec![need] })
            .collect()
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
                for need in self.declared_needs(place) {
                    let need = &self.state.slots()[need];
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
            Event::MergeMoving(_) => {
                let in_the_way = self.wait().filter(|wait| !matches!(wait, Wait::Merge { .. }));
                assert!(!self.halted && in_the_way.is_none(), "the branch moves in spite of {in_the_way:?}");
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
        for (account, most) in &limits.accounts {
            let has = |place: &&usize| {
                self.state.work(**place).account.as_ref().is_some_and(|own| own.as_str() == account)
            };
            assert!(active.iter().filter(has).count() <= *most as usize);
        }
        for (at, one) in active.iter().enumerate() {
            for other in &active[..at] {
                // Whoever is added has its lease from whoever added it.
                let is_given = [one, other].iter().any(|at| slots[**at].assignment.added_by.is_some());
                let (one, other) = (self.state.work(*one), self.state.work(*other));
                let is_beside = |work: &plan::Work| work.worktree == plan::Worktree::None;
                let (one, other, both) = (&one.paths, &other.paths, is_beside(one) && is_beside(other));
                let is_free = both && !is_given && one.is_empty() != other.is_empty();
                assert!(!is_free, "one may write what the other has leased: {one:?} {other:?}");
                let meet = one.iter().any(|path| other.iter().any(|leased| lease::overlap(path, leased)));
                assert!(!meet, "two write {one:?} and {other:?}");
            }
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
        self.look_at_errands();
        self.look_at_waits(&active);
    }

    /// Nothing runs for a mission that stands still, ends or is over; and what is said of the branch is true.
    fn look_at_errands(&self) {
        let is_still = self.state.pause().is_some() || self.state.hold().is_some();
        for (errand, frozen) in &self.errands {
            assert!(self.state.stop().is_none() && !self.state.is_over(), "{errand:?} runs on");
            assert_eq!(*frozen, is_still, "{errand:?} is frozen as it should be");
        }
        match self.state.merging() {
            Merging::Merged { attempt, .. } => assert!(self.branch.contains(attempt)),
            Merging::Failed { attempt, .. } => assert!(!self.branch.contains(attempt), "it is merged"),
            _ => {}
        }
    }

    /// Whatever neither works nor is over says what it waits for, and nothing waits for nothing.
    fn look_at_waits(&self, active: &[usize]) {
        if self.state.is_over() {
            assert!(self.state.slots().iter().all(|slot| slot.end().is_some()));
            return;
        }
        let now = self.now();
        let waits: BTreeMap<usize, Wait> = self.waits().into_iter().collect();
        for place in 0..self.state.slots().len() {
            let is_at_work = self.state.slots()[place].end().is_some() || active.contains(&place);
            assert!(is_at_work || waits.contains_key(&place), "{place} waits without a reason");
        }
        assert!(!waits.values().any(|wait| *wait == Wait::Next), "somebody could have started");
        waits.values().for_each(|wait| assert!(!wait.words(&self.state, &now).is_empty()));
        let is_merging = matches!(self.state.merging(), Merging::Running { .. } | Merging::Moving { .. });
        if active.is_empty() && !is_merging {
            assert!(!waits.is_empty() || self.wait().is_some(), "it hangs");
        }
        // Whoever waits for a moment is woken.
        let is_due = waits.values().any(|wait| matches!(wait, Wait::Again { .. }));
        assert!(!is_due || self.wakes, "nobody wakes it");
    }
}

fn context(
    seconds: u64,
    step: u64,
    used: &Used,
    paused_by_hand: &BTreeSet<SessionId>,
    halted: bool,
) -> Context {
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
        halted,
    }
}
