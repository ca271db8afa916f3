//! What is kept with a ticket: what came of it, points to return to, and the steps of the work.

use ostler_domain::{
    Event, Reason, Refusal,
    call::StepMark,
    conversation::TurnRef,
    event::{TicketCheckpointMade, TicketOutputAdded, TicketStep},
    limits::CALL_TEXT_BYTES,
    session::View,
    snapshot::Point,
    text::one_line,
    ticket::{Checkpoint, Output, OutputKind, Ticket, check_name, check_step},
};

use super::invalid;
use crate::{Change, Engine};

/// A point that is to be named.
#[derive(Debug, Clone, Default)]
pub struct NewCheckpoint {
    pub name: String,
    /// Unset, the last session that worked on the ticket.
    pub session: Option<String>,
    /// Unset, the last turn of that session.
    pub turn: Option<u32>,
    pub snapshot: Option<String>,
}

impl Engine {
    /// Keeps something that came of a ticket.
    pub async fn add_ticket_output(
        &self,
        who: &str,
        (name, kind, value): (&str, OutputKind, &str),
        session: Option<&str>,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("add_ticket_output {who} {name} {} {value}", kind.as_str());
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        let output = Output::new(name, kind, value).map_err(invalid)?;
        let ticket = self.ticket(who).await?;
        let session = match session {
            Some(who) => Some(self.session(who).await?.id),
            None => None,
        };
        let added = TicketOutputAdded { id: ticket.id, output, session, by: change.by.clone() };
        let request = change.done(&fingerprint, ticket.id.to_string());
        self.record_nodes(vec![Event::TicketOutputAdded(added)], request).await?;
        Ok(ticket)
    }

    /// Names a point to return to, by a name that no other point of the ticket has.
    pub async fn make_ticket_checkpoint(
        &self,
        who: &str,
        wanted: NewCheckpoint,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("make_ticket_checkpoint {who} {wanted:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        check_name(&wanted.name, "a checkpoint").map_err(invalid)?;
        let whole = self.whole_ticket(who).await?;
        let worked: Vec<String> = match wanted.session {
            Some(session) => vec![session],
            None => whole.iterations.iter().rev().map(|one| one.session.to_string()).collect(),
        };
        let named = wanted.snapshot.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let (view, snapshot) = match (named, worked.first()) {
            (Some(snapshot), _) => {
                let (view, commit) = self.who_has(&whole.ticket, &worked, snapshot).await?;
                (Some(view), Some(commit))
            }
            (None, Some(last)) => (Some(self.session(last).await?), None),
            (None, None) => (None, None),
        };
        let at = match &view {
            None => None,
            Some(view) => {
                let turn = wanted.turn.unwrap_or(view.turns);
                if turn > view.turns {
                    return Err(Refusal::invalid(format!(
                        "session {} has had {} turns, and no turn {turn}",
                        view.id.short(),
                        view.turns
                    )));
                }
                (turn > 0).then_some(TurnRef { session: view.id, turn })
            }
        };
        let snapshot = match (snapshot, at) {
            (None, Some(at)) => self.files_after(at).await?,
            (snapshot, _) => snapshot,
        };
        if at.is_none() && snapshot.is_none() {
            let name = super::named(&whole.ticket);
            return Err(Refusal::invalid(format!("there is nothing yet to return to in ticket {name}"))
                .because("no session of it has had a turn, and no other one was named")
                .hint(format!("ostler ticket start {name}"), "has an agent work on it")
                .hint(
                    format!("ostler ticket checkpoint {name} NAME --session WHO"),
                    "names another's turn",
                ));
        }
        let checkpoint = Checkpoint { name: wanted.name.trim().to_owned(), at, snapshot };
        let _naming = self.shared.naming.lock().await;
        let there = self.whole_ticket(who).await?.checkpoints.into_iter().map(|point| point.what);
        if let Some(there) = there.rev().find(|point| point.name == checkpoint.name) {
            return Err(is_taken(&super::named(&whole.ticket), &there));
        }
        let made = TicketCheckpointMade { id: whole.ticket.id, checkpoint, by: change.by.clone() };
        let request = change.done(&fingerprint, whole.ticket.id.to_string());
        self.record_nodes(vec![Event::TicketCheckpointMade(made)], request).await?;
        Ok(whole.ticket)
    }

    /// The first of these sessions that has a snapshot, and its name as a whole.
    async fn who_has(
        &self,
        ticket: &Ticket,
        sessions: &[String],
        snapshot: &str,
    ) -> Result<(View, String), Refusal> {
        let said = one_line(snapshot, 64);
        let wanted = Point::parse(snapshot)
            .ok_or_else(|| Refusal::invalid(format!("\"{said}\" is no turn and no snapshot")))?;
        let mut refused = None;
        for session in sessions {
            let view = self.session(session).await?;
            match self.commit_at(&view, &wanted).await {
                Ok(commit) => return Ok((view, commit)),
                Err(refusal) => drop(refused.get_or_insert(refusal)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            let name = super::named(ticket);
            let message = format!("no session has worked on ticket {name}, so none has a snapshot {said}");
            Refusal::new(Reason::SnapshotUnknown, message).hint(
                format!("ostler ticket checkpoint {name} NAME --session WHO --snapshot {said}"),
                "names one of another session",
            )
        }))
    }

    /// The files as a turn left them, where a snapshot was taken of them.
    async fn files_after(&self, at: TurnRef) -> Result<Option<String>, Refusal> {
        let tree = self.tree(&at.session.to_string()).await?;
        Ok(Point::Turn(at.turn).of(&tree.snapshots).and_then(|taken| taken.commit.clone()))
    }

    /// The point of this name in the work that a session is part of: the last one of its ticket that has it.
    pub(crate) async fn checkpoint_of(&self, view: &View, name: &str) -> Result<Option<Checkpoint>, Refusal> {
        let Some(ticket) = view.ticket_id else { return Ok(None) };
        let whole = self.shared.store.whole_ticket(ticket).await?;
        let points = whole.map(|whole| whole.checkpoints).unwrap_or_default();
        Ok(points.into_iter().rev().map(|point| point.what).find(|point| point.name == name.trim()))
    }

    /// Says that a step begins or ends. What sessions say of theirs is kept apart.
    pub async fn mark_ticket_step(
        &self,
        who: &str,
        name: &str,
        mark: StepMark,
        note: &str,
        change: Change,
    ) -> Result<Ticket, Refusal> {
        let fingerprint = format!("mark_ticket_step {who} {name} {mark:?} {note}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.ticket(&done).await;
        }
        check_name(name, "a step").map_err(invalid)?;
        if note.len() > CALL_TEXT_BYTES {
            return Err(Refusal::invalid(format!("a note has at most {CALL_TEXT_BYTES} bytes")));
        }
        let name = name.trim();
        let _naming = self.shared.naming.lock().await;
        let whole = self.whole_ticket(who).await?;
        let mut own = whole.steps.iter().rev().filter(|step| step.session.is_none());
        check_step(mark, own.find(|step| step.name == name)).map_err(invalid)?;
        let step = TicketStep {
            id: whole.ticket.id,
            name: name.to_owned(),
            mark,
            note: note.trim().to_owned(),
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, whole.ticket.id.to_string());
        self.record_nodes(vec![Event::TicketStep(step)], request).await?;
        Ok(whole.ticket)
    }
}

/// A point whose name is given to another one could not be returned to any more.
fn is_taken(ticket: &str, there: &Checkpoint) -> Refusal {
    let name = one_line(&there.name, 64);
    let turn = there.at.map(|at| format!("turn {} of session {}", at.turn, at.session.short()));
    let files =
        there.snapshot.as_deref().map(|commit| format!("the files of snapshot {}", one_line(commit, 12)));
    let what = [turn, files].into_iter().flatten().collect::<Vec<_>>().join(", ");
    Refusal::new(Reason::NameTaken, format!("ticket {ticket} has a checkpoint \"{name}\" already"))
        .because(format!("it is {what}"))
        .hint(format!("ostler ticket show {ticket}"), "lists them; give this one another name")
}
