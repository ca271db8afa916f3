//! Telling somebody who is not looking: hooks and a webhook, each with a place of its own in the log.
//!
//! The log is the queue. A place is remembered only when what stands there was told, or never can be; so a daemon that
//! dies at the wrong moment tells again, with the same id, and loses nothing.

mod hook;
mod sign;
mod webhook;

use std::time::Duration;

use ostler_domain::{
    Event, Recorded, Refusal,
    limits::NOTICE_DWELL,
    notice::{Hook, Notice, Occasion, Webhook, Whose, is_stale},
    query::EventFilter,
};
use ostler_store::ApprovalState;

use crate::Engine;

pub use webhook::{Post, Poster};
pub(crate) use webhook::{Tried, judged};

/// Pause before the log is looked at again when it could not be.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Who is told.
#[derive(Debug, Clone, Default)]
pub struct NoticeSettings {
    pub hooks: Vec<Hook>,
    pub webhook: Option<Webhook>,
    /// How a webhook is reached.
    pub post: Option<Poster>,
}

/// One of those who work through the log.
enum Teller {
    Hooks(Vec<Hook>),
    Webhook(Webhook, Poster),
}

impl Teller {
    /// Under which its place is remembered.
    const fn name(&self) -> &'static str {
        match self {
            Teller::Hooks(_) => "hooks",
            Teller::Webhook(..) => "webhook",
        }
    }

    fn wants(&self, on: Occasion) -> bool {
        match self {
            Teller::Hooks(hooks) => hooks.iter().any(|hook| hook.on.contains(&on)),
            Teller::Webhook(webhook, _) => webhook.on.contains(&on),
        }
    }
}

impl Engine {
    /// Begins to tell whoever wants to be told.
    pub async fn begin_notices(&self) -> Result<(), Refusal> {
        let NoticeSettings { hooks, webhook, post } = self.shared.options.notices.clone();
        let hooks = (!hooks.is_empty()).then_some(Teller::Hooks(hooks));
        let webhook = webhook.zip(post).map(|(webhook, post)| Teller::Webhook(webhook, post));
        for teller in hooks.into_iter().chain(webhook) {
            // Who is told for the first time hears of what is to come, not of years.
            let place = match self.shared.store.cursor(teller.name()).await? {
                Some(place) => place,
                None => {
                    let end = *self.shared.store.published().borrow();
                    self.shared.store.set_cursor(teller.name(), end).await.map_err(Refusal::from)?;
                    end
                }
            };
            let engine = self.clone();
            self.shared.tasks.spawn(async move {
                let shutdown = engine.shared.shutdown.clone();
                tokio::select! {
                    () = engine.tell_from(place, teller) => {}
                    () = shutdown.cancelled() => {}
                }
            });
        }
        Ok(())
    }

    async fn tell_from(&self, mut place: u64, teller: Teller) {
        loop {
            if let Err(refusal) = self.tell_on(&mut place, &teller).await {
                tracing::warn!(whose = teller.name(), %refusal, "nobody can be told; trying again");
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    /// Tells what the log has behind a place, and goes on with what comes. Ends only with a failure of our own.
    async fn tell_on(&self, place: &mut u64, teller: &Teller) -> Result<(), Refusal> {
        let filter = EventFilter { kinds: Occasion::KINDS.to_vec(), ..EventFilter::default() };
        let mut watch = self.watch(filter, Some(*place));
        loop {
            for recorded in watch.next().await? {
                if Occasion::of(&recorded.event).is_some_and(|on| teller.wants(on)) {
                    self.tell(&recorded, teller).await?;
                }
                self.shared.store.set_cursor(teller.name(), recorded.seq).await.map_err(Refusal::from)?;
                *place = recorded.seq;
            }
        }
    }

    async fn tell(&self, recorded: &Recorded, teller: &Teller) -> Result<(), Refusal> {
        let Some(session) = recorded.session else { return Ok(()) };
        if Occasion::of(&recorded.event) == Some(Occasion::WaitingInput) {
            let waited = self.shared.clock.now().wall.since(recorded.time);
            tokio::time::sleep(NOTICE_DWELL.saturating_sub(waited)).await;
        }
        if !self.is_worth_telling(recorded).await? {
            return Ok(());
        }
        let view = self.session(&session.to_string()).await?;
        if view.imported.is_some() {
            return Ok(());
        }
        let campaigns = self.campaigns().await?;
        let campaign = campaigns.iter().find(|known| known.id == view.campaign);
        let campaign = campaign.map_or_else(|| view.campaign.to_string(), |known| known.name.to_string());
        let node = self.shared.store.node_id().to_string();
        let whose = Whose { node: &node, session: &view, campaign: &campaign };
        let on = Occasion::of(&recorded.event);
        match teller {
            Teller::Hooks(hooks) => {
                for hook in hooks.iter().filter(|hook| on.is_some_and(|on| hook.on.contains(&on))) {
                    if let Some(notice) = Notice::of(recorded, whose, hook.details) {
                        hook::run(hook, &notice).await;
                    }
                }
            }
            Teller::Webhook(webhook, post) => {
                if let Some(notice) = Notice::of(recorded, whose, webhook.details) {
                    self.tell_webhook(webhook, post, &notice, recorded).await?;
                }
            }
        }
        Ok(())
    }

    /// Not what is a day old, and no question that somebody has answered meanwhile.
    async fn is_worth_telling(&self, recorded: &Recorded) -> Result<bool, Refusal> {
        if is_stale(recorded.time, self.shared.clock.now().wall) {
            return Ok(false);
        }
        match &recorded.event {
            Event::ApprovalRequested(asked) => {
                let row = self.approval(&asked.id.to_string()).await?;
                Ok(row.state == ApprovalState::Open)
            }
            _ => Ok(true),
        }
    }
}
