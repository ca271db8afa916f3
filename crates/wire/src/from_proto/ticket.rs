//! Tickets.

use ostler_domain::{
    conversation::TurnRef,
    event::By,
    price::Dollars,
    query::TicketFilter,
    ticket::{
        About, Blocker, Checkpoint, Dated, Imported, Iteration, Links, Output, Step, Ticket, Whole, Work,
    },
};

use super::{Result, id, optional_id, optional_time, required, required_time, usage};
use crate::{InvalidField, enums::from, pb};

pub fn ticket(ticket: pb::Ticket) -> Result<Ticket> {
    Ok(Ticket {
        id: id(&ticket.id, "id")?,
        campaign: id(&ticket.campaign_id, "campaign_id")?,
        about: About { intent: ticket.intent, kind: ticket.r#type },
        links: Links {
            external: optional_id(ticket.external_ref, "external_ref")?,
            conversation: optional_id(ticket.conversation_id, "conversation_id")?,
            depends_on: ids(&ticket.depends_on)?,
        },
        status: from::ticket_status(ticket.status, "status")?,
        added: required_time(ticket.added_time, "added_time")?,
        by: By(ticket.added_by),
        moved: required_time(ticket.moved_time, "moved_time")?,
        why: ticket.why,
    })
}

fn ids<T: std::str::FromStr<Err: std::fmt::Display>>(texts: &[String]) -> Result<Vec<T>> {
    texts.iter().map(|text| id(text, "depends_on")).collect()
}

pub fn whole_ticket(whole: pb::WholeTicket) -> Result<Whole> {
    fn all<P, T>(rows: Vec<P>, read: impl Fn(P) -> Result<T>, field: &'static str) -> Result<Vec<T>> {
        rows.into_iter().map(read).collect::<Result<_>>().map_err(|e: InvalidField| e.within(field))
    }
    Ok(Whole {
        ticket: ticket(required(whole.ticket, "ticket")?).map_err(|e| e.within("ticket"))?,
        depends_on: all(whole.dependencies, dependency, "dependencies")?,
        outputs: all(whole.outputs, output, "outputs")?,
        checkpoints: all(whole.checkpoints, checkpoint, "checkpoints")?,
        steps: all(whole.steps, step, "steps")?,
        iterations: all(whole.iterations, iteration, "iterations")?,
    })
}

fn dependency(dependency: pb::TicketDependency) -> Result<Blocker> {
    Ok(Blocker {
        id: id(&dependency.id, "id")?,
        status: from::ticket_status(dependency.status, "status")?,
        external: optional_id(dependency.external_ref, "external_ref")?,
        title: dependency.title,
    })
}

fn output(output: pb::TicketOutput) -> Result<Dated<Output>> {
    Ok(Dated {
        what: Output {
            name: output.name,
            kind: from::output_kind(output.kind, "kind")?,
            value: output.value,
        },
        time: required_time(output.time, "time")?,
        by: By(output.by),
        session: optional_id(output.session_id, "session_id")?,
    })
}

fn checkpoint(checkpoint: pb::TicketCheckpoint) -> Result<Dated<Checkpoint>> {
    let at = match checkpoint.at {
        Some(at) => Some(TurnRef { session: id(&at.session_id, "at.session_id")?, turn: at.turn }),
        None => None,
    };
    Ok(Dated {
        what: Checkpoint { name: checkpoint.name, at, snapshot: checkpoint.snapshot },
        time: required_time(checkpoint.time, "time")?,
        by: By(checkpoint.by),
        session: at.map(|at| at.session),
    })
}

fn step(step: pb::TicketStepRun) -> Result<Step> {
    Ok(Step {
        name: step.name,
        session: optional_id(step.session_id, "session_id")?,
        started: optional_time(step.started_time, "started_time")?,
        ended: optional_time(step.ended_time, "ended_time")?,
        success: step.success,
        note: step.note,
    })
}

fn iteration(iteration: pb::TicketIteration) -> Result<Iteration> {
    Ok(Iteration {
        session: id(&iteration.session_id, "session_id")?,
        name: iteration.name,
        provider: iteration.provider,
        started: required_time(iteration.started_time, "started_time")?,
        ended: optional_time(iteration.ended_time, "ended_time")?,
        result: iteration.result.map(|outcome| from::outcome(outcome, "result")).transpose()?,
        usage: iteration.usage.map(usage).unwrap_or_default(),
        cost: iteration.micro_usd.map(Dollars),
        calls: iteration.calls,
    })
}

/// The filter of a list whose words a daemon has replaced by ids.
pub fn ticket_filter(asked: pb::ListTicketsRequest) -> Result<TicketFilter> {
    Ok(TicketFilter {
        campaign: optional_id(asked.campaign, "campaign")?,
        statuses: asked
            .statuses
            .into_iter()
            .map(|status| from::ticket_status(status, "statuses"))
            .collect::<Result<_>>()?,
        kind: asked.r#type,
        agent: asked.agent,
        external: asked.external_ref,
        conversation: optional_id(asked.conversation, "conversation")?,
        archived_too: asked.archived_too,
        since: optional_time(asked.since, "since")?,
        until: optional_time(asked.until, "until")?,
    })
}

pub fn work(work: pb::TicketImport) -> Result<Work> {
    let kind = Some(work.r#type.as_str()).filter(|kind| !kind.is_empty());
    Ok(Work {
        external: id(&work.external_ref, "external_ref")?,
        about: About::new(&work.intent, kind).map_err(|fault| InvalidField::new("intent", fault))?,
        status: from::ticket_status(work.status, "status")?,
        depends_on: ids(&work.depends_on)?,
    })
}

pub fn imported(imported: pb::TicketImported) -> Result<Imported> {
    Ok(Imported {
        external: id(&imported.external_ref, "external_ref")?,
        id: optional_id(imported.id, "id")?,
        change: from::import_change(imported.change, "change")?,
    })
}
