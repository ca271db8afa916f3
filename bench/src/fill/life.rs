//! A life lived through the real core: inputs go in, [`decide`] says what happened, and the events are kept.

use std::time::Duration;

use ostler_domain::{
    Event, Message, Now, Time,
    event::{By, Process},
    policy::Policy,
    session::{
        AgentRequest, Context, Created, Effect, Ended, ExitFacts, How, Input, Obituary, Outcome, Report,
        Request, Spawn, State, create, decide,
    },
    time::BootId,
};

/// A session from its creation on, as far as it has come.
pub(crate) struct Life {
    pub(crate) state: State,
    pub(crate) events: Vec<(Time, Event)>,
    now: Now,
    entropy: u128,
    policy: Option<Policy>,
}

impl Life {
    /// Creates a session, with something to do or without.
    pub(crate) fn begin(
        created: Created,
        message: Option<Message>,
        by: &By,
        at: Time,
        entropy: u128,
    ) -> Self {
        let now = Now { wall: at, since_boot: Duration::from_secs(86_400), boot: boot() };
        let messages = message.into_iter().map(|message| (message, None)).collect();
        let events: Vec<(Time, Event)> =
            create(created.clone(), messages, by).into_iter().map(|event| (at, event)).collect();
        let mut state = State::new(created, at);
        for (at, event) in events.iter().skip(1) {
            state.apply(*at, event);
        }
        Self { state, events, now, entropy, policy: None }
    }

    /// In a campaign whose rules answer what they can.
    pub(crate) fn under(self, policy: Policy) -> Self {
        Self { policy: Some(policy), ..self }
    }

    pub(crate) fn now(&self) -> Time {
        self.now.wall
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now.wall = self.now.wall.plus(span);
        self.now.since_boot += span;
    }

    /// Takes one input in. What is said to the agent is on the tape at once.
    pub(crate) fn hear(&mut self, input: Input) {
        self.entropy = self.entropy.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let context = Context {
            now: self.now.clone(),
            entropy: self.entropy,
            policy: self.policy.clone(),
            prices: Default::default(),
            on_reboot: Default::default(),
            is_work_over: false,
        };
        let Ok(decision) = decide(&self.state, input, &context) else { return };
        for event in decision.events {
            self.record(event);
        }
        for effect in decision.effects {
            if let Effect::Tell(request @ AgentRequest::Prompt(_)) = effect {
                self.hear(Input::InputTaped { tag: request.tag() });
            }
        }
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.hear(Input::Report(report));
    }

    pub(crate) fn ask(&mut self, request: Request, by: &By) {
        self.hear(Input::Request(request, by.clone()));
    }

    /// Starts the agent and has it say that it is ready.
    pub(crate) fn start(&mut self, pid: u32, provider_id: Option<String>) {
        self.ask(Request::Start, &By::ostler());
        self.pass(Duration::from_millis(40));
        self.hear(Input::Spawned(Spawn {
            agent: Process { pid, start_time: u64::from(pid) * 7 },
            holds_calls: false,
        }));
        self.pass(Duration::from_millis(250));
        self.report(Report::Ready { provider_id, model: None });
    }

    pub(crate) fn exit(&mut self, how: How, oom: bool) {
        self.hear(Input::Exited(ExitFacts {
            how,
            oom,
            memory: None,
            leftovers: Vec::new(),
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        }));
    }

    /// Ends it in a way that no decision of today leads to.
    pub(crate) fn end_as(&mut self, outcome: Outcome, sentence: &str) {
        let obituary = Obituary {
            sentence: sentence.to_owned(),
            exit_code: Some(0),
            signal: None,
            rule: None,
            by: None,
            oom: false,
            memory: None,
            last: None,
            leftovers: Vec::new(),
            cures: Vec::new(),
        };
        self.record(Event::SessionStopped(Ended {
            outcome,
            obituary,
            restart: None,
            machine_restarted: None,
        }));
    }

    /// Something happened that nothing was asked for.
    pub(super) fn record(&mut self, event: Event) {
        self.state.apply(self.now.wall, &event);
        self.events.push((self.now.wall, event));
    }
}

fn boot() -> BootId {
    BootId("6f1b0c5e-3b1d-4f0a-9d58-2c6a4e8f7a31".to_owned())
}
