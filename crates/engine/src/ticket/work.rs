//! What becomes of a ticket when sessions of it begin and end.

use ostler_domain::{
    Event, Reason, Refusal, SessionId, TicketId, Time,
    campaign::Campaign,
    event::{By, TicketAdded, TicketMoved},
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter, TRIAL_TICKET},
    session::{Outcome, Restart, State, StopRule, View},
    text::one_line,
    ticket::{About, AfterSession, ExternalRef, Links, Status, Ticket, Verb, waits_for},
};
use ostler_store::ReadError;

use super::{change::refused, named};
use crate::{Change, Engine, NewSession, clock::entropy, shared::Shared};

/// A ticket that a session is to work on.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    pub(crate) id: TicketId,
    /// As it is shown.
    pub(crate) shown: String,
    /// What is recorded with the session.
    pub(crate) events: Vec<Event>,
}

impl Engine {
    /// What a ticket says of a session that is to work on it, where nobody says otherwise: its conversation.
    pub(crate) async fn fill_from_ticket(
        &self,
        wanted: &mut NewSession,
        campaign: &Campaign,
    ) -> Result<(), Refusal> {
        let Some(text) = wanted.ticket.as_deref().filter(|text| *text != TRIAL_TICKET) else {
            return Ok(());
        };
        let there = match text.parse::<ExternalRef>() {
            Ok(external) => self.shared.store.ticket_elsewhere(campaign.id, external.as_str()).await?,
            Err(_) => Some(self.ticket_in(text, campaign.id).await?),
        };
        let conversation = there.and_then(|there| there.links.conversation);
        if let Some(id) = conversation.filter(|_| wanted.agent.is_none() && wanted.key.is_none()) {
            let conversation = self.stored_conversation(id).await?;
            wanted.agent = conversation.agent.map(|id| id.to_string());
            wanted.key = Some(conversation.key);
        }
        Ok(())
    }

    /// The ticket that a new session works on: refused while it waits for others, or is over. A reference that nobody wrote
    /// down is, with what the session is told. Names are being chosen by nobody else meanwhile.
    pub(crate) async fn begin_ticket(
        &self,
        wanted: &NewSession,
        campaign: &Campaign,
        session: SessionId,
        change: &Change,
    ) -> Result<Option<Begun>, Refusal> {
        let Some(text) = wanted.ticket.as_deref().filter(|text| *text != TRIAL_TICKET) else {
            return Ok(None);
        };
        if let Ok(external) = text.parse::<ExternalRef>()
            && self.shared.store.ticket_elsewhere(campaign.id, external.as_str()).await?.is_none()
        {
            return self.write_down(external, wanted, campaign, session, change).map(Some);
        }
        let ticket = self.ticket_in(text, campaign.id).await?;
        let events = self.starting(&ticket, session, change).await?.into_iter().collect();
        Ok(Some(Begun { id: ticket.id, shown: ticket.shown(), events }))
    }

    fn write_down(
        &self,
        external: ExternalRef,
        wanted: &NewSession,
        campaign: &Campaign,
        session: SessionId,
        change: &Change,
    ) -> Result<Begun, Refusal> {
        let id = TicketId::new(self.shared.clock.now().wall, entropy());
        let intent = wanted.prompt.as_deref().unwrap_or(external.as_str());
        let about = About::new(intent, None).map_err(super::invalid)?;
        let shown = external.to_string();
        let links = Links { external: Some(external), ..Links::default() };
        let (campaign, by) = (campaign.id, change.by.clone());
        let status = Status::Initialized;
        let added = TicketAdded { id, campaign, about, links, status, by: by.clone() };
        let moved = moved(id, status, Status::Running, by, String::new(), session);
        Ok(Begun { id, shown, events: vec![Event::TicketAdded(Box::new(added)), moved] })
    }

    async fn starting(
        &self,
        ticket: &Ticket,
        session: SessionId,
        change: &Change,
    ) -> Result<Option<Event>, Refusal> {
        let Some(to) = ticket.status.after(Verb::Start).map_err(|fault| refused(ticket, fault))? else {
            // One more works on what is being worked on.
            return Ok(None);
        };
        let blockers = self.shared.store.blockers(ticket.id).await?;
        let open = waits_for(&blockers);
        if !open.is_empty() {
            let name = named(ticket);
            let lines = open.iter().map(|blocker| {
                let name = blocker.external.as_ref().map_or_else(|| blocker.id.short(), ToString::to_string);
                format!("{name} is {}: {}", blocker.status.as_str(), one_line(&blocker.title, 80))
            });
            let id = open[0].id.short();
            // What was cancelled is started for nobody.
            let first = match open[0].status.after(Verb::Start) {
                Ok(_) => (format!("ostler ticket start {id}"), "has an agent do the first of them"),
                Err(_) => (format!("ostler ticket reopen {id}"), "opens the first of them again"),
            };
            return Err(Refusal::new(
                Reason::TicketWaits,
                format!("ticket {name} waits for {} that must be done before it", open.len()),
            )
            .because(lines.collect::<Vec<_>>().join("\n"))
            .hint(first.0, first.1)
            .hint(
                format!("ostler ticket link {name} --no-depends-on {}", open[0].id.short()),
                "says that it need not be done before",
            ));
        }
        Ok(Some(moved(ticket.id, ticket.status, to, change.by.clone(), String::new(), session)))
    }

    /// A session goes on with the work of an ended one: the ticket runs again, unless it is over. Those whom a person's
    /// message wakes talk on without it.
    pub(crate) async fn continue_ticket(
        &self,
        id: TicketId,
        session: SessionId,
        by_person: bool,
        change: &Change,
    ) -> Result<Option<Event>, Refusal> {
        let ticket = self.stored_ticket(id).await?;
        refusal_unless_open(&ticket, by_person)?;
        let to = ticket.status.after(Verb::Start).map_err(|fault| refused(&ticket, fault))?;
        let by = change.by.clone();
        Ok(to.map(|to| moved(id, ticket.status, to, by, String::new(), session)))
    }
}

impl Engine {
    /// A person says of a session that had ended in peace that its work is done: so is its ticket, unless somebody works on
    /// that.
    pub(crate) async fn finish_ticket_of(&self, ended: &View, change: &Change) -> Result<(), Refusal> {
        let Some(id) = ended.ticket_id.filter(|_| ended.spawned_by.is_none()) else { return Ok(()) };
        if ended.outcome != Some(Outcome::Done) || self.shared.do_others_work_on(id, ended.id).await? {
            return Ok(());
        }
        let _naming = self.shared.naming.lock().await;
        let ticket = self.stored_ticket(id).await?;
        let Ok(Some(to)) = ticket.status.after(Verb::Done) else { return Ok(()) };
        let why = format!("The work of session {} is done.", ended.id.short());
        let moved = moved(id, ticket.status, to, change.by.clone(), why, ended.id);
        self.record_nodes(vec![moved], None).await
    }
}

/// Nobody works on what is over. What failed is tried again by a person's word only.
fn refusal_unless_open(ticket: &Ticket, by_person: bool) -> Result<(), Refusal> {
    let is_tried_again = by_person && ticket.status == Status::Failed;
    if ticket.status.is_open() || is_tried_again {
        return Ok(());
    }
    Err(refused(ticket, ostler_domain::ticket::MoveFault { from: ticket.status, verb: Verb::Start }))
}

impl Shared {
    /// Whether the ticket that a session works on is over. Where that cannot be known, it is asked again before another
    /// session goes on.
    pub(crate) async fn is_work_over(&self, state: &State) -> bool {
        let Some(id) = state.created().config.ticket_id else { return false };
        self.store.ticket(id).await.is_ok_and(|ticket| ticket.is_some_and(|ticket| !ticket.status.is_open()))
    }

    /// What the end of a session means for the ticket that it worked on.
    pub(crate) async fn ticket_after(&self, state: &State, at: Time) -> Option<(Time, Event)> {
        let created = state.created();
        let id = created.config.ticket_id?;
        // A helper does a part of the work: whoever asked for it says what becomes of all of it.
        if created.spawned_by.is_some() {
            return None;
        }
        let looked = async {
            let ticket = self.store.ticket(id).await?;
            Ok::<_, ReadError>((ticket, self.do_others_work_on(id, created.id).await?))
        };
        let (ticket, has_others) = match looked.await {
            Ok((ticket, has_others)) => (ticket?, has_others),
            Err(error) => {
                tracing::warn!(session = %created.id, %error, "its ticket cannot be read");
                return None;
            }
        };
        let view = state.view();
        // A person may have said it in the place of its agent.
        let done_by = state.stop().filter(|stop| stop.rule == StopRule::Done).map(|stop| stop.by.clone());
        let end = AfterSession {
            outcome: view.outcome?,
            said_done: state.has_said_done() || done_by.is_some(),
            goes_on: has_others || matches!(view.restart, Some(Restart::At(_))),
        };
        let to = ticket.status.after(end.verb(ticket.status)?).ok()??;
        let by = done_by.unwrap_or_else(By::ostler);
        let why = view.obituary.map(|obituary| obituary.sentence).unwrap_or_default();
        Some((at, moved(id, ticket.status, to, by, why, created.id)))
    }

    /// Whether any session but this one, and but helpers, works on a ticket.
    async fn do_others_work_on(&self, id: TicketId, but: SessionId) -> Result<bool, ReadError> {
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            tickets: vec![id.to_string()],
            ..SessionFilter::default()
        };
        let others = self.store.list_sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
        Ok(others.iter().any(|other| other.id != but && other.spawned_by.is_none()))
    }
}

fn moved(id: TicketId, from: Status, to: Status, by: By, why: String, session: SessionId) -> Event {
    Event::TicketMoved(TicketMoved { id, from, to, by, why, session: Some(session) })
}
