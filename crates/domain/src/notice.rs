//! What somebody who is not looking should hear of: that an agent waits for a person, failed, or has used up its budget.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Event, Kind, Recorded, Time,
    event::{ApprovalRequested, AskKind},
    limits::NOTICE_TEXT,
    session::View,
    text::one_line,
};

/// When somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// An agent asks for leave, and waits.
    Approval,
    /// An agent asks something, and waits.
    WaitingInput,
    /// A session ended by a failure, or its turn did and it goes on by nobody's doing.
    Failed,
    /// A session has used up its budget.
    Budget,
}

impl Occasion {
    pub const ALL: &'static [Occasion] =
        &[Occasion::Approval, Occasion::WaitingInput, Occasion::Failed, Occasion::Budget];

    /// The kinds of events that may be one.
    pub const KINDS: &'static [Kind] =
        &[Kind::ApprovalRequested, Kind::SessionFailed, Kind::TurnEnded, Kind::BudgetExceeded];

    pub const fn as_str(self) -> &'static str {
        match self {
            Occasion::Approval => "approval",
            Occasion::WaitingInput => "waiting_input",
            Occasion::Failed => "failed",
            Occasion::Budget => "budget",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|on| on.as_str() == text)
    }

    pub fn of(event: &Event) -> Option<Self> {
        match event {
            // What a rule answered has no deadline: nobody waits.
            Event::ApprovalRequested(asked) if asked.deadline.is_none() => None,
            Event::ApprovalRequested(asked) => Some(match asked.kind {
                AskKind::Leave => Occasion::Approval,
                AskKind::Question => Occasion::WaitingInput,
            }),
            Event::SessionFailed(_) => Some(Occasion::Failed),
            // The end of a session is told by itself.
            Event::TurnEnded(turn)
                if turn.failure().is_some() && turn.goes_on.is_none() && !turn.ends_session =>
            {
                Some(Occasion::Failed)
            }
            Event::BudgetExceeded(_) => Some(Occasion::Budget),
            _ => None,
        }
    }
}

/// What is told. The text names agent and tool, and nothing of what they work on unless details are wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    pub schema: String,
    /// The same each time that this is told: whoever hears it twice can know.
    pub id: String,
    pub on: Occasion,
    pub text: String,
    /// RFC 3339.
    pub time: String,
    pub session: String,
    pub agent: String,
    pub campaign: String,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// What an agent works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The request in one line, or why the session failed.
    pub text: String,
    /// Why no rule answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Whose notice it is, as the shell knows it.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    pub node: &'a str,
    pub session: &'a View,
    pub campaign: &'a str,
}

impl Notice {
    /// The notice of an event; none when nobody needs to hear of it.
    pub fn of(recorded: &Recorded, whose: Whose<'_>, with_details: bool) -> Option<Notice> {
        let on = Occasion::of(&recorded.event)?;
        let view = whose.session;
        let agent = view.name.to_string();
        let short = view.id.short();
        let mut notice = Notice {
            schema: "ostler.notice/1".to_owned(),
            id: format!("{}-{}", whose.node, recorded.seq),
            on,
            text: String::new(),
            time: recorded.time.rfc3339(),
            session: view.id.to_string(),
            agent: agent.clone(),
            campaign: whose.campaign.to_owned(),
            provider: view.provider.clone(),
            approval: None,
            tool: None,
            details: None,
        };
        let details = match &recorded.event {
            Event::ApprovalRequested(asked) => notice.asks(asked),
            Event::SessionFailed(ended) => {
                notice.text = format!("{agent} failed ({}): ostler show {short}", ended.outcome.as_str());
                Details { text: one_line(&ended.obituary.sentence, NOTICE_TEXT), why: String::new() }
            }
            Event::TurnEnded(turn) => {
                notice.text = format!("{agent}'s turn failed: ostler show {short}");
                let why = turn.failure().unwrap_or_default();
                Details { text: one_line(why, NOTICE_TEXT), why: String::new() }
            }
            Event::BudgetExceeded(reached) => {
                let whose = if reached.campaign.is_some() { "its campaign's" } else { "its" };
                notice.text = format!("{agent} has used up {whose} budget: ostler show {short}");
                Details { text: reached.reason(), why: String::new() }
            }
            _ => return None,
        };
        notice.details = with_details.then_some(details);
        Some(notice)
    }

    fn asks(&mut self, asked: &ApprovalRequested) -> Details {
        let (tool, id) = (one_line(&asked.tool, 64), asked.id.short());
        self.text = match asked.kind {
            AskKind::Leave => format!("{} asks to use {tool}: ostler approval show {id}", self.agent),
            AskKind::Question => format!("{} asks a question: ostler approval show {id}", self.agent),
        };
        self.approval = Some(asked.id.to_string());
        self.tool = Some(tool);
        let text = match asked.kind {
            AskKind::Leave => asked.asks(),
            AskKind::Question => one_line(&asked.input, NOTICE_TEXT),
        };
        Details { text, why: asked.why.clone() }
    }
}

/// A program that is run on an occasion, with the notice on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub on: Vec<Occasion>,
    /// The program, by a name or an absolute path, and its arguments.
    pub run: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
    pub details: bool,
}

/// An address that is told of occasions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    pub on: Vec<Occasion>,
    /// What the signature is made with.
    pub secret: SecretPlace,
    pub details: bool,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// The first line of this file.
    File(String),
    /// This variable of the daemon's environment.
    Variable(String),
}

impl Hook {
    pub fn fault(&self) -> Option<&'static str> {
        match self.run.first() {
            None => Some("run is a program and its arguments"),
            Some(program) if program.is_empty() || (program.contains('/') && !program.starts_with('/')) => {
                Some("run begins with a program's name or its absolute path")
            }
            Some(_) if self.on.is_empty() => Some("on names no occasion"),
            Some(_) if self.limit.is_zero() => Some("limit gives it no time"),
            Some(_) => None,
        }
    }
}

impl Webhook {
    pub fn fault(&self) -> Option<String> {
        let address = crate::gateway::Upstream::parse(&self.url);
        address.err().map(|why| format!("url: {why}"))
    }
}

/// Whether a notice is too old to be told: the machine slept, or nobody could be reached for a day.
pub fn is_stale(at: Time, now: Time) -> bool {
    now.since(at) > crate::limits::NOTICE_KEPT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ApprovalId, CampaignId, ConversationId, Deadline, Now, SessionId,
        event::{Action, By, StopReason, TurnEnded},
        session::{Approve, Begin, Config, Created, RestartPolicy, Sandbox, State, approval_limit, create},
        time::BootId,
    };

    fn view() -> View {
        let (at, id) = (Time::default(), SessionId::new(Time::default(), 7));
        let config = Config {
            provider: "claude-code".to_owned(),
            model: None,
            working_dir: "/srv/shop".to_owned(),
            branch: None,
            worktree: None,
            budget: None,
            when_used_up: Default::default(),
            billing: Default::default(),
            timeout_us: None,
            deadline: None,
            restart: RestartPolicy::Never,
            approve: Approve::Policy,
            ends_with_turn: false,
            environment: Default::default(),
            provider_config: Default::default(),
            system_prompt: None,
            auth_profile: None,
            ticket: None,
            ticket_id: None,
            mission: None,
            watchdogs: Default::default(),
            resumes_after_limit: true,
            approval_us: approval_limit(),
            priority: Default::default(),
            idle_stop_us: None,
        };
        let created = Created {
            id,
            campaign: CampaignId::new(at, 1),
            conversation: ConversationId::new(at, 2),
            name: "api-auth".parse().expect("a name"),
            agent: None,
            config,
            sandbox: Sandbox::On,
            policy: Default::default(),
            continues: None,
            chain: id,
            spawned_by: None,
            restart_count: 0,
            short_lives: 0,
            begin: Begin::Fresh,
            imported: None,
        };
        let events = create(created, Vec::<crate::Message>::new(), &By::ostler());
        State::replay(events.iter().map(|event| (at, event))).expect("a session").view()
    }

    fn asked(kind: AskKind, waits: bool) -> Recorded {
        let now = Now { wall: Time::default(), since_boot: Duration::ZERO, boot: BootId::default() };
        let asked = ApprovalRequested {
            id: ApprovalId::new(Time::default(), 9),
            ask: "1".to_owned(),
            tool: "Bash".to_owned(),
            input: "curl secret.example".to_owned(),
            kind,
            action: Action::Run { command: "curl secret.example".to_owned() },
            subagent: None,
            why: "no rule allows curl secret.example".to_owned(),
            deadline: waits.then(|| Deadline::after(&now, Duration::from_secs(60))),
        };
        let (event, time) =
            (Event::ApprovalRequested(Box::new(asked)), Time::from_micros(1_763_000_000_000_123));
        Recorded { seq: 12, session: None, session_seq: None, time, event }
    }

    #[test]
    fn a_notice_names_agent_and_tool_and_not_the_command() {
        let view = view();
        let whose = Whose { node: "nod_1", session: &view, campaign: "shop" };
        let notice = Notice::of(&asked(AskKind::Leave, true), whose, false).expect("a notice");
        assert_eq!((notice.id.as_str(), notice.on), ("nod_1-12", Occasion::Approval));
        assert_eq!(notice.time, "2025-11-13T02:13:20.000123Z");
        assert!(
            notice.text.starts_with("api-auth asks to use Bash: ostler approval show "),
            "{}",
            notice.text
        );
        let told = serde_json::to_string(&notice).expect("plain structs");
        assert!(!told.contains("secret.example"), "{told}");
        let notice = Notice::of(&asked(AskKind::Leave, true), whose, true).expect("a notice");
        assert_eq!(notice.details.expect("details").text, "run: curl secret.example");
        let question = Notice::of(&asked(AskKind::Question, true), whose, false).expect("a notice");
        assert_eq!(question.on, Occasion::WaitingInput);
        assert_eq!(Notice::of(&asked(AskKind::Leave, false), whose, true), None, "a rule answered it");
    }

    #[test]
    fn a_turn_that_failed_is_told_unless_it_goes_on_by_itself() {
        let view = view();
        let whose = Whose { node: "nod_1", session: &view, campaign: "shop" };
        let ended = |stop_reason, failure: Option<&str>, goes_on| {
            let failure = failure.map(str::to_owned);
            let event =
                Event::TurnEnded(TurnEnded { turn: 1, stop_reason, failure, goes_on, ends_session: false });
            assert!(Occasion::KINDS.contains(&event.kind()));
            let recorded = Recorded { event, ..asked(AskKind::Leave, true) };
            Notice::of(&recorded, whose, true)
        };
        let notice = ended(StopReason::Error, Some("500: no model"), None).expect("a notice");
        assert_eq!(notice.on, Occasion::Failed);
        assert!(notice.text.starts_with("api-auth's turn failed: ostler show "), "{}", notice.text);
        assert_eq!(notice.details.expect("details").text, "500: no model");
        assert!(ended(StopReason::Interrupted, Some("interrupted by the silent watchdog"), None).is_some());
        assert!(ended(StopReason::Error, Some("429"), Some(Time::default())).is_none());
        assert!(ended(StopReason::Completed, None, None).is_none());
        let last = TurnEnded { ends_session: true, ..TurnEnded::new(1, StopReason::Error) };
        assert_eq!(Occasion::of(&Event::TurnEnded(last)), None, "the end of the session is told");
        assert!(ended(StopReason::Interrupted, None, None).is_none(), "somebody asked for it");
    }
}
