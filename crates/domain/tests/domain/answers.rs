//! Who answers an agent that asks for leave, and until when.

use std::time::Duration;

use ostler_domain::{
    Event, Kind, Policy, Refusal,
    approval::{NO_RULES, goes_by_rules},
    event::{Action, Answer, ApprovalAnswered, AskKind, By},
    session::{
        AgentRequest, Approve, Attention, Config, Context, Effect, Input, Link, Report, Request,
        RestartPolicy, Sandbox, State, approval_limit, create, decide,
    },
};

use crate::{
    any::{context, created, message, time},
    life::Life,
};

/// A session whose agent works, in a sandbox, and the policy of its campaign.
struct Asking {
    state: State,
    policy: Option<Policy>,
    at: u64,
    events: Vec<Event>,
    told: Vec<AgentRequest>,
}

impl Asking {
    fn new(approve: Approve, rules: &[&str]) -> Self {
        let mut first = created(RestartPolicy::Never, approve, false, None);
        first.sandbox = Sandbox::On;
        first.config.timeout_us = None;
        let events = create(first, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        let settings: Vec<String> = rules.iter().map(|rule| format!("approve.rule+={rule}")).collect();
        let policy = Some(Policy::default().changed_by(&settings).unwrap());
        let mut asking = Self { state, policy, at: 1, events: vec![], told: vec![] };
        asking.request(Request::Start).unwrap();
        asking.input(Input::Report(Report::Ready { provider_id: None, model: None })).unwrap();
        asking.input(Input::InputTaped { tag: AgentRequest::Prompt(message(0)).tag() }).unwrap();
        asking.input(Input::Report(Report::TurnStarted { messages: vec![message(0).id] })).unwrap();
        asking
    }

    fn input(&mut self, input: Input) -> Result<(), Refusal> {
        self.at += 1;
        let context = Context { policy: self.policy.clone(), ..context(self.at) };
        let decision = decide(&self.state, input, &context)?;
        decision.events.iter().for_each(|event| self.state.apply(context.now.wall, event));
        self.told = decision
            .effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Tell(told) => Some(told),
                _ => None,
            })
            .collect();
        self.events = decision.events;
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<(), Refusal> {
        self.input(Input::Request(request, By("ann".into())))
    }

    fn asks(&mut self, command: &str) -> &mut Self {
        let action = Action::Run { command: command.to_owned() };
        self.asks_for(action, AskKind::Leave)
    }

    fn asks_for(&mut self, action: Action, kind: AskKind) -> &mut Self {
        let (ask, tool, input) = (format!("ask-{}", self.at), "Bash".to_owned(), "x".to_owned());
        self.input(Input::Report(Report::ApprovalAsked { ask, tool, input, kind, action, subagent: None }))
            .unwrap();
        self
    }

    /// Whether it must ask for leave for what it announces.
    fn must_ask(&mut self, action: Action) -> bool {
        let report = Report::ToolAnnounced { ask: "announced".to_owned(), tool: "Bash".to_owned(), action };
        self.input(Input::Report(report)).unwrap();
        assert_eq!(self.events, [], "its request is what is recorded, if one follows");
        let [AgentRequest::Proceed { ask, must_ask }] = self.told.as_slice() else {
            panic!("{:?}", self.told)
        };
        assert_eq!(ask, "announced");
        *must_ask
    }

    fn wait(&mut self, span: Duration) -> &mut Self {
        // A step of the test's clock is a millisecond.
        self.at += u64::try_from(span.as_millis()).unwrap();
        self.input(Input::ApprovalsDue).unwrap();
        self
    }

    fn answer(&self) -> Option<&ApprovalAnswered> {
        self.events.iter().find_map(|event| match event {
            Event::ApprovalAnswered(answered) => Some(answered),
            _ => None,
        })
    }

    fn attention(&self) -> Option<Attention> {
        self.state.attention(Link::Attached)
    }
}

#[test]
fn who_would_not_ask_must_where_a_rule_or_the_mode_wants_it() {
    let run = |command: &str| Action::Run { command: command.to_owned() };
    let read = |path: &str| Action::Read { paths: vec![path.to_owned()] };
    let rules = ["deny run cat *", "ask read notes/**", "allow run ls *"];
    for approve in [Approve::Policy, Approve::Nobody] {
        let mut ruled = Asking::new(approve, &rules);
        for (action, must_ask) in [
            (run("cat x"), true),
            (run("pwd; cat x"), true),
            (read("notes/a"), true),
            // What it comes to cannot be said, and some rule denies something.
            (run("echo $(cat x)"), true),
            (run("ls"), false),
            // No rule is about these: the agent knows best what it does unasked.
            (run("pwd"), false),
            (read("src/a"), false),
        ] {
            assert_eq!(ruled.must_ask(action.clone()), must_ask, "{action:?}");
        }
        let mut allowed = Asking::new(approve, &["allow run ls *"]);
        assert!(!allowed.must_ask(run("echo $(cat x)")), "no rule denies anything");
        allowed.policy = None;
        assert!(allowed.must_ask(run("ls")), "rules that cannot be read may deny it");
    }
    assert!(Asking::new(Approve::Ask, &[]).must_ask(read("src/a")), "a person answers everything");
    assert!(!Asking::new(Approve::All, &rules).must_ask(run("cat x")));
}

#[test]
fn rules_answer_first_and_are_recorded() {
    let mut asking = Asking::new(Approve::Policy, &["deny run rm *", "allow run make *"]);
    asking.asks("make all");
    let answered = asking.answer().unwrap();
    assert_eq!((answered.answer, answered.by.0.as_str()), (Answer::Allowed, "ostler"));
    assert_eq!((answered.rules[0].number, answered.rules[0].text.as_str()), (Some(2), "allow run make *"));
    assert!(matches!(asking.told.as_slice(), [AgentRequest::Answer { allow: true, .. }]));

    asking.asks("make && rm x");
    let answered = asking.answer().unwrap();
    assert_eq!((answered.answer, answered.rules[0].number), (Answer::Denied, Some(1)));
    assert!(answered.message.contains("rule 1: deny run rm *"), "{}", answered.message);
    assert_eq!(asking.state.view().denied, 1);

    asking.asks("cargo add governor");
    assert_eq!((asking.answer(), asking.attention()), (None, Some(Attention::WaitingApproval)));
    let [Event::ApprovalRequested(asked)] = asking.events.as_slice() else { panic!("{:?}", asking.events) };
    assert_eq!(asked.why, "no rule allows cargo add governor");
    assert!(asked.deadline.is_some());
}

#[test]
fn where_nobody_is_there_rules_answer_and_the_rest_is_denied_at_once() {
    let mut asking = Asking::new(Approve::Nobody, &["allow run make *"]);
    assert_eq!(asking.asks("make").answer().unwrap().answer, Answer::Allowed);
    let answered = asking.asks("reboot").answer().unwrap();
    assert_eq!(answered.answer, Answer::Denied);
    assert!(answered.message.contains("nobody is there") && answered.message.contains("reboot"));
}

#[test]
fn whoever_wants_to_be_asked_is_asked_whatever_the_rules_say() {
    let mut asking = Asking::new(Approve::Ask, &["allow run make *", "deny run rm *"]);
    assert_eq!(asking.asks("make").answer(), None);
    assert_eq!(asking.asks("rm x").answer(), None);
}

#[test]
fn no_rule_answers_a_question_or_decides_without_being_read() {
    let mut asking = Asking::new(Approve::Policy, &["allow tool Bash", "allow run make *"]);
    assert_eq!(asking.asks_for(Action::Other, AskKind::Question).answer(), None);
    assert_eq!(asking.attention(), Some(Attention::WaitingInput));
    asking.policy = None;
    assert_eq!(asking.asks("make").answer(), None);
}

#[test]
fn a_secret_does_not_hide_what_is_run() {
    let secret = format!("sk-ant-{}", "a1B2c3D4".repeat(8));
    let mut asking = Asking::new(Approve::Policy, &["allow run deploy *"]);
    asking.asks(&format!("deploy {secret}"));
    let answered = asking.answer().unwrap();
    assert_eq!(answered.answer, Answer::Allowed);
    assert!(!format!("{:?}", asking.events).contains(&secret), "{:?}", asking.events);
    asking.asks(&format!("reboot {secret}"));
    assert!(!format!("{:?}", asking.events).contains(&secret), "{:?}", asking.events);
}

#[test]
fn nobody_waits_for_ever() {
    let mut asking = Asking::new(Approve::Policy, &[]);
    asking.asks("reboot").wait(Duration::from_secs(12 * 3_600 - 60));
    assert_eq!(asking.answer(), None);
    asking.wait(Duration::from_secs(60));
    let answered = asking.answer().unwrap();
    assert_eq!((answered.answer, answered.by.0.as_str()), (Answer::Denied, "ostler"));
    assert_eq!(answered.message, "nobody answered within 12 h, so this was denied");
    assert!(matches!(asking.told.as_slice(), [AgentRequest::Answer { allow: false, .. }]));
    asking.wait(Duration::from_secs(1));
    assert_eq!(asking.events, []);
}

#[test]
fn the_wait_stands_still_while_the_session_is_paused() {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let mut asking = Asking::new(Approve::Ask, &[]);
    asking.asks("reboot").wait(hours(10));
    asking.request(Request::Pause).unwrap();
    // Read late from the tape: it was asked before the tree stood still.
    asking.asks("halt").wait(hours(100));
    assert_eq!(asking.answer(), None);
    asking.request(Request::Resume { budget: None, tape_bytes: None }).unwrap();
    assert_eq!(asking.wait(hours(1)).answer(), None);
    asking.wait(hours(1));
    assert!(asking.answer().is_some());
    assert_eq!(asking.state.approvals().len(), 1);
    asking.wait(hours(10));
    assert!(asking.state.approvals().is_empty());
}

#[test]
fn what_an_agent_does_not_hear_with_the_answer_it_is_told_afterwards() {
    let denied = |hears_why, message: &str| {
        let mut asking = Asking::new(Approve::Policy, &[]);
        let id = asking.asks("reboot").state.approvals()[0].id;
        let message = message.to_owned();
        asking.request(Request::Answer { id, allow: false, message, hears_why }).unwrap();
        asking.events.iter().find_map(|event| match event {
            Event::MessageAccepted(accepted) => Some(accepted.message.text.clone()),
            _ => None,
        })
    };
    let told = denied(false, "not on a Sunday").unwrap();
    assert!(told.contains("reboot") && told.ends_with("The reason: not on a Sunday"), "{told}");
    assert_eq!(denied(true, "not on a Sunday"), None);
    assert_eq!(denied(false, ""), None, "there is nothing to tell");
}

#[test]
fn an_answer_comes_before_the_limit_or_not_at_all() {
    let mut asking = Asking::new(Approve::Policy, &[]);
    let id = asking.asks("reboot").state.approvals()[0].id;
    let allow = || Request::Answer { id, allow: true, message: String::new(), hears_why: true };
    asking.wait(Duration::from_secs(13 * 3_600));
    assert!(asking.request(allow()).is_err());
}

/// As they were stored before there were rules and a limit.
#[test]
fn what_was_recorded_before_is_still_read() {
    let id = "apr_01K9XFT7G00000000000000007";
    for (kind, body) in [
        (Kind::ApprovalRequested, format!(r#"{{"id":"{id}","ask":"1","tool":"Bash","input":"ls"}}"#)),
        (Kind::ApprovalAnswered, format!(r#"{{"id":"{id}","answer":"denied","by":"ann","message":"no"}}"#)),
        (Kind::SessionPaused, r#"{"by":"ann","timeout_left_us":5000000}"#.to_owned()),
        (Kind::SessionResumed, r#"{"by":"ann"}"#.to_owned()),
    ] {
        let event = Event::decode(kind, &body).unwrap();
        assert_eq!(event.body(), body);
    }
    let mut config =
        serde_json::to_value(&created(RestartPolicy::Never, Approve::Ask, false, None).config).unwrap();
    config.as_object_mut().unwrap().remove("approval_us");
    let config: Config = serde_json::from_value(config).unwrap();
    assert_eq!(config.approval_us, approval_limit());
}

#[test]
fn whoever_is_to_ask_for_everything_says_so() {
    let mut life = Life::plain();
    life.working();
    let asked = Report::ApprovalAsked {
        ask: "1".into(),
        tool: "Bash".into(),
        input: "git push".into(),
        kind: AskKind::Leave,
        action: Action::Run { command: "git push".into() },
        subagent: None,
    };
    let decided = decide(&life.state, Input::Report(asked), &context(9)).unwrap();
    let Some(Event::ApprovalRequested(asked)) = decided.events.first() else { panic!("{decided:?}") };
    assert_eq!(asked.why, NO_RULES);
    assert!(!goes_by_rules(&asked.why) && goes_by_rules("no rule allows git push"));
}
