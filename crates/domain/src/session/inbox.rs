//! What was said to a session and is on its way to the agent: in which order, and when the next is told.

use super::{Phase, State, Waiting, open::Place};
use crate::{
    Message, MessageId, Mode, Now,
    event::{Event, MessageAccepted, MessageSent, MovedTo},
    limits::MESSAGE_BYTES,
    message::Summary,
    time::Deadline,
};

impl State {
    /// Messages that never reached the agent: the next session of the conversation takes them.
    pub fn undelivered(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|waiting| waiting.place <= Place::Outbox).map(|waiting| &waiting.message)
    }

    /// What was dropped and no agent was told of: the next session of the conversation tells it.
    pub fn untold(&self) -> Summary {
        let mut untold = Summary::default();
        let unheard = self.messages.iter().filter(|waiting| waiting.place <= Place::Outbox);
        unheard.for_each(|waiting| untold.join(waiting.tells.clone()));
        untold.join(self.dropped.clone());
        untold
    }

    /// What no agent was told yet, in the order in which it will be as things stand: what is on its way, what is said into the
    /// turn that is open, the rest.
    pub fn in_order(&self) -> Vec<MessageId> {
        let mut waiting: Vec<&Waiting> =
            self.messages.iter().filter(|waiting| waiting.place <= Place::Outbox).collect();
        waiting.sort_by_key(|waiting| match (waiting.place, waiting.message.mode) {
            (Place::Outbox, _) => 0,
            (_, Mode::Steer) if self.turn.is_some() => 1,
            _ => 2,
        });
        waiting.into_iter().map(|waiting| waiting.message.id).collect()
    }

    /// What waits and may still be taken back, in the order in which it is told.
    pub fn inbox(&self) -> impl Iterator<Item = &Message> {
        self.in_inbox().map(|waiting| &waiting.message)
    }

    /// All that have not had their last receipt.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(|waiting| &waiting.message)
    }

    fn in_inbox(&self) -> impl Iterator<Item = &Waiting> {
        self.messages.iter().filter(|waiting| waiting.place == Place::Inbox)
    }

    /// A message and all that are said in its prompt.
    pub(super) fn said_with(&self, id: MessageId) -> Vec<MessageId> {
        let others = self.messages.iter().filter(|waiting| waiting.with == Some(id));
        std::iter::once(id).chain(others.map(|waiting| waiting.message.id)).collect()
    }

    /// When what waits is told, if nothing more comes and nothing else holds it back.
    pub fn quiet_until(&self) -> Option<&Deadline> {
        let until = self.quiet_until.as_ref()?;
        let steers = |waiting: &Waiting| waiting.message.mode == Mode::Steer;
        let waits = (self.is_at_rest() && self.in_inbox().next().is_some())
            || (self.is_steerable() && self.in_inbox().any(steers));
        waits.then_some(until)
    }

    fn is_quiet(&self, now: &Now) -> bool {
        self.quiet_until.as_ref().is_none_or(|until| until.has_passed(now))
    }

    fn may_be_told(&self) -> bool {
        let is_held = self.is_frozen() || self.holds.of_budget().is_some() || self.holds.disk.is_some();
        self.phase == Phase::Live && !is_held && !self.ends_of_budget
    }

    /// Live, at rest, and nothing holds it.
    fn is_at_rest(&self) -> bool {
        let is_on_its_way = |waiting: &Waiting| waiting.place > Place::Inbox;
        // What waits is told to whoever gets the work.
        let is_handed_on = self.handoff.is_some();
        self.may_be_told() && !is_handed_on && self.turn.is_none() && !self.messages.iter().any(is_on_its_way)
    }

    fn is_steerable(&self) -> bool {
        self.may_be_told() && self.turn.is_some() && self.approvals.is_empty()
    }

    /// The message to say into the turn that is open.
    pub(super) fn steerable(&self, now: &Now) -> Option<&Message> {
        let steers = |waiting: &&Waiting| waiting.message.mode == Mode::Steer;
        let is_open = self.is_steerable() && self.is_quiet(now);
        is_open.then(|| self.in_inbox().find(steers))?.map(|waiting| &waiting.message)
    }

    /// The message to say next, if the agent may be told one now.
    pub(super) fn deliverable(&self, now: &Now) -> Option<&Message> {
        let first = self.is_at_rest().then(|| self.in_inbox().next())??;
        let cannot_wait = first.message.mode == Mode::Interrupt;
        (cannot_wait || self.is_quiet(now)).then_some(&first.message)
    }

    /// The messages that are said in one prompt with the first of the inbox, itself included: as many as one prompt has
    /// room for.
    pub(super) fn gathered(&self) -> Vec<&Message> {
        let mut bytes = 0;
        let mut has_room = |message: &Message| {
            bytes += message.text.len();
            bytes <= MESSAGE_BYTES
        };
        let collects = |message: &Message| message.mode == Mode::Collect;
        match self.inbox().next() {
            Some(first) if collects(first) => {
                self.inbox().take_while(|message| collects(message) && has_room(message)).collect()
            }
            first => first.into_iter().collect(),
        }
    }

    pub(super) fn apply_to_inbox(&mut self, event: &Event) {
        match event {
            Event::MessageAccepted(accepted) => self.accept(accepted),
            Event::MessageSent(sent) => self.send(sent),
            Event::MessageDelivered(mark) => self.place(mark.id, Place::Delivered),
            Event::MessageSeen(mark) => self.place(mark.id, Place::Seen),
            Event::MessageAnswered(mark) => self.forget(mark.id),
            Event::MessageUnknown(unknown) => self.forget(unknown.id),
            Event::MessageReturned(returned) => self.take_back(returned.id),
            Event::MessageCancelled(cancelled) => self.forget(cancelled.id),
            Event::MessageDropped(dropped) => {
                let text = self.waiting_mut(dropped.id).map(|waiting| waiting.message.text.clone());
                if let Some(text) = text.filter(|_| dropped.is_summarised) {
                    self.dropped.add(&text);
                }
                self.forget(dropped.id);
            }
            Event::MessageEdited(edited) => {
                if let Some(waiting) = self.waiting_mut(edited.id) {
                    waiting.message.text.clone_from(&edited.text);
                }
            }
            Event::MessageMoved(moved) => match moved.to {
                MovedTo::Before { message } => self.reorder(moved.id, message),
                MovedTo::Conversation { .. } => self.forget(moved.id),
            },
            _ => {}
        }
    }

    fn accept(&mut self, accepted: &MessageAccepted) {
        self.quiet_until.clone_from(&accepted.quiet_until);
        self.dropped.join(accepted.untold.clone());
        let message = accepted.message.clone();
        // What cannot wait comes before all that can.
        let can_wait = |other: &Waiting| other.place == Place::Inbox && other.message.mode != Mode::Interrupt;
        let before = match message.mode {
            Mode::Interrupt => self.messages.iter().position(can_wait),
            Mode::Followup | Mode::Steer | Mode::Collect => None,
        };
        let at = before.unwrap_or(self.messages.len());
        let waiting = Waiting { message, place: Place::Inbox, with: None, tells: Summary::default() };
        self.messages.insert(at, waiting);
    }

    fn send(&mut self, sent: &MessageSent) {
        let tells = if sent.with.is_none() { std::mem::take(&mut self.dropped) } else { Summary::default() };
        if let Some(waiting) = self.waiting_mut(sent.id) {
            waiting.place = Place::Outbox;
            waiting.with = sent.with;
            waiting.tells = tells;
        }
    }

    fn reorder(&mut self, id: MessageId, before: MessageId) {
        let place_of =
            |messages: &[Waiting], id| messages.iter().position(|waiting| waiting.message.id == id);
        if id == before || place_of(&self.messages, before).is_none() {
            return;
        }
        if let Some(from) = place_of(&self.messages, id) {
            let moved = self.messages.remove(from);
            let to = place_of(&self.messages, before).unwrap_or(self.messages.len());
            self.messages.insert(to, moved);
        }
    }

    fn waiting_mut(&mut self, id: MessageId) -> Option<&mut Waiting> {
        self.messages.iter_mut().find(|waiting| waiting.message.id == id)
    }

    fn place(&mut self, id: MessageId, place: Place) {
        if let Some(waiting) = self.waiting_mut(id) {
            waiting.place = place;
        }
    }

    /// It waits where it waited, and what its prompt told of others is still to be told.
    fn take_back(&mut self, id: MessageId) {
        if let Some(waiting) = self.waiting_mut(id) {
            (waiting.place, waiting.with) = (Place::Inbox, None);
            let tells = std::mem::take(&mut waiting.tells);
            self.dropped.join(tells);
        }
    }

    fn forget(&mut self, id: MessageId) {
        self.messages.retain(|waiting| waiting.message.id != id);
    }
}
