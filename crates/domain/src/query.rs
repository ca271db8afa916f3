//! Questions to the record: filters and pages. The same words for the API, the CLI and the store.

use crate::{
    AgentId, CampaignId, ConversationId, Kind, MissionId, SessionId, Time, Usage,
    conversation::Key,
    price::Dollars,
    session::{Attention, Outcome, Status},
    ticket,
};

/// Which sessions a list is about. Empty fields ask for nothing in particular.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    pub scope: Scope,
    pub campaign: Option<CampaignId>,
    pub conversation: Option<ConversationId>,
    pub chain: Option<SessionId>,
    pub continues: Option<SessionId>,
    /// The session whose agent asked for it.
    pub spawned_by: Option<SessionId>,
    /// The conversation's name.
    pub name: Option<String>,
    /// How the conversation's name begins.
    pub name_begins: Option<String>,
    /// The agent's name; that of the conversation where none is registered.
    pub agent: Option<String>,
    /// The agent's role.
    pub role: Option<String>,
    /// The branch that was checked out when it was created, or on which it was seen to make commits.
    pub branch: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub ticket: Option<String>,
    /// The mission whose assignment it works on.
    pub mission: Option<MissionId>,
    pub statuses: Vec<Status>,
    pub attention: Vec<Attention>,
    pub outcomes: Vec<Outcome>,
    /// Created at or after.
    pub since: Option<Time>,
    /// Created before.
    pub until: Option<Time>,
    /// What is paid for has cost this much, or more.
    pub min_cost: Option<Dollars>,
}

/// The ticket of sessions that only try whether a provider starts. Those that have ended are in no list of all that
/// happened: they are found by this ticket, or by their own names.
pub const TRIAL_TICKET: &str = "ostler:trial";

impl SessionFilter {
    /// Whether a ticket fits too: one of the campaign, or the one that is named. None does where something is asked for that
    /// only sessions have.
    pub fn fits_ticket(&self, ticket: &ticket::Ticket) -> bool {
        let Some((campaign, named)) = self.of_tickets() else { return false };
        campaign.is_none_or(|campaign| ticket.campaign == campaign)
            && named.is_none_or(|named| {
                let external = ticket.links.external.as_ref().map(ToString::to_string);
                named == ticket.id.to_string() || external.as_deref() == Some(named)
            })
    }

    /// Whether tickets may fit, of which campaign, and which one.
    pub fn of_tickets(&self) -> Option<(Option<CampaignId>, Option<&str>)> {
        let Self { scope, campaign, ticket, .. } = self;
        let of_both =
            SessionFilter { scope: *scope, campaign: *campaign, ticket: ticket.clone(), ..Self::default() };
        (*self == of_both).then_some((*campaign, ticket.as_deref()))
    }

    /// Whether ended trials of providers are asked for: whoever names something in particular wants to see it.
    pub fn asks_for_trials(&self) -> bool {
        let Self { conversation, chain, continues, name, agent, ticket, mission, .. } = self;
        agent.is_some()
            || conversation.is_some()
            || chain.is_some()
            || continues.is_some()
            || name.is_some()
            || ticket.is_some()
            || mission.is_some()
    }
}

/// Which conversations a list is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationFilter {
    pub campaign: Option<CampaignId>,
    pub agent: Option<AgentId>,
    pub key: Option<Key>,
    pub name: Option<String>,
    /// Closed ones too.
    pub closed_too: bool,
    /// Something was said to it, or a session of it began, at or after this.
    pub since: Option<Time>,
    /// Nothing was, at or after this.
    pub until: Option<Time>,
}

/// Which tickets a list is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TicketFilter {
    pub campaign: Option<CampaignId>,
    pub statuses: Vec<ticket::Status>,
    /// What sort of work: `bug`.
    pub kind: Option<String>,
    /// The name of an agent that worked on it, or in whose conversation it is.
    pub agent: Option<String>,
    pub external: Option<String>,
    pub conversation: Option<ConversationId>,
    /// Archived ones too, where no status is asked for.
    pub archived_too: bool,
    /// Added at or after.
    pub since: Option<Time>,
    /// Added before.
    pub until: Option<Time>,
}

/// How far back a list of sessions looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    All,
    /// Those that have not ended, and those that failed at or after this time and that nobody went on with.
    Current { failed_since: Time },
    /// Those that have not ended.
    NotEnded,
}

/// Which events a list or a watch is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    pub session: Option<SessionId>,
    pub kinds: Vec<Kind>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Of sessions that this fits by now.
    pub sessions: Option<Box<SessionFilter>>,
}

impl EventFilter {
    /// Says whether an event of this kind, session and time is asked for. What the session is like is not looked at:
    /// the record knows that.
    pub fn fits(&self, kind: Kind, session: Option<SessionId>, time: Time) -> bool {
        self.session.is_none_or(|wanted| session == Some(wanted))
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
            && self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until)
    }
}

/// A piece of a list: at most `limit` rows after the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub limit: u32,
    pub cursor: Option<u64>,
}

impl Page {
    /// A first page of the given size, within what is allowed; 0 asks for the usual.
    pub fn of(limit: u32, cursor: Option<u64>) -> Self {
        let limit =
            if limit == 0 { crate::limits::PAGE_DEFAULT } else { limit.min(crate::limits::PAGE_MOST) };
        Self { limit, cursor }
    }
}

/// Rows, and where the next ones begin. A cursor with fewer rows than asked means that the scan reached its
/// limit, not the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    pub rows: Vec<T>,
    pub next_cursor: Option<u64>,
}

/// Which model calls a sum is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageFilter {
    pub campaign: Option<CampaignId>,
    pub session: Option<SessionId>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The conversation's name.
    pub name: Option<String>,
    pub ticket: Option<String>,
    pub chain: Option<SessionId>,
    /// Made at or after.
    pub since: Option<Time>,
    /// Made before.
    pub until: Option<Time>,
    /// Of sessions that this fits by now.
    pub sessions: Option<Box<SessionFilter>>,
}

/// What gets a sum of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageBy {
    #[default]
    Total,
    Campaign,
    Session,
    Provider,
    Model,
    /// Day in UTC, as `2026-01-31`.
    Day,
    Chain,
    Ticket,
    Mission,
}

/// Model calls added up.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageSum {
    /// Whose they are: an id or a name, as asked for; empty for a total or where nothing is known.
    pub key: String,
    /// What people call that, where they do not call it by its key.
    pub name: String,
    pub calls: u64,
    /// How many sessions made them.
    pub sessions: u64,
    pub usage: Usage,
    /// What the calls that are paid for one by one cost, as far as they had a price.
    pub cost: Dollars,
    /// The same of those that a subscription covers.
    pub plan: Dollars,
    /// The tokens of calls that had no price.
    pub unpriced: Usage,
    pub plan_unpriced: Usage,
}
