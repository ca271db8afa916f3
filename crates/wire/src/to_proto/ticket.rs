//! Tickets.

use ostler_domain::{
    RequestId,
    query::{Page, TicketFilter},
    ticket::{Blocker, Checkpoint, Dated, Imported, Iteration, Output, Step, Ticket, Whole, Work},
};

use super::{cursor, time, usage};
use crate::{
    enums::to,
    pb,
    request::{AddTicket, LinkTicket},
};

pub fn ticket(ticket: &Ticket) -> pb::Ticket {
    pb::Ticket {
        id: ticket.id.to_string(),
        campaign_id: ticket.campaign.to_string(),
        intent: ticket.about.intent.clone(),
        r#type: ticket.about.kind.clone(),
        status: to::ticket_status(ticket.status).into(),
        external_ref: ticket.links.external.as_ref().map(ToString::to_string),
        conversation_id: ticket.links.conversation.map(|id| id.to_string()),
        depends_on: ticket.links.depends_on.iter().map(ToString::to_string).collect(),
        added_time: Some(time(ticket.added)),
        added_by: ticket.by.0.clone(),
        moved_time: Some(time(ticket.moved)),
        why: ticket.why.clone(),
    }
}

pub fn whole_ticket(whole: &Whole) -> pb::WholeTicket {
    pb::WholeTicket {
        ticket: Some(ticket(&whole.ticket)),
        dependencies: whole.depends_on.iter().map(dependency).collect(),
        outputs: whole.outputs.iter().map(output).collect(),
        checkpoints: whole.checkpoints.iter().map(checkpoint).collect(),
        steps: whole.steps.iter().map(step).collect(),
        iterations: whole.iterations.iter().map(iteration).collect(),
    }
}

fn dependency(blocker: &Blocker) -> pb::TicketDependency {
    pb::TicketDependency {
        id: blocker.id.to_string(),
        status: to::ticket_status(blocker.status).into(),
        external_ref: blocker.external.as_ref().map(ToString::to_string),
        title: blocker.title.clone(),
    }
}

fn output(output: &Dated<Output>) -> pb::TicketOutput {
    pb::TicketOutput {
        name: output.what.name.clone(),
        kind: to::output_kind(output.what.kind).into(),
        value: output.what.value.clone(),
        time: Some(time(output.time)),
        by: output.by.0.clone(),
        session_id: output.session.map(|id| id.to_string()),
    }
}

fn checkpoint(checkpoint: &Dated<Checkpoint>) -> pb::TicketCheckpoint {
    pb::TicketCheckpoint {
        name: checkpoint.what.name.clone(),
        at: checkpoint.what.at.map(|at| pb::TurnRef { session_id: at.session.to_string(), turn: at.turn }),
        snapshot: checkpoint.what.snapshot.clone(),
        time: Some(time(checkpoint.time)),
        by: checkpoint.by.0.clone(),
    }
}

fn step(step: &Step) -> pb::TicketStepRun {
    pb::TicketStepRun {
        name: step.name.clone(),
        session_id: step.session.map(|id| id.to_string()),
        started_time: step.started.map(time),
        ended_time: step.ended.map(time),
        success: step.success,
        note: step.note.clone(),
    }
}

fn iteration(iteration: &Iteration) -> pb::TicketIteration {
    pb::TicketIteration {
        session_id: iteration.session.to_string(),
        name: iteration.name.clone(),
        provider: iteration.provider.clone(),
        started_time: Some(time(iteration.started)),
        ended_time: iteration.ended.map(time),
        result: iteration.result.map(|outcome| to::outcome(outcome).into()),
        usage: Some(usage(iteration.usage)),
        micro_usd: iteration.cost.map(|cost| cost.0),
        calls: iteration.calls,
    }
}

pub fn work(work: &Work) -> pb::TicketImport {
    pb::TicketImport {
        external_ref: work.external.to_string(),
        intent: work.about.intent.clone(),
        r#type: work.about.kind.clone(),
        status: to::ticket_status(work.status).into(),
        depends_on: work.depends_on.iter().map(ToString::to_string).collect(),
    }
}

pub fn imported(imported: &Imported) -> pb::TicketImported {
    pb::TicketImported {
        external_ref: imported.external.to_string(),
        id: imported.id.map(|id| id.to_string()),
        change: to::import_change(imported.change).into(),
    }
}

pub fn add_ticket(wanted: AddTicket, request_id: RequestId) -> pb::AddTicketRequest {
    pb::AddTicketRequest {
        request_id: request_id.to_string(),
        campaign: wanted.campaign,
        intent: wanted.intent,
        r#type: wanted.kind,
        external_ref: wanted.external,
        conversation: wanted.conversation,
        depends_on: wanted.depends_on,
        queued: wanted.queued,
    }
}

pub fn link_ticket(wanted: LinkTicket, request_id: RequestId) -> pb::LinkTicketRequest {
    pb::LinkTicketRequest {
        request_id: request_id.to_string(),
        who: wanted.who,
        external_ref: wanted.external,
        conversation: wanted.conversation,
        depends_on: wanted.depends_on,
        no_depends_on: wanted.no_depends_on,
    }
}

pub fn list_tickets(filter: &TicketFilter, page: Page) -> pb::ListTicketsRequest {
    pb::ListTicketsRequest {
        campaign: filter.campaign.map(|id| id.to_string()),
        statuses: filter.statuses.iter().map(|status| to::ticket_status(*status).into()).collect(),
        r#type: filter.kind.clone(),
        agent: filter.agent.clone(),
        external_ref: filter.external.clone(),
        conversation: filter.conversation.map(|id| id.to_string()),
        archived_too: filter.archived_too,
        limit: page.limit,
        cursor: cursor(page.cursor),
        since: filter.since.map(time),
        until: filter.until.map(time),
    }
}
