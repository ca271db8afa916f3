//! Messages that wait: taking them back, changing them, putting them elsewhere; and names that senders give them.

use std::hash::{DefaultHasher, Hash, Hasher};

use ostler_domain::{
    Event, Message, MessageId, Mode, Reason, Receipt, Refusal, RequestId, SessionId, Time,
    conversation::without_intro,
    event::{MessageCancelled, MessageMoved, MovedTo},
    message::Said,
    session::{Request, State},
    text::one_line,
};
use ostler_store::MessageRow;

use crate::{
    Change, Engine,
    send::{Accepted, Addressee, Sent, Words},
};

/// Longest name that a sender may give a message.
const KEY_BYTES: usize = 256;

/// Where a message is to wait instead.
#[derive(Debug, Clone)]
pub enum MessagePlace {
    First,
    /// Before this message.
    Before(String),
    To(Addressee),
}

impl Engine {
    /// Takes back a message that waits.
    pub async fn cancel_message(&self, id: &str, change: Change) -> Result<MessageRow, Refusal> {
        let row = self.message(id).await?;
        let fingerprint = format!("cancel_message {}", row.id);
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some() {
            return Ok(row);
        }
        check_waits(&row)?;
        let done = change.done(&fingerprint, row.id.to_string());
        match self.shared.wake(row.session).await? {
            Some(handle) => drop(handle.request(Request::Cancel { id: row.id }, change.by, done).await?),
            None => {
                let why = format!("taken back by {}", change.by.0);
                let cancelled = MessageCancelled { id: row.id, why, by: change.by };
                self.record_of_ended(&row, Event::MessageCancelled(cancelled), done).await?;
            }
        }
        self.stored_message(row.id).await
    }

    /// What waits to be told to a conversation, in the order in which it will be.
    pub async fn messages_in_order(&self, who: &str) -> Result<Vec<MessageRow>, Refusal> {
        let conversation = self.conversation_of(who).await?;
        let mut waiting = self.shared.store.messages_waiting(conversation).await?;
        waiting.reverse();
        let Some(last) = self.last_session(conversation).await?.filter(|_| waiting.len() > 1) else {
            return Ok(waiting);
        };
        let loaded = self.shared.store.load_session(last.id).await?;
        let order = loaded.map(|loaded| loaded.state.in_order()).unwrap_or_default();
        waiting.sort_by_key(|row| order.iter().position(|id| *id == row.id).unwrap_or(usize::MAX));
        Ok(waiting)
    }

    /// Takes back all messages of a conversation that wait, and says which they were.
    pub async fn clear_messages(&self, who: &str, change: Change) -> Result<Vec<MessageRow>, Refusal> {
        let conversation = self.conversation_of(who).await?;
        let fingerprint = format!("clear_messages {conversation}");
        let ids: Vec<MessageId> = match change.done_before(&self.shared.store, &fingerprint).await? {
            Some(done) => done.split(' ').filter_map(|id| id.parse().ok()).collect(),
            None => {
                let waiting = self.shared.store.messages_waiting(conversation).await?;
                let ids: Vec<MessageId> = waiting.iter().map(|row| row.id).collect();
                let reply = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                let done = change.done(&fingerprint, reply);
                let last = self.last_session(conversation).await?;
                let live = match &last {
                    Some(view) => self.shared.wake(view.id).await?,
                    None => None,
                };
                match live {
                    Some(handle) => drop(handle.request(Request::CancelAll, change.by, done).await?),
                    None => {
                        let why = format!("taken back by {}, with all that waited", change.by.0);
                        let cancelled = |id: &MessageId| {
                            let (id, why, by) = (*id, why.clone(), change.by.clone());
                            Event::MessageCancelled(MessageCancelled { id, why, by })
                        };
                        let _naming = self.shared.naming.lock().await;
                        self.record_nodes(ids.iter().map(cancelled).collect(), done).await?;
                    }
                }
                ids
            }
        };
        let mut cleared = Vec::new();
        for id in ids {
            let row = self.stored_message(id).await?;
            // One may have been on its way already.
            if row.receipt == Receipt::Cancelled {
                cleared.push(row);
            }
        }
        Ok(cleared)
    }

    /// Says something else instead, while it waits.
    pub async fn edit_message(&self, id: &str, text: &str, change: Change) -> Result<MessageRow, Refusal> {
        let row = self.message(id).await?;
        let fingerprint = format!("edit_message {} {text}", row.id);
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some() {
            return Ok(row);
        }
        check_waits(&row)?;
        let done = change.done(&fingerprint, row.id.to_string());
        let handle = self.shared.wake(row.session).await?.ok_or_else(|| asleep(&row))?;
        handle.request(Request::Edit { id: row.id, text: text.to_owned() }, change.by, done).await?;
        self.stored_message(row.id).await
    }

    /// Has a message wait elsewhere. In another conversation it is another message.
    pub async fn move_message(
        &self,
        id: &str,
        place: MessagePlace,
        change: Change,
    ) -> Result<MessageRow, Refusal> {
        let row = self.message(id).await?;
        let before = match place {
            MessagePlace::First => None,
            MessagePlace::Before(other) => {
                let other = self.message(&other).await?;
                if other.session != row.session {
                    return Err(Refusal::invalid(format!(
                        "message {} waits for another session",
                        other.id.short()
                    ))
                    .hint(
                        format!("ostler message move {} --to {}", row.id.short(), other.session.short()),
                        "has it wait there",
                    ));
                }
                Some(other.id)
            }
            MessagePlace::To(to) => return self.move_away(row, &to, change).await,
        };
        let fingerprint = format!("move_message {} {before:?}", row.id);
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some() {
            return Ok(row);
        }
        check_waits(&row)?;
        let done = change.done(&fingerprint, row.id.to_string());
        let handle = self.shared.wake(row.session).await?.ok_or_else(|| asleep(&row))?;
        handle.request(Request::Reorder { id: row.id, before }, change.by, done).await?;
        self.stored_message(row.id).await
    }

    /// It is said there first, and then taken from here: should something fail in between, it waits twice and is not lost.
    async fn move_away(
        &self,
        row: MessageRow,
        to: &Addressee,
        change: Change,
    ) -> Result<MessageRow, Refusal> {
        let fingerprint = format!("move_message {} to {}", row.id, to.who);
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.message(&done).await;
        }
        check_waits(&row)?;
        let text = self.message_text(&row).await?;
        // Asked for twice, it is there once.
        let words = Words { text, mode: Some(row.mode), key: Some(row.id.to_string()), inbound: None };
        let there = self.send(to, &words, Change { request: None, ..change.clone() }).await?;
        let message = there.heard.map(|heard| heard.message);
        let message = message.ok_or_else(|| Refusal::invalid("a reset is said and not moved"))?;
        let there = self.stored_message(message).await?;
        let conversation = there.conversation;
        let done = change.done(&fingerprint, message.to_string());
        let taken = match self.shared.wake(row.session).await? {
            Some(handle) => {
                let request = Request::MoveAway { id: row.id, conversation, message };
                handle.request(request, change.by.clone(), done).await.map(drop)
            }
            None => {
                let to = MovedTo::Conversation { conversation, message };
                let moved = MessageMoved { id: row.id, to, by: change.by.clone() };
                self.record_of_ended(&row, Event::MessageMoved(moved), done).await
            }
        };
        match taken {
            Ok(()) => self.stored_message(message).await,
            Err(refusal) => {
                // It was told here meanwhile, and is not to be told there too.
                let back =
                    self.cancel_message(&message.to_string(), Change { request: None, ..change }).await;
                if let Err(error) = back {
                    tracing::warn!(%message, %error, "a message that could not be moved was told twice");
                }
                Err(refusal)
            }
        }
    }

    /// What an ended session never told waits for the next one, which is made under the same lock.
    async fn record_of_ended(
        &self,
        row: &MessageRow,
        event: Event,
        done: Option<ostler_store::RequestReply>,
    ) -> Result<(), Refusal> {
        let _naming = self.shared.naming.lock().await;
        let now = self.stored_message(row.id).await?;
        check_waits(&now)?;
        if now.session != row.session {
            return Err(asleep(&now));
        }
        self.record_nodes(vec![event], done).await
    }

    /// What the session before never told its agent, and nobody has taken back since.
    pub(crate) async fn carried(&self, old: &State) -> Result<Vec<Said>, Refusal> {
        let mut carried: Vec<Said> = Vec::new();
        for message in old.undelivered() {
            let row = self.shared.store.message(message.id).await?;
            if row.as_ref().is_none_or(|row| row.receipt == Receipt::Accepted) {
                let (rule, key) = row.map(|row| (row.rule, row.key)).unwrap_or_default();
                let moved_from = Some(old.created().id);
                // There is no turn to say it into, and the next agent may be one that cannot be told anything there.
                let mode = if message.mode == Mode::Steer { Mode::Followup } else { message.mode };
                let message = Message { mode, ..message.clone() };
                carried.push(Said { rule, key, moved_from, ..Said::from(message) });
            }
        }
        if let Some(first) = carried.first_mut() {
            first.untold = old.untold();
        }
        Ok(carried)
    }

    /// What a message says, whole.
    pub async fn message_text(&self, row: &MessageRow) -> Result<String, Refusal> {
        if row.head.len() as u64 == row.bytes {
            return Ok(row.head.clone());
        }
        self.text_at(row.text_seq).await
    }

    async fn text_at(&self, seq: u64) -> Result<String, Refusal> {
        match self.shared.store.event(seq).await?.map(|recorded| recorded.event) {
            Some(Event::MessageAccepted(accepted)) => Ok(accepted.message.text),
            Some(Event::MessageEdited(edited)) => Ok(edited.text),
            Some(Event::MessageUnheard(unheard)) => Ok(unheard.message.text),
            _ => Err(Refusal::internal("the text of this message cannot be read")),
        }
    }

    /// The messages that were dropped because this one came.
    pub async fn dropped_for(&self, id: MessageId) -> Result<Vec<MessageId>, Refusal> {
        Ok(self.shared.store.dropped_for(id).await?.into_iter().map(|row| row.id).collect())
    }

    /// Says something under the sender's own name for it, once.
    pub(crate) async fn send_keyed(
        &self,
        to: &Addressee,
        words: &Words,
        key: &str,
        change: Change,
    ) -> Result<Sent, Refusal> {
        if key.is_empty() || key.len() > KEY_BYTES || key.contains(char::is_control) {
            return Err(Refusal::invalid(format!(
                "a message's own name is one line of at most {KEY_BYTES} bytes"
            )));
        }
        if let Some(sent) = self.keyed_before(to, words, key).await? {
            return Ok(sent);
        }
        // Two at once are one request.
        let once = Change { request: Some(request_of(key)), ..change };
        match self.send_once(to, words, &once).await {
            Err(refusal) if refusal.reason == Reason::RequestConflict => {
                self.keyed_before(to, words, key).await?.ok_or(refusal)
            }
            sent => sent,
        }
    }

    async fn keyed_before(&self, to: &Addressee, words: &Words, key: &str) -> Result<Option<Sent>, Refusal> {
        let Some(row) = self.shared.store.message_keyed(key).await? else { return Ok(None) };
        let said = self.text_at(row.seq).await?;
        let said = without_intro(&said);
        let is_there = match self.conversation_of(&to.who).await {
            Ok(conversation) if to.key.is_none() => {
                let was = self.stored_conversation(row.conversation).await?;
                conversation == row.conversation || was.closed.is_some()
            }
            _ => true,
        };
        // What follows `/new` is the message.
        let is_same = said == words.text || words.text.ends_with(said) && words.text.starts_with('/');
        if !is_same || !is_there {
            return Err(Refusal::new(
                Reason::RequestConflict,
                format!("\"{}\" is the name of another message", one_line(key, 64)),
            )
            .because(format!("message {}: {}", row.id.short(), one_line(said, 60)))
            .hint(format!("ostler message show {}", row.id.short()), "shows that one"));
        }
        let session = self.session(&row.session.to_string()).await?;
        let heard = Accepted { message: row.id, session, woke: false, mode: row.mode };
        Ok(Some(Sent { heard: Some(heard), opened: None }))
    }

    pub(crate) async fn stored_message(&self, id: MessageId) -> Result<MessageRow, Refusal> {
        let row = self.shared.store.message(id).await?;
        row.ok_or_else(|| Refusal::internal(format!("message {id} cannot be read")))
    }
}

/// The request that a sender's name for a message stands for, while requests are remembered.
fn request_of(key: &str) -> RequestId {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, "message", key).hash(&mut hasher);
        hasher.finish()
    };
    let entropy = u128::from(part(0)) | u128::from(part(1)) << 64;
    let time = i64::try_from(part(2) >> 16).unwrap_or_default();
    RequestId::new(Time::from_micros(time), entropy)
}

/// Refuses what comes too late.
fn check_waits(row: &MessageRow) -> Result<(), Refusal> {
    let short = row.id.short();
    match row.receipt {
        Receipt::Accepted => Ok(()),
        receipt => {
            Err(Refusal::new(Reason::WrongState, format!("message {short} cannot be changed any more"))
                .because(match &row.why {
                    Some(why) => format!("it is {}: {why}", receipt.as_str()),
                    None => format!("it is {}", receipt.as_str()),
                })
                .hint(format!("ostler message show {short}"), "what became of it"))
        }
    }
}

/// Why a message that an ended session never told cannot be changed.
fn asleep(row: &MessageRow) -> Refusal {
    let session: SessionId = row.session;
    Refusal::new(
        Reason::WrongState,
        format!("message {} waits for the conversation's next session", row.id.short()),
    )
    .because(format!("session {} has ended", session.short()))
    .hint(format!("ostler message rm {}", row.id.short()), "takes it back; then say it anew")
    .hint(format!("ostler restart {}", session.short()), "starts a session that hears it")
}
