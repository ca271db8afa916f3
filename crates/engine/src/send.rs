//! Something said to a conversation, whoever is there to hear it: a session that lives, the next one, or the first.

use std::time::Duration;

use ostler_domain::{
    ConversationId, Event, Message, MessageId, Mode, Reason, Refusal, SessionId,
    conversation::{CloseReason, Conversation, Inbound, Key, SendVerdict, reset_word},
    event::MessageUnheard,
    history::read_only,
    limits::MESSAGE_BYTES,
    message::{Queue, Said},
    query::{Page, SessionFilter},
    session::{Approve, Phase, Request, Restart, View},
    text::one_line,
};

use ostler_providers::Provider;

use crate::{
    Change, Engine, NewSession, conversation::NewConversation, create::new_message, halt::HaltRefusal,
    requests::just_ended, restart, who::Way,
};

/// How long a message waits for a session that is stopping: longer than its whole ladder.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// How often a message looks anew for whoever is there, where somebody else's came first: one may have the conversation
/// begin anew, and another one wake it.
const SAID_AGAIN: u32 = 2;

/// To whom something is said.
#[derive(Debug, Clone)]
pub struct Addressee {
    /// A session, a conversation, an agent.
    pub who: String,
    /// Which of an agent's conversations; then `who` is that agent.
    pub key: Option<Key>,
}

/// What became of a message when it was accepted.
#[derive(Debug, Clone)]
pub struct Sent {
    /// None where nothing was said but that the conversation is to begin anew.
    pub heard: Option<Accepted>,
    /// The conversation that was opened because the message asked for that.
    pub opened: Option<ConversationId>,
}

/// A message in somebody's inbox.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub message: MessageId,
    pub session: View,
    /// The conversation had no live session, so one was started.
    pub woke: bool,
    /// As it is said: not every agent can be told something within a turn.
    pub mode: Mode,
}

/// What is said, and how.
#[derive(Debug, Clone, Default)]
pub struct Words {
    pub text: String,
    /// As the conversation's messages are queued, where nobody chose.
    pub mode: Option<Mode>,
    /// The sender's own name for it: the same one again is the same message.
    pub key: Option<String>,
    /// Where it comes from.
    pub inbound: Option<Inbound>,
}

/// Who hears something: a conversation, by its last session where it has had one.
pub(crate) struct Hearer {
    pub(crate) conversation: Conversation,
    pub(crate) session: Option<View>,
}

impl Engine {
    /// Says something to a conversation. It is durable when this returns. A conversation whose session has ended goes on in
    /// a new one.
    pub async fn send(&self, to: &Addressee, words: &Words, change: Change) -> Result<Sent, Refusal> {
        if words.text.trim().is_empty() {
            return Err(Refusal::invalid("the message is empty")
                .hint(format!("ostler send {} \"…\"", one_line(&to.who, 64)), "says something"));
        }
        if let Some(key) = &words.key {
            return self.send_keyed(to, words, key, change).await;
        }
        self.send_once(to, words, &change).await
    }

    pub(crate) async fn send_once(
        &self,
        to: &Addressee,
        words: &Words,
        change: &Change,
    ) -> Result<Sent, Refusal> {
        let key = to.key.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
        let fingerprint = format!("send {}{key} {}", to.who, words.text);
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.sent_before(&reply).await;
        }
        let Some(rest) = reset_word(&words.text) else {
            let answer = Answer { change, fingerprint: &fingerprint, opened: None };
            return self.say_to(to, words, answer).await;
        };
        let old = self.hearer(to, change).await?.conversation;
        self.check_may_send(&old, change).await?;
        // The answer to this request is that of what is said first; without that, the reset's own.
        let request = change.request.filter(|_| rest.is_empty());
        let reset = Change { request, ..change.clone() };
        let fresh =
            self.reset_as(&old.id.to_string(), true, reset, &fingerprint, |id| format!("reset {id}")).await?;
        let opened = Some(fresh.id);
        if rest.is_empty() {
            return Ok(Sent { heard: None, opened });
        }
        let answer = Answer { change, fingerprint: &fingerprint, opened };
        let words = Words { text: rest.to_owned(), ..words.clone() };
        self.say(Hearer { conversation: fresh, session: None }, &words, answer).await
    }

    /// Says it to whoever is there. Several may wake a conversation at once, or have it begin anew: those who are not first
    /// are heard by the session of the one who was.
    async fn say_to(&self, to: &Addressee, words: &Words, answer: Answer<'_>) -> Result<Sent, Refusal> {
        let mut tries = SAID_AGAIN;
        loop {
            let hearer = self.hearer(to, answer.change).await?;
            let spoken_to = hearer.conversation.id;
            let refusal = match self.say(hearer, words, answer).await {
                Err(refusal) => refusal,
                said => return said,
            };
            let is_late = match refusal.reason {
                Reason::ConversationBusy => true,
                Reason::WrongState => {
                    let closed = self.stored_conversation(spoken_to).await?.closed;
                    closed.is_some_and(|closed| closed.why == CloseReason::Reset)
                }
                _ => false,
            };
            if tries == 0 || !is_late {
                return Err(refusal);
            }
            tries -= 1;
        }
    }

    async fn say(&self, hearer: Hearer, words: &Words, mut answer: Answer<'_>) -> Result<Sent, Refusal> {
        let change = answer.change;
        let conversation = self.note_inbound(hearer.conversation, words.inbound.as_ref(), change).await?;
        let verdict = self.check_may_send(&conversation, change).await?;
        let dropped = self.unmentioned(&conversation, &words.text).await?;
        let mut hearer = Hearer { conversation, ..hearer };
        if dropped.is_none()
            && let Some(fresh) = self.begun_anew(&hearer, change).await?
        {
            answer.opened = Some(fresh.conversation.id);
            hearer = fresh;
        }
        let Some(intro) = self.intro(&hearer.conversation).await?.filter(|_| dropped.is_none()) else {
            let heard = self.hear(hearer, words, (verdict, dropped), answer).await?;
            return Ok(Sent { heard: Some(heard), opened: answer.opened });
        };
        let group = hearer.conversation.id;
        let words = Words { text: format!("{intro}{}", words.text), ..words.clone() };
        let heard = self.hear(hearer, &words, (verdict, dropped), answer).await?;
        self.introduced(group, change).await?;
        Ok(Sent { heard: Some(heard), opened: answer.opened })
    }

    /// Says to a conversation what may be said there. `dropped`: why its agent is not told.
    async fn hear(
        &self,
        hearer: Hearer,
        words: &Words,
        (verdict, dropped): (SendVerdict, Option<String>),
        answer: Answer<'_>,
    ) -> Result<Accepted, Refusal> {
        let change = answer.change;
        let Hearer { conversation, session } = hearer;
        let queue = Queue::of(&conversation.key, &conversation.notes.entry);
        let view = match session {
            Some(view) => Some(self.at_rest(view).await?),
            None => None,
        };
        let live = view.as_ref().filter(|view| view.outcome.is_none());
        let provider = live.map(|view| self.shared.provider(&view.provider)).transpose()?;
        let message = Message {
            mode: possible(words.mode.unwrap_or(queue.mode), provider.as_deref()),
            ..new_message(self.shared.clock.now().wall, &words.text)
        };
        let (id, mode) = (message.id, message.mode);
        let again = verdict.clone();
        let rule = verdict.is_ruled.then_some(verdict.rule);
        let said = Said { rule, key: words.key.clone(), ..Said::from(message) };
        let view = match view {
            Some(view) if view.outcome.is_none() => view,
            Some(asleep) if dropped.is_some() => {
                let why = dropped.unwrap_or_default();
                return self.leave_unheard(&conversation, asleep, said, why, &answer).await;
            }
            None if dropped.is_some() => return Err(self.not_begun(&conversation, change).await?),
            Some(view) => {
                if let Err(refusal) = check_may_wake(&view) {
                    return Err(self.with_obituaries(&view, refusal).await);
                }
                let done = |successor: &View| answer.done(id, successor.id, true, mode);
                let other = restart::Other { message: Some(said), ..Default::default() };
                let was_last = self.successor(view.id).await?.is_none();
                let refusal = match restart::after(self, &view, other, change, done).await {
                    Ok(session) => return Ok(Accepted { message: id, session, woke: true, mode }),
                    Err(refusal) => refusal,
                };
                // Somebody else woke it meanwhile: what was said is for whoever goes on there.
                let woken = match was_last && refusal.reason == Reason::WrongState {
                    true => self.successor(view.id).await?,
                    false => None,
                };
                let Some(successor) = woken else { return Err(refusal) };
                let hearer = Hearer { conversation, session: Some(successor) };
                return Box::pin(self.hear(hearer, words, (again, None), answer)).await;
            }
            None => return self.begin(conversation, said, &answer).await,
        };
        self.shared.bring_keys(view.id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
        let done = answer.done(id, view.id, false, mode);
        let request = Request::Prompt { said: Box::new(said), queue, dropped: dropped.clone() };
        let refusal = match self.shared.wake(view.id).await? {
            Some(handle) => match handle.request(request, change.by.clone(), done).await {
                Ok(session) => return Ok(Accepted { message: id, session, woke: false, mode }),
                Err(refusal) => refusal,
            },
            None => just_ended(&view),
        };
        // Its end began meanwhile: what was said is for whoever goes on there.
        let now = self.session(&view.id.to_string()).await?;
        let has_begun_to_end =
            view.phase != Phase::Stopping && (now.phase == Phase::Stopping || now.outcome.is_some());
        if refusal.reason != Reason::WrongState || !has_begun_to_end {
            return Err(refusal);
        }
        let hearer = Hearer { conversation, session: Some(now) };
        Box::pin(self.hear(hearer, words, (again, dropped), answer)).await
    }

    /// Nobody is woken for what is not for them. What was said stays readable.
    async fn leave_unheard(
        &self,
        conversation: &Conversation,
        asleep: View,
        said: Said,
        why: String,
        answer: &Answer<'_>,
    ) -> Result<Accepted, Refusal> {
        let Said { message, rule, key, .. } = said;
        if message.text.len() > MESSAGE_BYTES {
            let most = format!("a message has at most {MESSAGE_BYTES} bytes");
            return Err(Refusal::new(Reason::TooLarge, most));
        }
        let (id, mode) = (message.id, message.mode);
        let (conversation, session, by) = (conversation.id, asleep.id, answer.change.by.clone());
        let unheard = MessageUnheard { message, conversation, session, by, why, rule, key };
        let done = answer.done(id, asleep.id, false, mode);
        self.record_nodes(vec![Event::MessageUnheard(Box::new(unheard))], done).await?;
        Ok(Accepted { message: id, session: asleep, woke: false, mode })
    }

    /// The first session of a conversation: its agent's, or one like that of the conversation in whose place it is.
    async fn begin(
        &self,
        conversation: Conversation,
        said: Said,
        answer: &Answer<'_>,
    ) -> Result<Accepted, Refusal> {
        let (id, mode) = (said.message.id, said.message.mode);
        let done = |session: SessionId| answer.done(id, session, true, mode);
        let session = match conversation.agent {
            Some(agent) => {
                let wanted = NewSession {
                    campaign: conversation.campaign.to_string(),
                    agent: Some(agent.to_string()),
                    key: Some(conversation.key.clone()),
                    prompt: Some(said.message.text.clone()),
                    said: Some(said),
                    approve: conversation.notes.entry.approve().unwrap_or(Approve::Policy),
                    spawned_by: conversation.spawned_by,
                    ..NewSession::default()
                };
                self.create(wanted, answer.change, done).await?
            }
            None => {
                let done = |view: &View| done(view.id);
                restart::anew(self, &conversation, said, answer.change, done).await?
            }
        };
        Ok(Accepted { message: id, session, woke: true, mode })
    }

    /// Who hears what is said to somebody.
    pub(crate) async fn hearer(&self, to: &Addressee, change: &Change) -> Result<Hearer, Refusal> {
        if let Some(key) = &to.key {
            let agent = self.agent(&to.who).await?;
            return self.hearer_of_agent(NewConversation::of(agent, key.clone()), change).await;
        }
        match self.spoken_to(&to.who).await {
            Ok(view) => {
                if to.who == view.name.as_str() {
                    self.check_sole(&to.who, view.campaign, Way::Send).await?;
                }
                self.hearer_in(view, &to.who).await
            }
            Err(refusal) if refusal.reason == Reason::SessionUnknown => {
                if let Some(found) = self.find_conversation(&to.who).await? {
                    if to.who == found.name.as_str() {
                        self.check_sole(&to.who, found.campaign, Way::Send).await?;
                    }
                    return match found.closed {
                        None => Ok(Hearer { conversation: found, session: None }),
                        Some(closed) => Err(self.closed_refusal(&found, closed.why).await),
                    };
                }
                match self.find_agent(&to.who).await? {
                    Some(agent) => {
                        self.hearer_of_agent(NewConversation::of(agent, Key::main()), change).await
                    }
                    None => Err(refusal),
                }
            }
            Err(refusal) => Err(with_ways_to_speak(refusal)),
        }
    }

    /// A name means the conversation that has it by now, and an id the one that it is of.
    async fn hearer_in(&self, view: View, who: &str) -> Result<Hearer, Refusal> {
        let conversation = self.stored_conversation(view.conversation).await?;
        let Some(closed) = conversation.closed else {
            return Ok(Hearer { conversation, session: Some(view) });
        };
        let is_named = who.rsplit('/').next() == Some(conversation.name.as_str());
        let Conversation { campaign, agent, key, .. } = &conversation;
        let fresh = self.shared.store.conversation_keyed(*campaign, *agent, key).await?;
        match fresh.filter(|_| is_named) {
            Some(fresh) => {
                let session = self.last_session(fresh.id).await?;
                Ok(Hearer { conversation: fresh, session })
            }
            None => Err(self.closed_refusal(&conversation, closed.why).await),
        }
    }

    async fn hearer_of_agent(&self, wanted: NewConversation, change: &Change) -> Result<Hearer, Refusal> {
        let opened = self.open_conversation(wanted, Change { request: None, ..change.clone() }).await?;
        let session = self.last_session(opened.conversation.id).await?;
        Ok(Hearer { conversation: opened.conversation, session })
    }

    /// Waits for a session that is stopping to have stopped: what is said to it then wakes the next one.
    async fn at_rest(&self, view: View) -> Result<View, Refusal> {
        if view.phase != Phase::Stopping {
            return Ok(view);
        }
        if let Some(halt) = self.halted() {
            return Err(halt.refusal());
        }
        let mut published = self.shared.store.published();
        let stopped = async {
            loop {
                published.borrow_and_update();
                let view = self.session(&view.id.to_string()).await?;
                if view.phase != Phase::Stopping || published.changed().await.is_err() {
                    return Ok(view);
                }
            }
        };
        tokio::time::timeout(STOPPED_WITHIN, stopped).await.unwrap_or(Ok(view))
    }

    async fn sent_before(&self, reply: &str) -> Result<Sent, Refusal> {
        let broken = || Refusal::internal("the stored answer of this request cannot be read");
        if let Some(id) = reply.strip_prefix("reset ") {
            return Ok(Sent { heard: None, opened: Some(id.parse().map_err(|_| broken())?) });
        }
        let mut words = reply.split(' ');
        let message = words.next().and_then(|id| id.parse().ok()).ok_or_else(broken)?;
        let session = self.session(words.next().ok_or_else(broken)?).await?;
        let woke = words.next() == Some("true");
        let mode = words.next().and_then(Mode::parse).unwrap_or_default();
        let opened = words.next().and_then(|id| id.parse().ok());
        Ok(Sent { heard: Some(Accepted { message, session, woke, mode }), opened })
    }

    /// A quarantine is understood from how its sessions ended, not from their number.
    async fn with_obituaries(&self, view: &View, refusal: Refusal) -> Refusal {
        if refusal.reason != Reason::Quarantined {
            return refusal;
        }
        let chain = SessionFilter { chains: vec![view.chain], ..SessionFilter::default() };
        let lives = self.shared.store.list_sessions(&chain, Page::of(OBITUARIES_SHOWN, None)).await;
        let ends = lives.map(|lives| lives.rows).unwrap_or_default();
        let ends = ends.iter().filter_map(|life| {
            let obituary = life.obituary.as_ref()?;
            Some(format!("{}: {}", life.id.short(), obituary.sentence))
        });
        let why = refusal.why.clone().into_iter().chain(ends).collect::<Vec<_>>().join("\n");
        refusal.because(why)
    }
}

/// Whoever names several is told how to speak to each of them.
fn with_ways_to_speak(mut refusal: Refusal) -> Refusal {
    for hint in refusal.hints.iter_mut().filter(|_| refusal.reason == Reason::Ambiguous) {
        let one =
            ["ostler show ", "ostler agent show "].iter().find_map(|way| hint.command.strip_prefix(way));
        if let Some(one) = one {
            hint.command = format!("ostler send {one} \"…\"");
        }
    }
    refusal
}

/// What whoever asked is answered, and answered again should they ask twice.
#[derive(Clone, Copy)]
struct Answer<'a> {
    change: &'a Change,
    fingerprint: &'a str,
    opened: Option<ConversationId>,
}

impl Answer<'_> {
    fn done(
        &self,
        message: MessageId,
        session: SessionId,
        woke: bool,
        mode: Mode,
    ) -> Option<ostler_store::RequestReply> {
        let opened = self.opened.map(|id| format!(" {id}")).unwrap_or_default();
        let mode = mode.as_str();
        self.change.done(self.fingerprint, format!("{message} {session} {woke} {mode}{opened}"))
    }
}

/// How a message can be said to an agent of this provider: not all can be told something within a turn, or be interrupted.
/// There is no turn for it where there is no agent yet.
fn possible(wanted: Mode, provider: Option<&dyn Provider>) -> Mode {
    let can = provider.map(|provider| provider.capabilities());
    match wanted {
        Mode::Steer if can.is_none_or(|can| !can.steer) => Mode::Followup,
        Mode::Interrupt if can.is_none_or(|can| !can.interrupt) => Mode::Followup,
        mode => mode,
    }
}

/// How many of the last lives a quarantine is explained by.
const OBITUARIES_SHOWN: u32 = 3;

/// A message wakes a conversation unless something ended it that would only strike again; a person's `restart`
/// still starts it anew. Whether its budgets have anything left is looked at when it is woken: they may have been raised.
fn check_may_wake(view: &View) -> Result<(), Refusal> {
    if let Some(origin) = &view.imported {
        return Err(read_only(view, origin, "sent to"));
    }
    let short = view.id.short();
    match &view.restart {
        Some(Restart::Quarantined { short_lives }) => Err(Refusal::new(
            Reason::Quarantined,
            format!("session {short} has ended, and a message does not wake it"),
        )
        .because(format!("quarantined after {short_lives} short lives in a row"))
        .hint(format!("ostler restart {short}"), "starts it anew all the same")),
        _ => Ok(()),
    }
}
