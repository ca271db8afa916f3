//! All that the screen knows: what the daemon said last, where the cursor stands, what is being typed.

use std::time::Duration;

use ostler_client::{Approval, Mission, Session};
use ostler_domain::{
    ApprovalId, CampaignId, MissionId, SessionId, Time, budget::Today, event::AskKind, limits::NOTICE_LOOK,
    session::Attention,
};
use ostler_screen::{
    Line, Look,
    cost::{By, Sums},
    sessions::CampaignNames,
};

use crate::{draft::Draft, message::Drawn, rate::Rate, story::Story};

/// A key that was on its way when a question appeared was not meant for it.
pub(crate) const INERT: Duration = Duration::from_millis(600);

/// Texts that are kept for their boxes.
const UNSAID: usize = 16;

/// How things stand, as the daemon told it.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// In the order of lists: who needs you comes first.
    pub(crate) sessions: Vec<Session>,
    /// There are more than are asked for.
    pub(crate) is_cut: bool,
    /// Whether there was ever a session.
    pub(crate) has_any: bool,
    pub(crate) campaigns: CampaignNames,
    /// Open ones, the oldest first.
    pub(crate) approvals: Vec<Approval>,
    pub(crate) today: Option<Today>,
    /// Why everything stands still, or nothing new starts.
    pub(crate) stands: Vec<String>,
}

/// The way to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Nothing was heard yet.
    Opening,
    Up,
    Down {
        since: Time,
    },
}

/// Where keys go that mean different things to a list and to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Focus {
    #[default]
    List,
    Card,
}

/// What fills the screen.
#[derive(Debug, Default)]
pub(crate) enum View {
    #[default]
    List,
    /// Only the session under the cursor.
    Peek,
    Help,
    Cost {
        by: By,
        sums: Option<Box<Sums>>,
    },
    Missions(Missions),
}

#[derive(Debug, Default)]
pub(crate) struct Missions {
    pub(crate) listed: Option<Vec<Mission>>,
    pub(crate) chosen: Option<MissionId>,
    pub(crate) drawn: Option<Box<Drawn>>,
}

/// A box over the view, which takes all keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// A text to somebody: each has a title of its own.
    Write { to: Addressee, draft: Draft },
    /// A new session. The campaign is one of those that there are.
    New { campaign: Option<CampaignId>, draft: Draft },
    /// What is typed holds at once; `before` comes back with Esc.
    /// Before it: what was filtered, and where the cursor was.
    Filter { draft: Draft, before: (String, Option<SessionId>) },
    /// Done after a yes, and not by any other key.
    Ask(Deed),
    /// A request in full.
    Full { id: ApprovalId, scrolled: usize },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Addressee {
    /// A message to the agent.
    Session(SessionId),
    /// The answer to a question in words.
    Answer(ApprovalId),
    /// Why it may not.
    Denial(ApprovalId),
    /// Whoever goes on with its work.
    Successor(SessionId),
}

/// A text that was not taken. Its box has it when that is opened again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsaid {
    /// None is a session that would have been new.
    pub(crate) to: Option<Addressee>,
    pub(crate) text: String,
}

impl Unsaid {
    /// The key that opens its box.
    pub(crate) const fn key(&self) -> &'static str {
        match self.to {
            None => "n",
            Some(Addressee::Session(_)) => "r",
            Some(Addressee::Answer(_)) => "a",
            Some(Addressee::Denial(_)) => "m",
            Some(Addressee::Successor(_)) => "h",
        }
    }
}

/// What is asked about first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Stop(SessionId),
    AllowAlways(ApprovalId),
    /// Attaching to what has ended begins a new session.
    AttachAnew(SessionId),
}

/// What was done or refused last.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) lines: Vec<Line>,
    pub(crate) until: Time,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Time,
    pub(crate) look: Look,
    /// The machine that is looked at.
    pub(crate) node: String,
    /// Where a new session starts when nobody is under the cursor: the campaign around the working directory.
    pub(crate) near: Option<CampaignId>,
    pub(crate) link: Link,
    /// When it was last said to be back.
    pub(crate) back_at: Option<Time>,
    pub(crate) overview: Overview,
    pub(crate) rate: Rate,
    /// Words that a row must have.
    pub(crate) filter: String,
    /// Ended ones too.
    pub(crate) with_ended: bool,
    pub(crate) cursor: Option<SessionId>,
    /// Whether the terminal is in front, where it says so.
    pub(crate) is_faced: Option<bool>,
    /// When a key was pressed last.
    pub(crate) pressed: Option<Time>,
    pub(crate) focus: Focus,
    /// The question that is seen, and since when.
    pub(crate) card: Option<(ApprovalId, Time)>,
    pub(crate) story: Story,
    /// Lines that were scrolled up from the end of the story.
    pub(crate) scrolled: usize,
    pub(crate) view: View,
    pub(crate) dialog: Option<Dialog>,
    /// What was written and not taken, the newest last.
    pub(crate) unsaid: Vec<Unsaid>,
    pub(crate) notice: Option<Notice>,
}

/// How far what is seen can be scrolled; none of what is not seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) story: Option<usize>,
    pub(crate) full: Option<usize>,
}

impl State {
    /// What was drawn has an end: who scrolled beyond it is there, and the next key leads back.
    pub(crate) fn reached(&mut self, reach: Reach) {
        if let Some(most) = reach.story {
            self.scrolled = self.scrolled.min(most);
        }
        if let (Some(Dialog::Full { scrolled, .. }), Some(most)) = (&mut self.dialog, reach.full) {
            *scrolled = most.min(*scrolled);
        }
    }

    pub(crate) fn new(now: Time, look: Look, node: String, near: Option<CampaignId>) -> Self {
        Self {
            now,
            look,
            node,
            near,
            link: Link::Opening,
            back_at: None,
            overview: Overview::default(),
            rate: Rate::default(),
            filter: String::new(),
            with_ended: false,
            cursor: None,
            is_faced: None,
            pressed: None,
            focus: Focus::default(),
            card: None,
            story: Story::default(),
            scrolled: 0,
            view: View::default(),
            dialog: None,
            unsaid: Vec::new(),
            notice: None,
        }
    }

    /// Keeps what was written in vain.
    pub(crate) fn keep(&mut self, unsaid: Unsaid) {
        self.unsaid.retain(|kept| kept.to != unsaid.to);
        self.unsaid.push(unsaid);
        let too_many = self.unsaid.len().saturating_sub(UNSAID);
        self.unsaid.drain(..too_many);
    }

    /// What a box begins with: what was written there in vain, and usually nothing.
    pub(crate) fn draft(&mut self, to: Option<&Addressee>) -> Draft {
        let kept = self.unsaid.iter().position(|kept| kept.to.as_ref() == to);
        kept.map_or_else(Draft::default, |place| Draft::of(&self.unsaid.remove(place).text))
    }

    /// Opens a box for a text to somebody.
    pub(crate) fn write(&mut self, to: Addressee) {
        let draft = self.draft(Some(&to));
        self.dialog = Some(Dialog::Write { to, draft });
    }

    /// Whether somebody sees it: the terminal is in front, or, where it does not say, a key was just pressed.
    pub(crate) fn is_looked_at(&self) -> bool {
        let just_pressed = || self.pressed.is_some_and(|at| self.now.since(at) < NOTICE_LOOK);
        self.is_faced.unwrap_or_else(just_pressed)
    }

    /// The rows that are shown.
    pub(crate) fn rows(&self) -> Vec<&Session> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let fits = |session: &&Session| {
            let has = self.words_of(session);
            words.iter().all(|word| has.contains(word))
        };
        self.overview.sessions.iter().filter(fits).collect()
    }

    /// Puts the cursor on a row that is seen: on this one, else where it is, else on the first.
    pub(crate) fn place_cursor(&mut self, wanted: Option<SessionId>) {
        let rows = self.rows();
        let is_seen = |id: &SessionId| rows.iter().any(|session| session.id == *id);
        let kept = [wanted, self.cursor].into_iter().flatten().find(is_seen);
        self.cursor = kept.or(rows.first().map(|session| session.id));
    }

    /// What a filter looks at.
    fn words_of(&self, session: &Session) -> String {
        let attention = session.attention.map(|attention| attention.as_str()).unwrap_or_default();
        let needs = if session.attention.is_some_and(Attention::needs_you) { "needs-me" } else { "" };
        let outcome = session.outcome.map(|outcome| outcome.as_str()).unwrap_or_default();
        let texts = [
            session.name.as_str(),
            &self.overview.campaigns.of(&session.campaign),
            &session.provider,
            session.model.as_deref().unwrap_or_default(),
            session.ticket.as_deref().unwrap_or_default(),
            session.branch.as_deref().unwrap_or_default(),
            session.status.as_str(),
            attention,
            outcome,
            needs,
            &session.id.short(),
        ];
        texts.join(" ").to_lowercase()
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<&Session> {
        self.overview.sessions.iter().find(|session| session.id == id)
    }

    /// The session under the cursor.
    pub(crate) fn current(&self) -> Option<&Session> {
        self.session(self.cursor?)
    }

    pub(crate) fn approval(&self, id: ApprovalId) -> Option<&Approval> {
        self.overview.approvals.iter().find(|approval| approval.id == id)
    }

    /// What the session under the cursor asks.
    pub(crate) fn question(&self) -> Option<&Approval> {
        let session = self.cursor?;
        self.overview.approvals.iter().find(|approval| approval.session == session)
    }

    /// Whether keys may answer: it has the focus, and was seen for a while.
    pub(crate) fn may_answer(&self) -> bool {
        let is_seen = self.card.is_some_and(|(_, since)| self.now.since(since) >= INERT);
        self.focus == Focus::Card && is_seen
    }

    /// A session's name, for titles.
    pub(crate) fn name(&self, id: SessionId) -> String {
        self.session(id).map_or_else(|| id.short(), |session| session.name.to_string())
    }

    /// The name of whoever asks.
    pub(crate) fn asker(&self, id: ApprovalId) -> String {
        self.approval(id).map_or_else(|| id.short(), |approval| self.name(approval.session))
    }

    pub(crate) fn campaign_of(&self, session: SessionId) -> String {
        let campaign = self.session(session).map(|session| session.campaign);
        campaign.map(|id| self.overview.campaigns.of(&id)).unwrap_or_default()
    }

    /// Campaigns by name: where a new session may be.
    pub(crate) fn campaigns(&self) -> Vec<(CampaignId, &str)> {
        let names = self.overview.campaigns.0.iter();
        let mut all: Vec<_> = names.map(|(id, name)| (*id, name.as_str())).collect();
        all.sort_by(|one, other| one.1.cmp(other.1));
        all
    }
}

/// Whether a question wants words for an answer.
pub(crate) fn wants_words(approval: &Approval) -> bool {
    approval.kind == AskKind::Question
}
