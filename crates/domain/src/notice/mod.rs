//! What somebody who is not looking should hear of: that an agent waits for a person, failed, or has used up its budget,
//! and that a mission is over. Where it is told is in `channel`, and when in `pace`.

mod channel;
mod ntfy;
mod pace;

use serde::{Deserialize, Serialize};

use crate::{
    Event, Kind, MissionId, Recorded, SessionId, Time,
    event::{ApprovalRequested, AskKind},
    limits::NOTICE_TEXT,
    session::View,
    text::one_line,
};

pub use channel::{Channel, Hook, Ntfy, SecretPlace, To, Webhook, name_fault};
pub use ntfy::pushed;
pub use pace::{About, Pace};

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
    /// A mission is over, however it went.
    MissionDone,
}

impl Occasion {
    pub const ALL: &'static [Occasion] = &[
        Occasion::Approval,
        Occasion::WaitingInput,
        Occasion::Failed,
        Occasion::Budget,
        Occasion::MissionDone,
    ];

    /// The kinds of events that may be one.
    pub const KINDS: &'static [Kind] = &[
        Kind::ApprovalRequested,
        Kind::SessionFailed,
        Kind::TurnEnded,
        Kind::BudgetExceeded,
        Kind::MissionEnded,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Occasion::Approval => "approval",
            Occasion::WaitingInput => "waiting_input",
            Occasion::Failed => "failed",
            Occasion::Budget => "budget",
            Occasion::MissionDone => "mission_done",
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
            // It goes on by itself with a renewed login: nobody has anything to do.
            Event::SessionFailed(ended) if ended.goes_on_with_a_renewed_login() => None,
            Event::SessionFailed(_) => Some(Occasion::Failed),
            // The end of a session is told by itself.
            Event::TurnEnded(turn)
                if turn.failure().is_some() && turn.goes_on.is_none() && !turn.ends_session =>
            {
                Some(Occasion::Failed)
            }
            Event::BudgetExceeded(_) => Some(Occasion::Budget),
            Event::MissionEnded(_) => Some(Occasion::MissionDone),
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
    /// Whose it is; none of a mission's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    pub campaign: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// Where it can be looked at, or answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// How many others there were at the same time, which are not told by themselves.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
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

/// How notices are written.
const SCHEMA: &str = "ostler.notice/1";

/// A mission, as the shell knows it.
#[derive(Debug, Clone, Copy)]
pub struct OfMission<'a> {
    pub node: &'a str,
    pub name: &'a str,
    pub campaign: &'a str,
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
            session: view.id.to_string(),
            agent: agent.clone(),
            provider: view.provider.clone(),
            ..Notice::blank(recorded, on, whose.node, whose.campaign)
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
                let whose = reached.whose();
                notice.text = format!("{agent} has used up {whose} budget: ostler show {short}");
                Details { text: reached.reason(), why: String::new() }
            }
            _ => return None,
        };
        notice.details = with_details.then_some(details);
        Some(notice)
    }

    /// The notice of a mission that is over; none of any other event.
    pub fn of_mission(recorded: &Recorded, whose: OfMission<'_>, with_details: bool) -> Option<Notice> {
        let Event::MissionEnded(ended) = &recorded.event else { return None };
        let (name, short) = (one_line(whose.name, 64), ended.mission.short());
        let details = Details { text: one_line(&ended.why, NOTICE_TEXT), why: String::new() };
        Some(Notice {
            text: format!(
                "mission {name} is over ({}): ostler mission report {short}",
                ended.status.as_str()
            ),
            mission: Some(ended.mission.to_string()),
            details: Some(details).filter(|details| with_details && !details.text.is_empty()),
            ..Notice::blank(recorded, Occasion::MissionDone, whose.node, whose.campaign)
        })
    }

    /// A notice that is about nothing, for whoever wants to know whether a channel works.
    pub fn trial(on: Occasion, node: &str, channel: &str, now: Time) -> Notice {
        Notice {
            schema: SCHEMA.to_owned(),
            id: format!("{node}-test-{}", now.micros()),
            on,
            text: format!("this is a test of {channel}: nobody waits for you"),
            time: now.rfc3339(),
            session: String::new(),
            agent: String::new(),
            campaign: String::new(),
            provider: String::new(),
            mission: None,
            approval: None,
            tool: None,
            details: None,
            link: None,
            more: 0,
        }
    }

    fn blank(recorded: &Recorded, on: Occasion, node: &str, campaign: &str) -> Notice {
        Notice {
            id: format!("{node}-{}", recorded.seq),
            time: recorded.time.rfc3339(),
            campaign: campaign.to_owned(),
            text: String::new(),
            ..Notice::trial(on, node, "", recorded.time)
        }
    }

    /// Says that there were others, which were not told.
    pub fn with_more(mut self, more: u32) -> Notice {
        self.more = more;
        if more > 0 {
            self.text = format!("{} (and {more} more)", self.text);
        }
        self
    }

    /// The page of the dashboard where it can be looked at.
    pub fn page(&self) -> String {
        match (&self.approval, &self.mission) {
            (Some(approval), _) => format!("/approvals/{approval}"),
            (None, Some(mission)) => format!("/missions/{mission}"),
            (None, None) if self.session.is_empty() => "/".to_owned(),
            (None, None) => format!("/sessions/{}", self.session),
        }
    }

    /// What stands above it, where something does.
    pub fn title(&self) -> String {
        let who = if self.agent.is_empty() { "Ostler" } else { &self.agent };
        match self.on {
            Occasion::Approval => format!("{who} asks for leave"),
            Occasion::WaitingInput => format!("{who} asks a question"),
            Occasion::Failed => format!("{who} failed"),
            Occasion::Budget => format!("{who} has used up its budget"),
            Occasion::MissionDone => "a mission is over".to_owned(),
        }
    }

    /// The text, with details where they are wanted.
    pub fn body(&self) -> String {
        match &self.details {
            Some(details) => format!("{}\n{}", self.text, details.text),
            None => self.text.clone(),
        }
    }

    /// Whether somebody is waited for.
    pub fn is_urgent(&self) -> bool {
        matches!(self.on, Occasion::Approval | Occasion::WaitingInput)
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

/// Whether a notice is too old to be told: the machine slept, or nobody could be reached for a day.
pub fn is_stale(at: Time, now: Time) -> bool {
    now.since(at) > crate::limits::NOTICE_KEPT
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        ApprovalId, CampaignId, ConversationId, Deadline, Now,
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
            no_tools: false,
            leases: Vec::new(),
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
            bounded_by: None,
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
    fn a_mission_that_is_over_is_told_without_a_session() {
        let ended = crate::event::MissionEnded {
            mission: MissionId::new(Time::default(), 5),
            status: crate::mission::Status::Partial,
            why: "2 of 3 were done".to_owned(),
            ran_us: 1,
        };
        let page = format!("/missions/{}", ended.mission);
        let recorded = Recorded { event: Event::MissionEnded(ended), ..asked(AskKind::Leave, true) };
        assert!(Occasion::KINDS.contains(&recorded.event.kind()));
        assert!(matches!(About::of(&recorded), Some(About::Mission(_))));
        let whose = OfMission { node: "nod_1", name: "release", campaign: "shop" };
        let notice = Notice::of_mission(&recorded, whose, false).expect("a notice");
        assert!(notice.text.starts_with("mission release is over (partial): ostler mission report "));
        assert_eq!((notice.page(), notice.details.is_none()), (page, true));
        let told = serde_json::to_value(&notice).expect("plain structs");
        assert!(told.get("session").is_none() && told.get("more").is_none(), "{told}");
        let notice = Notice::of_mission(&recorded, whose, true).expect("a notice").with_more(2);
        assert!(notice.body().ends_with("(and 2 more)\n2 of 3 were done"), "{}", notice.body());
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
