//! What people ask of sessions that exist.

use std::time::Duration;

use ostler_domain::{
    Budget, MessageId, Mode, Reason, Refusal,
    price::Dollars,
    query::{Listed, Page, SessionFilter},
    session::{Attention, Phase, Request, Restart, StopRule, View},
    text::one_line,
};

use crate::{Change, Engine, create::new_message, halt::HaltRefusal, restart};

/// How long a message waits for a session that is stopping: longer than its whole ladder.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// What a session may use from now on, that used included. Nothing at all means no limit; unset, as before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raised {
    pub tokens: Option<u64>,
    pub dollars: Option<Dollars>,
}

impl Raised {
    /// The budget that follows; none where nothing was raised.
    pub(crate) fn of(self, before: Option<Budget>) -> Option<Budget> {
        if self.tokens.is_none() && self.dollars.is_none() {
            return None;
        }
        let before = before.unwrap_or_default();
        Some(Budget {
            tokens: self.tokens.or(before.tokens).filter(|tokens| *tokens > 0),
            dollars: self.dollars.or(before.dollars).filter(|dollars| *dollars > Dollars(0)),
            ..before
        })
    }
}

/// What became of a message when it was accepted.
#[derive(Debug, Clone)]
pub struct Sent {
    pub message: MessageId,
    pub session: View,
    /// The conversation had no live session, so one was started.
    pub woke: bool,
    /// As it is said: not every agent can be told something within a turn.
    pub mode: Mode,
}

impl Engine {
    /// Lists sessions, newest first.
    pub async fn sessions(&self, filter: SessionFilter, page: Page) -> Result<Listed<View>, Refusal> {
        let detached_too = filter.attention.contains(&Attention::Detached);
        let mut stored = filter.clone();
        if detached_too {
            // Whether a keeper is connected is known here, not in the record.
            stored.attention.clear();
        }
        let mut listed = self.shared.store.list_sessions(&stored, page).await?;
        for view in &mut listed.rows {
            self.overlay(view);
        }
        if !filter.attention.is_empty() {
            listed
                .rows
                .retain(|view| view.attention.is_some_and(|attention| filter.attention.contains(&attention)));
        }
        Ok(listed)
    }

    /// Says something to a session's conversation. It is durable when this returns. An ended session's
    /// conversation goes on in a new one.
    pub async fn send(&self, who: &str, text: &str, mode: Mode, change: Change) -> Result<Sent, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::invalid("the message is empty")
                .hint(format!("ostler send {} \"…\"", one_line(who, 64)), "says something"));
        }
        let fingerprint = format!("send {who} {text}");
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.sent_before(&reply).await;
        }
        let view = self.at_rest(self.session(who).await?).await?;
        let mut message = new_message(self.shared.clock.now().wall, text);
        if mode == Mode::Steer && self.shared.provider(&view.provider)?.capabilities().steer {
            message.mode = Mode::Steer;
        }
        let (id, mode) = (message.id, message.mode);
        let steers = mode == Mode::Steer;
        let reply = |session: &View, woke: bool| format!("{id} {} {woke} {steers}", session.id);
        if view.outcome.is_some() {
            if let Err(refusal) = check_may_wake(&view) {
                return Err(self.with_obituaries(&view, refusal).await);
            }
            let done = |successor: &View| change.done(&fingerprint, reply(successor, true));
            let other = restart::Other { message: Some(message), ..Default::default() };
            let session = restart::after(self, &view, other, &change, done).await?;
            return Ok(Sent { message: id, session, woke: true, mode });
        }
        self.shared.bring_keys(view.id, &view.provider, &change.keys)?;
        let done = change.done(&fingerprint, reply(&view, false));
        let handle = self.shared.wake(view.id).await?.ok_or_else(|| just_ended(&view))?;
        let session = handle.request(Request::Prompt(message), change.by, done).await?;
        Ok(Sent { message: id, session, woke: false, mode })
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
        let mut words = reply.split(' ');
        let message = words.next().and_then(|id| id.parse().ok()).ok_or_else(broken)?;
        let session = self.session(words.next().ok_or_else(broken)?).await?;
        let woke = words.next() == Some("true");
        let mode = if words.next() == Some("true") { Mode::Steer } else { Mode::Followup };
        Ok(Sent { message, session, woke, mode })
    }

    /// Ends a session; in an orderly way, or at once.
    pub async fn stop(&self, who: &str, now: bool, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Stop(if now { StopRule::Kill } else { StopRule::Stop }), change).await
    }

    /// Ends a session in an orderly way because its work is done.
    pub async fn end(&self, who: &str, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Stop(StopRule::TurnEnded), change).await
    }

    pub async fn pause(&self, who: &str, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Pause, change).await
    }

    /// Lets a session go on, raising what held it.
    pub async fn resume(
        &self,
        who: &str,
        raised: Raised,
        tape_bytes: Option<u64>,
        change: Change,
    ) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        if view.outcome.is_none() {
            self.shared.bring_keys(view.id, &view.provider, &change.keys)?;
        }
        // A price that was set, or a budget of the campaign's, may have ended what held it.
        self.shared.accounts.settled(view.campaign).await;
        let budget = raised.of(view.budget);
        self.ask(&view.id.to_string(), Request::Resume { budget, tape_bytes }, change).await
    }

    /// Ends the turn, not the session.
    pub async fn interrupt(&self, who: &str, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Interrupt, change).await
    }

    /// Has a session go on with another model. Says whether its agent was told: one that cannot change it while it lives
    /// has it from the next session on.
    pub async fn set_model(&self, who: &str, model: &str, change: Change) -> Result<(View, bool), Refusal> {
        let view = self.session(who).await?;
        let while_it_lives = self.shared.provider(&view.provider)?.capabilities().model_change;
        let request = Request::Model { model: model.to_owned(), while_it_lives };
        Ok((self.ask(&view.id.to_string(), request, change).await?, while_it_lives))
    }

    pub(crate) async fn ask(&self, who: &str, request: Request, change: Change) -> Result<View, Refusal> {
        let fingerprint = format!("{who} {request:?}");
        if let Some(id) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&id).await;
        }
        let view = self.session(who).await?;
        let done = change.done(&fingerprint, view.id.to_string());
        match self.shared.wake(view.id).await? {
            Some(handle) => {
                let mut view = handle.request(request, change.by, done).await?;
                self.overlay(&mut view);
                Ok(view)
            }
            None => self.ask_the_ended(&view, request).await,
        }
    }

    /// A quarantine is understood from how its sessions ended, not from their number.
    async fn with_obituaries(&self, view: &View, refusal: Refusal) -> Refusal {
        if refusal.reason != Reason::Quarantined {
            return refusal;
        }
        let chain = SessionFilter { chain: Some(view.chain), ..SessionFilter::default() };
        let lives = self.shared.store.list_sessions(&chain, Page::of(OBITUARIES_SHOWN, None)).await;
        let ends = lives.map(|lives| lives.rows).unwrap_or_default();
        let ends = ends.iter().filter_map(|life| {
            let obituary = life.obituary.as_ref()?;
            Some(format!("{}: {}", life.id.short(), obituary.sentence))
        });
        let why = refusal.why.clone().into_iter().chain(ends).collect::<Vec<_>>().join("\n");
        refusal.because(why)
    }

    /// An ended session hears nothing any more: what already holds is fine, the rest is refused.
    async fn ask_the_ended(&self, view: &View, request: Request) -> Result<View, Refusal> {
        let loaded = self.shared.store.load_session(view.id).await?.ok_or_else(|| just_ended(view))?;
        let context = self.shared.context();
        let input = ostler_domain::session::Input::Request(request, ostler_domain::event::By::ostler());
        ostler_domain::session::decide(&loaded.state, input, &context).map(|_| loaded.state.view())
    }
}

/// How many of the last lives a quarantine is explained by.
const OBITUARIES_SHOWN: u32 = 3;

/// A message wakes a conversation unless something ended it that would only strike again; a person's `restart`
/// still starts it anew. Whether its budgets have anything left is looked at when it is woken: they may have been raised.
fn check_may_wake(view: &View) -> Result<(), Refusal> {
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

fn just_ended(view: &View) -> Refusal {
    Refusal::new(Reason::WrongState, format!("session {} has just ended", view.id.short()))
        .hint(format!("ostler show {}", view.id.short()), "says why")
}
