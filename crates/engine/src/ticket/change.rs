//! How a ticket stands, what it is about, and what it belongs to.

use ostler_domain::{
    Event, Reason, Refusal, TicketId,
    event::{TicketChanged, TicketLinked, TicketMoved},
    text::one_line,
    ticket::{About, ExternalRef, Links, MoveFault, Status, Ticket, Verb},
};

use super::{exists, invalid, named};
use crate::{Change, Engine};

/// In what a ticket's links are to differ.
#[derive(Debug, Clone, Default)]
pub struct LinkChange {
    /// Some(None) takes it away.
    pub external: Option<Option<ExternalRef>>,
    pub conversation: Option<Option<String>>,
    pub depends_on: Vec<String>,
    pub no_depends_on: Vec<String>,
}

impl Engine {
    /// Changes how a ticket stands. What holds already is answered as it is.
    pub async fn move_ticket(
        &self,
        who: &str,
        verb: Verb,
        why: &str,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("move_ticket {who} {} {why}", verb.as_str());
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let ticket = self.ticket(who).await?;
        let Some(to) = ticket.status.after(verb).map_err(|fault| refused(&ticket, fault))? else {
            return Ok(ticket);
        };
        if verb == Verb::Archive && ticket.status != Status::Done {
            self.check_nobody_waits_for(&ticket).await?;
        }
        let moved = TicketMoved {
            id: ticket.id,
            from: ticket.status,
            to,
            by: change.by.clone(),
            why: why.trim().to_owned(),
            session: None,
        };
        let request = change.done(&fingerprint, ticket.id.to_string());
        self.record_nodes(vec![Event::TicketMoved(moved)], request).await?;
        self.stored_ticket(ticket.id).await
    }

    /// What is archived counts as done: what came to nothing does not, while others wait for it.
    async fn check_nobody_waits_for(&self, ticket: &Ticket) -> Result<(), Refusal> {
        let waiting = self.shared.store.tickets_waiting_for(ticket.id).await?;
        let Some(first) = waiting.first() else { return Ok(()) };
        let (name, first, status) = (named(ticket), named(first), ticket.status.as_str());
        let others = match waiting.len() {
            1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        Err(Refusal::new(
            Reason::WrongState,
            format!("ticket {name} is {status}, and {first}{others} waits for it"),
        )
        .because("an archived ticket counts as done, and this one was not")
        .hint(format!("ostler ticket link {first} --no-depends-on {name}"), "has it wait no longer")
        .hint(format!("ostler ticket reopen {name}"), "has it done after all"))
    }

    /// Changes what a ticket is about.
    pub async fn change_ticket(
        &self,
        who: &str,
        intent: Option<&str>,
        kind: Option<&str>,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("change_ticket {who} {intent:?} {kind:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let ticket = self.ticket(who).await?;
        let before = &ticket.about;
        let about = About::new(intent.unwrap_or(&before.intent), Some(kind.unwrap_or(&before.kind)));
        let about = about.map_err(invalid)?;
        if about == ticket.about {
            return Ok(ticket);
        }
        let changed = TicketChanged { id: ticket.id, about, by: change.by.clone() };
        let request = change.done(&fingerprint, ticket.id.to_string());
        self.record_nodes(vec![Event::TicketChanged(changed)], request).await?;
        self.stored_ticket(ticket.id).await
    }

    /// Changes what a ticket belongs to and depends on: all of it, or nothing.
    pub async fn link_ticket(
        &self,
        who: &str,
        wanted: LinkChange,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("link_ticket {who} {wanted:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let ticket = self.ticket(who).await?;
        let links = self.changed_links(&ticket, wanted).await?;
        if links == ticket.links {
            return Ok(ticket);
        }
        let linked = TicketLinked { id: ticket.id, links, by: change.by.clone() };
        let request = change.done(&fingerprint, ticket.id.to_string());
        self.record_nodes(vec![Event::TicketLinked(linked)], request).await?;
        self.stored_ticket(ticket.id).await
    }

    async fn changed_links(&self, ticket: &Ticket, wanted: LinkChange) -> Result<Links, Refusal> {
        let mut links = ticket.links.clone();
        if let Some(external) = wanted.external {
            if let Some(external) = &external
                && let Some(there) =
                    self.shared.store.ticket_elsewhere(ticket.campaign, external.as_str()).await?
                && there.id != ticket.id
            {
                return Err(exists(&there));
            }
            links.external = external;
        }
        if let Some(conversation) = wanted.conversation {
            links.conversation = match conversation {
                Some(who) => Some(self.workplace(&who, ticket.campaign).await?),
                None => None,
            };
        }
        let mut gone: Vec<TicketId> = Vec::new();
        for who in &wanted.no_depends_on {
            gone.push(self.ticket_in(who, ticket.campaign).await?.id);
        }
        links.depends_on.retain(|id| !gone.contains(id));
        let mut on: Vec<String> = links.depends_on.iter().map(ToString::to_string).collect();
        on.extend(wanted.depends_on);
        links.depends_on = self.depended_on(ticket.id, ticket.campaign, &on).await?;
        links.depends_on.sort_unstable();
        Ok(links)
    }
}

pub(super) fn refused(ticket: &Ticket, fault: MoveFault) -> Refusal {
    let name = named(ticket);
    let said = format!("ticket {name} is {}", ticket.status.as_str());
    let refusal = match fault.verb {
        Verb::Start => Refusal::new(Reason::TicketClosed, format!("{said}, so nothing is started for it")),
        _ => Refusal::new(Reason::WrongState, format!("{said}: {fault}")),
    };
    let refusal = match &ticket.why {
        Some(why) => refusal.because(one_line(why, 200)),
        None => refusal,
    };
    match fault.verb {
        Verb::Archive => refusal.hint(format!("ostler ticket cancel {name}"), "says that nobody wants it"),
        Verb::Reopen => refusal.hint(format!("ostler ticket start {name}"), "has an agent work on it"),
        _ => refusal.hint(format!("ostler ticket reopen {name}"), "opens it again"),
    }
}
