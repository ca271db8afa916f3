//! TicketService.

use ostler_domain::{query::TicketFilter, ticket::Ticket};
use ostler_engine::{LinkChange, NewCheckpoint, NewTicket};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, ticket_service_server::TicketService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, invalid, refused};
use crate::Served;

#[async_trait]
impl TicketService for Served {
    async fn add_ticket(
        &self,
        request: Request<pb::AddTicketRequest>,
    ) -> Result<Response<pb::AddTicketResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let asked = request.into_inner();
        let wanted = NewTicket {
            campaign: asked.campaign,
            intent: asked.intent,
            kind: asked.r#type,
            external: external(asked.external_ref)?,
            conversation: asked.conversation,
            depends_on: asked.depends_on,
            queued: asked.queued,
        };
        let (ticket, is_new) = self.engine.add_ticket(wanted, change).await.map_err(refused)?;
        Ok(Response::new(pb::AddTicketResponse { ticket: shown(&ticket), is_new }))
    }

    async fn get_ticket(
        &self,
        request: Request<pb::GetTicketRequest>,
    ) -> Result<Response<pb::GetTicketResponse>, Status> {
        let whole = self.engine.whole_ticket(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(pb::GetTicketResponse { whole: Some(to_proto::whole_ticket(&whole)) }))
    }

    async fn list_tickets(
        &self,
        request: Request<pb::ListTicketsRequest>,
    ) -> Result<Response<pb::ListTicketsResponse>, Status> {
        let asked = request.into_inner();
        let page = from_proto::page(asked.limit, &asked.cursor).map_err(invalid)?;
        let filter = self.ticket_filter(asked).await?;
        let listed = self.engine.tickets(&filter, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListTicketsResponse {
            tickets: listed.rows.iter().map(to_proto::ticket).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn change_ticket(
        &self,
        request: Request<pb::ChangeTicketRequest>,
    ) -> Result<Response<pb::ChangeTicketResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::ChangeTicketRequest { who, intent, r#type, .. } = request.into_inner();
        let changed = self.engine.change_ticket(&who, intent.as_deref(), r#type.as_deref(), change).await;
        Ok(Response::new(pb::ChangeTicketResponse { ticket: shown(&changed.map_err(refused)?) }))
    }

    async fn move_ticket(
        &self,
        request: Request<pb::MoveTicketRequest>,
    ) -> Result<Response<pb::MoveTicketResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::MoveTicketRequest { who, verb, why, .. } = request.into_inner();
        let verb = from_proto::ticket_verb(verb, "verb").map_err(invalid)?;
        let moved = self.engine.move_ticket(&who, verb, &why, change).await.map_err(refused)?;
        Ok(Response::new(pb::MoveTicketResponse { ticket: shown(&moved) }))
    }

    async fn link_ticket(
        &self,
        request: Request<pb::LinkTicketRequest>,
    ) -> Result<Response<pb::LinkTicketResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let asked = request.into_inner();
        let nothing_if_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        let wanted = LinkChange {
            external: match asked.external_ref {
                Some(text) => Some(external(nothing_if_empty(text))?),
                None => None,
            },
            conversation: asked.conversation.map(nothing_if_empty),
            depends_on: asked.depends_on,
            no_depends_on: asked.no_depends_on,
        };
        let linked = self.engine.link_ticket(&asked.who, wanted, change).await.map_err(refused)?;
        Ok(Response::new(pb::LinkTicketResponse { ticket: shown(&linked) }))
    }

    async fn add_ticket_output(
        &self,
        request: Request<pb::AddTicketOutputRequest>,
    ) -> Result<Response<pb::AddTicketOutputResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::AddTicketOutputRequest { who, name, kind, value, session, .. } = request.into_inner();
        let kind = match kind {
            0 => ostler_domain::ticket::OutputKind::default(),
            kind => from_proto::output_kind(kind, "kind").map_err(invalid)?,
        };
        let output = (name.as_str(), kind, value.as_str());
        let ticket = self.engine.add_ticket_output(&who, output, session.as_deref(), change).await;
        Ok(Response::new(pb::AddTicketOutputResponse { ticket: shown(&ticket.map_err(refused)?) }))
    }

    async fn make_ticket_checkpoint(
        &self,
        request: Request<pb::MakeTicketCheckpointRequest>,
    ) -> Result<Response<pb::MakeTicketCheckpointResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::MakeTicketCheckpointRequest { who, name, session, turn, snapshot, .. } = request.into_inner();
        let wanted = NewCheckpoint { name, session, turn, snapshot };
        let ticket = self.engine.make_ticket_checkpoint(&who, wanted, change).await.map_err(refused)?;
        Ok(Response::new(pb::MakeTicketCheckpointResponse { ticket: shown(&ticket) }))
    }

    async fn mark_ticket_step(
        &self,
        request: Request<pb::MarkTicketStepRequest>,
    ) -> Result<Response<pb::MarkTicketStepResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::MarkTicketStepRequest { who, name, mark, note, .. } = request.into_inner();
        let mark = from_proto::step_mark(mark, "mark").map_err(invalid)?;
        let ticket = self.engine.mark_ticket_step(&who, &name, mark, &note, change).await.map_err(refused)?;
        Ok(Response::new(pb::MarkTicketStepResponse { ticket: shown(&ticket) }))
    }

    async fn import_tickets(
        &self,
        request: Request<pb::ImportTicketsRequest>,
    ) -> Result<Response<pb::ImportTicketsResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::ImportTicketsRequest { campaign, tickets, dry_run, .. } = request.into_inner();
        let work = tickets.into_iter().map(from_proto::work).collect::<Result<Vec<_>, InvalidField>>();
        let work = work.map_err(|error| invalid(error.within("tickets")))?;
        let imported =
            self.engine.import_tickets(&campaign, &work, dry_run, change).await.map_err(refused)?;
        Ok(Response::new(pb::ImportTicketsResponse {
            tickets: imported.iter().map(to_proto::imported).collect(),
        }))
    }
}

impl Served {
    /// Puts ids in the place of words.
    async fn ticket_filter(&self, mut asked: pb::ListTicketsRequest) -> Result<TicketFilter, Status> {
        if let Some(campaign) = &mut asked.campaign {
            *campaign = self.engine.campaign(campaign).await.map_err(refused)?.id.to_string();
        }
        if let Some(conversation) = &mut asked.conversation {
            *conversation = self.engine.conversation(conversation).await.map_err(refused)?.id.to_string();
        }
        from_proto::ticket_filter(asked).map_err(invalid)
    }
}

fn external(text: Option<String>) -> Result<Option<ostler_domain::ticket::ExternalRef>, Status> {
    text.map(|text| from_proto::id(&text, "external_ref")).transpose().map_err(invalid)
}

fn shown(ticket: &Ticket) -> Option<pb::Ticket> {
    Some(to_proto::ticket(ticket))
}
