//! Questions to the record: filters and pages. The same words for the API, the CLI and the store.

use crate::{
    AgentId, CampaignId, ConversationId, Kind, MissionId, Refusal, SessionId, Time, Usage,
    conversation::Key,
    price::Dollars,
    session::{Attention, Outcome, Status, View},
    text::{nearest, one_line},
    ticket,
};

/// Which sessions a list is about. Empty fields ask for nothing in particular; of a list one is to fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    pub scope: Scope,
    pub campaigns: Vec<CampaignId>,
    pub conversation: Option<ConversationId>,
    pub chains: Vec<SessionId>,
    pub continues: Option<SessionId>,
    /// The session whose agent asked for it.
    pub spawned_by: Option<SessionId>,
    /// The conversation's name.
    pub name: Option<String>,
    /// How the conversation's name begins.
    pub name_begins: Option<String>,
    /// The agent's name; that of the conversation where none is registered.
    pub agents: Vec<String>,
    /// The agent's role.
    pub roles: Vec<String>,
    /// The branch that was checked out when it was created, or on which it was seen to make commits.
    pub branches: Vec<String>,
    pub providers: Vec<String>,
    pub models: Vec<String>,
    pub tickets: Vec<String>,
    /// The mission whose assignment it works on.
    pub missions: Vec<MissionId>,
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
        if !self.may_be_tickets() {
            return false;
        }
        let external = ticket.links.external.as_ref().map(ToString::to_string);
        let is = |named: &String| *named == ticket.id.to_string() || Some(named) == external.as_ref();
        (self.campaigns.is_empty() || self.campaigns.contains(&ticket.campaign))
            && (self.tickets.is_empty() || self.tickets.iter().any(is))
    }

    /// Whether tickets may fit.
    pub fn may_be_tickets(&self) -> bool {
        let Self { scope, campaigns, tickets, .. } = self;
        let (campaigns, tickets) = (campaigns.clone(), tickets.clone());
        *self == SessionFilter { scope: *scope, campaigns, tickets, ..Self::default() }
    }

    /// Whether ended trials of providers are asked for: whoever names something in particular wants to see it.
    pub fn asks_for_trials(&self) -> bool {
        let Self { conversation, chains, continues, name, agents, tickets, missions, .. } = self;
        conversation.is_some()
            || continues.is_some()
            || name.is_some()
            || !(agents.is_empty() && chains.is_empty() && tickets.is_empty() && missions.is_empty())
    }
}

/// The words of a list as people write it, with commas between them: `a,b`. None of them is empty.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// A word that a filter has and that is none of those there are: the nearest of these, and all.
pub fn no_such<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> Refusal {
    let known: Vec<&str> = known.into_iter().collect();
    let lower: Vec<String> = known.iter().map(|word| word.to_lowercase()).collect();
    let meant = nearest(&word.to_lowercase(), lower.iter().map(String::as_str));
    let meant = meant.and_then(|meant| known.iter().find(|known| known.to_lowercase() == meant));
    let near = meant.map(|meant| format!(", the nearest is {meant}")).unwrap_or_default();
    Refusal::invalid(format!("there is no {what} \"{}\"{near}", one_line(word, 64)))
        .because(format!("there are: {}", known.join(", ")))
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
    /// Those that have not ended, those that failed at or after this time and that nobody went on with, and those that are to
    /// go on by themselves and cannot.
    Current { failed_since: Time },
    /// Those that have not ended.
    NotEnded,
}

impl Scope {
    /// Says whether a session is within it. `is_continued`: another one went on with it. The record asks the same in SQL.
    pub fn fits(self, session: &View, is_continued: bool) -> bool {
        match self {
            Scope::All => true,
            Scope::NotEnded => session.ended_at.is_none(),
            Scope::Current { failed_since } => session.ended_at.is_none_or(|ended| {
                let is_news = session.status == Status::Failed && ended >= failed_since && !is_continued;
                is_news || session.restart_refused.is_some()
            }),
        }
    }
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
    pub campaigns: Vec<CampaignId>,
    pub session: Option<SessionId>,
    pub providers: Vec<String>,
    pub models: Vec<String>,
    /// The conversation's name.
    pub name: Option<String>,
    pub tickets: Vec<String>,
    pub chains: Vec<SessionId>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_words_between_its_commas() {
        let read = |text| words(text).collect::<Vec<_>>();
        assert_eq!(read("codex, script,,"), ["codex", "script"]);
        assert_eq!(read("codex"), ["codex"]);
        assert!(read(" , ").is_empty());
    }

    #[test]
    fn a_wrong_word_is_told_what_it_may_have_been() {
        let known = || Status::ALL.iter().map(|status| status.as_str());
        let refusal = no_such("status", "workng", known());
        assert_eq!(refusal.message, "there is no status \"workng\", the nearest is WORKING");
        assert!(refusal.why.unwrap().contains("CREATED, STARTING"));
        assert_eq!(no_such("status", "gone", known()).message, "there is no status \"gone\"");
    }
}
