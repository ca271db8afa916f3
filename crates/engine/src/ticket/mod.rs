//! Tickets: writing work down, finding it again, and what becomes of it when sessions begin and end.

mod change;
mod import;
mod keep;
mod work;

pub use change::LinkChange;
pub use keep::NewCheckpoint;

use ostler_domain::{
    CampaignId, ConversationId, Event, Reason, Refusal, TicketId,
    campaign::Campaign,
    event::TicketAdded,
    id::Fragment,
    query::{Listed, Page, TicketFilter},
    text::one_line,
    ticket::{About, DEPENDENCIES, ExternalRef, Links, Status, Ticket, TicketFault, Whole, cycle},
};

use crate::{Change, Engine, clock::entropy};

/// A ticket that is to be written down.
#[derive(Debug, Clone, Default)]
pub struct NewTicket {
    /// Name, id, or any path in it.
    pub campaign: String,
    pub intent: String,
    pub kind: Option<String>,
    pub external: Option<ExternalRef>,
    /// The conversation in which it is to be worked on.
    pub conversation: Option<String>,
    pub depends_on: Vec<String>,
    pub queued: bool,
}

impl Engine {
    /// Writes a ticket down. One of the same reference that is there already is answered as it is; says whether it is new.
    pub async fn add_ticket(&self, wanted: NewTicket, change: Change) -> Result<(Ticket, bool), Refusal> {
        let fingerprint = format!("add_ticket {wanted:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return Ok((self.ticket(&done).await?, true));
        }
        let campaign = self.campaign(&wanted.campaign).await?;
        let about = About::new(&wanted.intent, wanted.kind.as_deref()).map_err(invalid)?;
        let _naming = self.shared.naming.lock().await;
        if let Some(external) = &wanted.external
            && let Some(there) = self.shared.store.ticket_elsewhere(campaign.id, external.as_str()).await?
        {
            return if there.about == about { Ok((there, false)) } else { Err(exists(&there)) };
        }
        let id = TicketId::new(self.shared.clock.now().wall, entropy());
        let conversation = match &wanted.conversation {
            Some(who) => Some(self.workplace(who, campaign.id).await?),
            None => None,
        };
        let depends_on = self.depended_on(id, campaign.id, &wanted.depends_on).await?;
        let links = Links { external: wanted.external, conversation, depends_on };
        let status = if wanted.queued { Status::Queued } else { Status::Initialized };
        let added = TicketAdded { id, campaign: campaign.id, about, links, status, by: change.by.clone() };
        let request = change.done(&fingerprint, id.to_string());
        self.record_nodes(vec![Event::TicketAdded(Box::new(added))], request).await?;
        Ok((self.stored_ticket(id).await?, true))
    }

    /// A conversation that work can be done in: one of an agent of the same campaign.
    async fn workplace(&self, who: &str, campaign: CampaignId) -> Result<ConversationId, Refusal> {
        let found = self.conversation(who).await?;
        if found.agent.is_none() || found.campaign != campaign {
            return Err(Refusal::invalid(format!(
                "a ticket is worked on in a conversation of an agent of its campaign, and {} is none",
                found.name
            ))
            .hint("ostler conversation ls", "lists them")
            .hint("ostler agent add NAME", "registers an agent"));
        }
        Ok(found.id)
    }

    /// The tickets that one is to depend on: each of its campaign, and none that waits for it.
    async fn depended_on(
        &self,
        ticket: TicketId,
        campaign: CampaignId,
        on: &[String],
    ) -> Result<Vec<TicketId>, Refusal> {
        let mut found = Vec::new();
        for who in on {
            let on = self.ticket_in(who, campaign).await?;
            if !found.contains(&on.id) {
                found.push(on.id);
            }
        }
        if found.len() > DEPENDENCIES {
            return Err(Refusal::invalid(format!("a ticket depends on at most {DEPENDENCIES} others")));
        }
        let edges = self.shared.store.dependencies_below(&found).await?;
        for on in &found {
            if let Some(way) = cycle(&edges, ticket, *on) {
                return Err(self.cyclic(ticket, &way).await?);
            }
        }
        Ok(found)
    }

    async fn cyclic(&self, ticket: TicketId, way: &[TicketId]) -> Result<Refusal, Refusal> {
        let mut shown = vec![ticket.short()];
        for id in way {
            let there = self.shared.store.ticket(*id).await?;
            shown.push(there.map_or_else(|| id.short(), |there| named(&there)));
        }
        Ok(Refusal::new(Reason::TicketCycle, "tickets would wait for each other for ever")
            .because(shown.join(" waits for ")))
    }

    /// A ticket that somebody names while they speak of a campaign: there a reference means one.
    async fn ticket_in(&self, who: &str, campaign: CampaignId) -> Result<Ticket, Refusal> {
        if let Ok(external) = who.parse::<ExternalRef>()
            && let Some(there) = self.shared.store.ticket_elsewhere(campaign, external.as_str()).await?
        {
            return Ok(there);
        }
        let found = self.ticket(who).await?;
        if found.campaign != campaign {
            return Err(Refusal::invalid(format!("{} is a ticket of another campaign", named(&found))));
        }
        Ok(found)
    }

    /// The ticket of an id, a unique part of one, a reference, or `CAMPAIGN/REFERENCE`.
    pub async fn ticket(&self, who: &str) -> Result<Ticket, Refusal> {
        let mut found = self.tickets_meant(who).await?;
        match found.len() {
            0 => Err(unknown(who)),
            1 => Ok(found.remove(0)),
            _ => Err(ambiguous(who, &found)),
        }
    }

    /// The tickets that a text may mean.
    async fn tickets_meant(&self, who: &str) -> Result<Vec<Ticket>, Refusal> {
        let store = &self.shared.store;
        if let Ok(id) = who.parse::<TicketId>() {
            return Ok(store.ticket(id).await?.into_iter().collect());
        }
        if let Ok(external) = who.parse::<ExternalRef>() {
            return Ok(store.tickets_elsewhere(external.as_str()).await?);
        }
        if let Some((campaign, rest)) = who.split_once('/')
            && let Ok(external) = rest.parse::<ExternalRef>()
        {
            let campaign: Campaign = self.campaign(campaign).await?;
            return Ok(store.ticket_elsewhere(campaign.id, external.as_str()).await?.into_iter().collect());
        }
        match Fragment::parse(who, TicketId::PREFIX) {
            Some(fragment) => Ok(store.find_tickets(&fragment).await?),
            None => Ok(Vec::new()),
        }
    }

    /// What sessions of a ticket are found by: its id, or the text itself where there is no such ticket.
    pub async fn ticket_word(&self, who: &str, campaign: Option<CampaignId>) -> Result<String, Refusal> {
        let mut found = self.tickets_meant(who).await?;
        found.retain(|ticket| campaign.is_none_or(|campaign| ticket.campaign == campaign));
        match found.as_slice() {
            [] => Ok(who.to_owned()),
            [one] => Ok(one.id.to_string()),
            several => Err(ambiguous(who, several)),
        }
    }

    pub(crate) async fn stored_ticket(&self, id: TicketId) -> Result<Ticket, Refusal> {
        self.shared.store.ticket(id).await?.ok_or_else(|| unknown(&id.to_string()))
    }

    /// A ticket with all that belongs to it.
    pub async fn whole_ticket(&self, who: &str) -> Result<Whole, Refusal> {
        let id = self.ticket(who).await?.id;
        let mut whole = self.shared.store.whole_ticket(id).await?.ok_or_else(|| unknown(who))?;
        // What had no price when it was called may have one now.
        for iteration in whole.iterations.iter_mut().filter(|iteration| iteration.cost.is_none()) {
            let view = self.session(&iteration.session.to_string()).await?;
            let (paid, unpriced) = view.cost.settled(&self.shared.prices.current());
            iteration.cost = unpriced.is_none().then_some(paid);
        }
        Ok(whole)
    }

    pub async fn tickets(&self, filter: &TicketFilter, page: Page) -> Result<Listed<Ticket>, Refusal> {
        Ok(self.shared.store.tickets(filter, page).await?)
    }
}

/// As people are told of it: what it is elsewhere, or the end of its id.
pub(crate) fn named(ticket: &Ticket) -> String {
    ticket.links.external.as_ref().map_or_else(|| ticket.id.short(), ToString::to_string)
}

fn invalid(fault: TicketFault) -> Refusal {
    Refusal::invalid(fault.0)
}

fn exists(there: &Ticket) -> Refusal {
    let name = named(there);
    Refusal::new(
        Reason::TicketExists,
        format!("there is a ticket {name} already, and it says something else"),
    )
    .because(one_line(there.about.title(), 120))
    .hint(format!("ostler ticket show {name}"), "shows it")
    .hint(format!("ostler ticket set {name} intent=…"), "changes what it says")
}

fn unknown(who: &str) -> Refusal {
    Refusal::new(Reason::TicketUnknown, format!("there is no ticket \"{}\"", one_line(who, 64)))
        .hint("ostler ticket ls -a", "lists all there are")
        .hint("ostler ticket add \"…\"", "writes one down")
}

fn ambiguous(who: &str, several: &[Ticket]) -> Refusal {
    let shown: Vec<_> = several
        .iter()
        .take(5)
        .map(|found| format!("{} {}", found.id.short(), one_line(found.about.title(), 40)))
        .collect();
    Refusal::new(Reason::Ambiguous, format!("\"{}\" fits {} tickets", one_line(who, 64), several.len()))
        .because(shown.join(" · "))
        .hint("CAMPAIGN/REFERENCE", "means that of one campaign")
}
