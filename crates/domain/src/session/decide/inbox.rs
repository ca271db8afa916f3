//! Messages: taking them in, telling them in their order, and what people do to those that wait.

use std::time::Duration;

use super::{Draft, report, request};
use crate::{
    Message, MessageId, Mode, Reason, Refusal,
    conversation::QueueDrop,
    event::{
        By, Event, MessageAccepted, MessageCancelled, MessageDropped, MessageEdited, MessageMoved,
        MessageSent, MovedTo,
    },
    limits::{INBOX_MESSAGES, MESSAGE_BYTES},
    message::{Queue, Said, collected},
    session::{AgentRequest, Effect, Phase, StopRule},
    time::Deadline,
};

impl Draft<'_> {
    /// Says the next waiting message, if the agent may be told one now.
    pub(super) fn deliver(&mut self) {
        let now = &self.context.now;
        if self.state.deliverable(now).is_some() {
            let gathered: Vec<Message> = self.state.gathered().into_iter().cloned().collect();
            if let Some((first, others)) = gathered.split_first() {
                let text = match others {
                    [] => first.text.clone(),
                    _ => collected(gathered.iter().map(|message| message.text.as_str())),
                };
                let said = self.with_dropped(Message { text, ..first.clone() });
                let said = self.seeded(said);
                self.record(Event::MessageSent(MessageSent { id: first.id, with: None }));
                for other in others {
                    self.record(Event::MessageSent(MessageSent { id: other.id, with: Some(first.id) }));
                }
                self.effect(Effect::Tell(AgentRequest::Prompt(said)));
            }
        }
        while let Some(message) = self.state.steerable(now).cloned() {
            let said = self.with_dropped(message);
            self.record(Event::MessageSent(MessageSent { id: said.id, with: None }));
            self.effect(Effect::Tell(AgentRequest::Steer(said)));
        }
    }

    /// What was dropped is told before what was not.
    fn with_dropped(&self, message: Message) -> Message {
        match &self.state.dropped {
            dropped if dropped.is_empty() => message,
            dropped => Message { text: format!("{}\n\n{}", dropped.words(), message.text), ..message },
        }
    }

    fn waits(&self, id: MessageId) -> bool {
        self.state.inbox().any(|message| message.id == id)
    }

    /// Refuses what comes too late for a message.
    fn check_waits(&self, id: MessageId) -> Result<(), Refusal> {
        if self.waits(id) && !self.state.is_ended() {
            return Ok(());
        }
        let is_known = self.state.messages.iter().any(|waiting| waiting.message.id == id);
        let why = match is_known && !self.state.is_ended() {
            true => "it is on its way to the agent already",
            false => "it no longer waits for this session",
        };
        Err(too_late(id, why))
    }
}

/// Why nothing can be done about a message any more.
pub(super) fn too_late(id: MessageId, why: &str) -> Refusal {
    let short = id.short();
    Refusal::new(Reason::WrongState, format!("message {short} cannot be changed any more"))
        .because(why)
        .hint(format!("ostler message show {short}"), "what became of it")
}

pub(super) fn prompt(
    draft: &mut Draft<'_>,
    said: Said,
    queue: Queue,
    dropped: Option<String>,
    by: By,
) -> Result<(), Refusal> {
    let short = draft.state.created().id.short();
    match draft.state.phase() {
        Phase::Created | Phase::Starting | Phase::Live => {}
        Phase::Stopping | Phase::Ended => {
            let word = if draft.state.is_ended() { "has ended" } else { "is stopping" };
            return Err(Refusal::new(Reason::WrongState, format!("session {short} {word}"))
                .hint(format!("ostler restart {short}"), "starts a new session that goes on with it"));
        }
    }
    check_size(&said.message.text)?;
    if draft.state.messages.len() >= INBOX_MESSAGES {
        return Err(Refusal::new(
            Reason::InboxFull,
            format!("{INBOX_MESSAGES} messages already wait for session {short}"),
        )
        .hint(format!("ostler interrupt {short}"), "ends the turn, so that the next one is delivered"));
    }
    let (id, mode) = (said.message.id, said.message.mode);
    let conversation = draft.state.created().conversation;
    let held_back = queue.debounce_ms > 0 && mode != Mode::Interrupt && dropped.is_none();
    let quiet = Duration::from_millis(queue.debounce_ms);
    let quiet_until = match held_back {
        true => Some(Deadline::after(&draft.context.now, quiet)),
        // What is kept from the agent changes nothing for the others.
        false => draft.state.quiet_until.clone().filter(|_| dropped.is_some()),
    };
    let accepted = MessageAccepted::said(said, conversation, by.clone());
    draft.record(Event::MessageAccepted(MessageAccepted { quiet_until, ..accepted }));
    if let Some(why) = dropped {
        let drop = MessageDropped { id, why, made_room_for: None, is_summarised: false };
        draft.record(Event::MessageDropped(drop));
        return Ok(());
    }
    draft.deliver();
    make_room(draft, id, queue);
    if draft.waits(id) && mode == Mode::Interrupt {
        interrupt_for_who_waits(draft, by);
    }
    Ok(())
}

/// Drops what is more than may wait.
fn make_room(draft: &mut Draft<'_>, newest: MessageId, queue: Queue) {
    let Some(cap) = queue.cap else { return };
    // One that was dropped is not dropped again, should others wait from before there was a limit.
    while draft.waits(newest) && draft.state.inbox().count() > cap as usize {
        let why =
            format!("more than {cap} messages waited (queue_cap={cap}, queue_drop={})", queue.drop.as_str());
        let drop = match queue.drop {
            QueueDrop::New => MessageDropped { id: newest, why, made_room_for: None, is_summarised: false },
            QueueDrop::Old | QueueDrop::Summarize => {
                let is_summarised = queue.drop == QueueDrop::Summarize;
                let id = longest_waiting(draft, newest);
                MessageDropped { id, why, made_room_for: Some(newest), is_summarised }
            }
        };
        draft.record(Event::MessageDropped(drop));
    }
}

/// The one of the others that was said first, wherever it was moved since: ids are made when a message is accepted. What
/// cannot wait is the last to give way.
fn longest_waiting(draft: &Draft<'_>, newest: MessageId) -> MessageId {
    let others = draft.state.inbox().filter(|message| message.id != newest);
    let first = others.min_by_key(|message| (message.mode == Mode::Interrupt, message.id));
    first.map_or(newest, |message| message.id)
}

/// Ends the open turn where something waits that cannot.
pub(super) fn interrupt_for_who_waits(draft: &mut Draft<'_>, by: By) {
    let waits = draft.state.inbox().any(|message| message.mode == Mode::Interrupt);
    if waits && draft.state.turn().is_some() {
        // Only an ended session refuses this.
        let _ = request::interrupt(draft, by);
    }
}

pub(super) fn cancel(draft: &mut Draft<'_>, id: MessageId, by: By) -> Result<(), Refusal> {
    draft.check_waits(id)?;
    let why = format!("taken back by {}", by.0);
    draft.record(Event::MessageCancelled(MessageCancelled { id, why, by }));
    after_taking_away(draft);
    Ok(())
}

pub(super) fn cancel_all(draft: &mut Draft<'_>, by: By) {
    if draft.state.is_ended() {
        return;
    }
    let waiting: Vec<MessageId> = draft.state.inbox().map(|message| message.id).collect();
    for id in waiting {
        let why = format!("taken back by {}, with all that waited", by.0);
        draft.record(Event::MessageCancelled(MessageCancelled { id, why, by: by.clone() }));
    }
    after_taking_away(draft);
}

/// What waited behind it may be told now, and a session that only waited for it is done.
fn after_taking_away(draft: &mut Draft<'_>) {
    draft.deliver();
    if draft.state.phase() == Phase::Live {
        report::end_with_turn(draft);
    }
}

/// A conversation that is closed tells nobody what it had not told.
pub(super) fn cancel_with_conversation(draft: &mut Draft<'_>) {
    let Some(stop) = draft.state.stop().filter(|stop| stop.rule == StopRule::Reset).cloned() else { return };
    let untold: Vec<MessageId> = draft.state.undelivered().map(|message| message.id).collect();
    for id in untold {
        let why = "its conversation was closed before it was delivered".to_owned();
        draft.record(Event::MessageCancelled(MessageCancelled { id, why, by: stop.by.clone() }));
    }
}

pub(super) fn edit(draft: &mut Draft<'_>, id: MessageId, text: String, by: By) -> Result<(), Refusal> {
    draft.check_waits(id)?;
    check_size(&text)?;
    if text.trim().is_empty() {
        return Err(Refusal::invalid("the message is empty")
            .hint(format!("ostler message rm {}", id.short()), "takes it back"));
    }
    let is_news = draft.state.inbox().any(|message| message.id == id && message.text != text);
    if is_news {
        draft.record(Event::MessageEdited(MessageEdited { id, text, by }));
    }
    Ok(())
}

pub(super) fn reorder(
    draft: &mut Draft<'_>,
    id: MessageId,
    before: Option<MessageId>,
    by: By,
) -> Result<(), Refusal> {
    draft.check_waits(id)?;
    let first = draft.state.inbox().map(|message| message.id).next();
    let before = match before {
        Some(before) => {
            draft.check_waits(before)?;
            Some(before)
        }
        None => first,
    };
    let ids: Vec<MessageId> = draft.state.inbox().map(|message| message.id).collect();
    let stands_there = ids.windows(2).any(|pair| pair[0] == id && Some(pair[1]) == before);
    match before {
        Some(message) if message != id && !stands_there => {
            draft.record(Event::MessageMoved(MessageMoved { id, to: MovedTo::Before { message }, by }));
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn move_away(draft: &mut Draft<'_>, id: MessageId, to: MovedTo, by: By) -> Result<(), Refusal> {
    draft.check_waits(id)?;
    draft.record(Event::MessageMoved(MessageMoved { id, to, by }));
    after_taking_away(draft);
    Ok(())
}

fn check_size(text: &str) -> Result<(), Refusal> {
    if text.len() > MESSAGE_BYTES {
        return Err(Refusal::new(Reason::TooLarge, format!("a message has at most {MESSAGE_BYTES} bytes"))
            .because(format!("this one has {}", text.len())));
    }
    Ok(())
}
