//! What people ask of sessions that exist.

use ostler_domain::{
    Budget, Event, Reason, Refusal,
    event::{By, LostLeft},
    price::Dollars,
    query::{Listed, Page, SessionFilter},
    session::{Attention, Request, StopRule, View},
};

use crate::{Change, Engine};

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

    /// Refuses what is neither a provider of this machine nor that of any session in the record, so that nobody takes a
    /// slip of the finger for an empty list.
    pub async fn is_a_provider(&self, name: &str) -> Result<(), Refusal> {
        let known = self.shared.provider_names();
        let filter = SessionFilter { providers: vec![name.to_owned()], ..SessionFilter::default() };
        if known.iter().any(|known| known == name)
            || !self.shared.store.list_sessions(&filter, Page::of(1, None)).await?.rows.is_empty()
        {
            return Ok(());
        }
        Err(self.shared.no_such_provider(name))
    }

    /// Ends a session; in an orderly way, or at once.
    pub async fn stop(&self, who: &str, now: bool, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Stop(if now { StopRule::Kill } else { StopRule::Stop }), change).await
    }

    /// Ends a session in an orderly way because its work is done.
    pub async fn end(&self, who: &str, change: Change) -> Result<View, Refusal> {
        self.ask(who, Request::Stop(StopRule::TurnEnded), change).await
    }

    /// The same, because a person says so, whatever became of its last turn. Its ticket is done with it.
    pub async fn finish(&self, who: &str, change: Change) -> Result<View, Refusal> {
        let view = self.ask(who, Request::Stop(StopRule::Done), change.clone()).await?;
        if view.outcome.is_some() {
            self.finish_ticket_of(&view, &change).await?;
        }
        Ok(view)
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
            self.shared.bring_keys(view.id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
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
        let by = change.by.clone();
        match self.shared.wake(view.id).await? {
            Some(handle) => {
                let asked = handle.request(request.clone(), change.by, done).await;
                let mut view = match asked {
                    Ok(view) => view,
                    // It ended before it heard.
                    Err(refusal) if refusal.reason == Reason::WrongState => {
                        let now = self.session(&view.id.to_string()).await?;
                        return match now.outcome {
                            Some(_) => self.ask_the_ended(&now, request, by).await,
                            None => Err(refusal),
                        };
                    }
                    Err(refusal) => return Err(refusal),
                };
                self.overlay(&mut view);
                Ok(view)
            }
            None => self.ask_the_ended(&view, request, by).await,
        }
    }

    /// An ended session hears nothing any more: what already holds is fine, the rest is refused.
    /// Whoever stops one that was to go on by itself wants nobody to.
    async fn ask_the_ended(&self, view: &View, request: Request, by: By) -> Result<View, Refusal> {
        let gives_up = matches!(request, Request::Stop(_)) && view.continued_by.is_none();
        if gives_up && self.shared.store.is_to_go_on(view.id).await? {
            let left = LostLeft { sessions: vec![view.id], by };
            self.record_nodes(vec![Event::LostLeft(left)], None).await?;
        }
        let loaded = self.shared.store.load_session(view.id).await?.ok_or_else(|| just_ended(view))?;
        let context = self.shared.context();
        let input = ostler_domain::session::Input::Request(request, By::ostler());
        ostler_domain::session::decide(&loaded.state, input, &context).map(|_| loaded.state.view())
    }
}

pub(crate) fn just_ended(view: &View) -> Refusal {
    Refusal::new(Reason::WrongState, format!("session {} has just ended", view.id.short()))
        .hint(format!("ostler show {}", view.id.short()), "says why")
}
