//! Tickets: units of work, and what came of them.

use ostler_domain::{
    call::StepMark,
    query::{Listed, Page, TicketFilter},
    ticket::{Imported, OutputKind, Ticket, Verb, Whole, Work},
};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, ticket_service_client::TicketServiceClient as Service},
    request::{AddTicket, LinkTicket, MakeCheckpoint},
    to_proto,
};

use crate::{Client, Error};

impl Client {
    /// Writes a ticket down, and says whether it was not there before.
    pub async fn add_ticket(&self, wanted: AddTicket) -> Result<(Ticket, bool), Error> {
        let request = to_proto::add_ticket(wanted, self.request_id());
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).add_ticket(request.clone()).await
            })
            .await?;
        Ok((read(answer.ticket)?, answer.is_new))
    }

    /// Returns a ticket with all that belongs to it, by its id, a unique part of one, or its external reference.
    pub async fn ticket(&self, who: &str) -> Result<Whole, Error> {
        let request = pb::GetTicketRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).get_ticket(request.clone()).await).await?;
        let whole = from_proto::required(answer.whole, "whole")?;
        Ok(from_proto::whole_ticket(whole).map_err(|e| e.within("whole"))?)
    }

    /// Lists tickets, newest first.
    pub async fn tickets(&self, filter: &TicketFilter, page: Page) -> Result<Listed<Ticket>, Error> {
        let request = to_proto::list_tickets(filter, page);
        let answer =
            self.ask(async |channel| Service::new(channel).list_tickets(request.clone()).await).await?;
        Ok(from_proto::listed(answer.tickets, &answer.next_cursor, from_proto::ticket)?)
    }

    /// Changes what a ticket is about; what is not given stays.
    pub async fn change_ticket(
        &self,
        who: &str,
        intent: Option<String>,
        kind: Option<String>,
    ) -> Result<Ticket, Error> {
        let request_id = self.request_id().to_string();
        let request = pb::ChangeTicketRequest { request_id, who: who.to_owned(), intent, r#type: kind };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).change_ticket(request.clone()).await
            })
            .await?;
        Ok(read(answer.ticket)?)
    }

    /// Changes how a ticket stands, and says why.
    pub async fn move_ticket(&self, who: &str, verb: Verb, why: &str) -> Result<Ticket, Error> {
        let request = pb::MoveTicketRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            verb: to_proto::ticket_verb(verb).into(),
            why: why.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).move_ticket(request.clone()).await
            })
            .await?;
        Ok(read(answer.ticket)?)
    }

    /// Changes what a ticket belongs to and depends on: all of it, or nothing.
    pub async fn link_ticket(&self, wanted: LinkTicket) -> Result<Ticket, Error> {
        let request = to_proto::link_ticket(wanted, self.request_id());
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).link_ticket(request.clone()).await
            })
            .await?;
        Ok(read(answer.ticket)?)
    }

    /// Keeps something that came of a ticket.
    pub async fn add_ticket_output(
        &self,
        who: &str,
        name: &str,
        kind: OutputKind,
        value: String,
    ) -> Result<Ticket, Error> {
        let request = pb::AddTicketOutputRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            name: name.to_owned(),
            kind: to_proto::output_kind(kind).into(),
            value,
            session: None,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).add_ticket_output(request.clone()).await
            })
            .await?;
        Ok(read(answer.ticket)?)
    }

    /// Names a point to return to.
    pub async fn make_ticket_checkpoint(&self, wanted: MakeCheckpoint) -> Result<Ticket, Error> {
        let MakeCheckpoint { who, name, session, turn, snapshot } = wanted;
        let request_id = self.request_id().to_string();
        let request = pb::MakeTicketCheckpointRequest { request_id, who, name, session, turn, snapshot };
        let ask = async |channel| Service::new(channel).make_ticket_checkpoint(request.clone()).await;
        Ok(read(self.ask_as(&request.request_id, ask).await?.ticket)?)
    }

    /// Says that a step of the work begins or ends.
    pub async fn mark_ticket_step(
        &self,
        who: &str,
        name: &str,
        mark: StepMark,
        note: &str,
    ) -> Result<Ticket, Error> {
        let request = pb::MarkTicketStepRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            name: name.to_owned(),
            mark: to_proto::step_mark(mark).into(),
            note: note.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).mark_ticket_step(request.clone()).await
            })
            .await?;
        Ok(read(answer.ticket)?)
    }

    /// Writes down what another tracker has: all of it, or nothing. A dry run only says what would come of it.
    pub async fn import_tickets(
        &self,
        campaign: &str,
        work: &[Work],
        dry_run: bool,
    ) -> Result<Vec<Imported>, Error> {
        let request = pb::ImportTicketsRequest {
            request_id: self.request_id().to_string(),
            campaign: campaign.to_owned(),
            tickets: work.iter().map(to_proto::work).collect(),
            dry_run,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).import_tickets(request.clone()).await
            })
            .await?;
        let imported = answer.tickets.into_iter().map(from_proto::imported);
        Ok(imported.collect::<Result<_, InvalidField>>().map_err(|e| e.within("tickets"))?)
    }
}

fn read(ticket: Option<pb::Ticket>) -> Result<Ticket, InvalidField> {
    from_proto::ticket(from_proto::required(ticket, "ticket")?).map_err(|e| e.within("ticket"))
}
