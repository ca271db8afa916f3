//! Which channels there are, as the settings change: each that is there has a task that tells, and one that is gone has
//! none.

use std::{collections::HashMap, time::Duration};

use ostler_domain::{
    Reason, Refusal,
    notice::{Channel, Notice, Occasion, To},
    query::EventFilter,
};
use tokio::task::JoinHandle;

use super::Tried;
use crate::Engine;

/// Pause before the log is looked at again when it could not be.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Those who tell, by the channel's name.
#[derive(Default)]
struct Tellers(HashMap<String, (Channel, JoinHandle<()>)>);

impl Drop for Tellers {
    fn drop(&mut self) {
        self.0.values().for_each(|(_, task)| task.abort());
    }
}

/// Under which a channel's place in the log is remembered.
pub(super) fn cursor_name(channel: &str) -> String {
    format!("notify.{channel}")
}

impl Engine {
    /// Begins to tell whoever wants to be told, and whoever will.
    pub async fn begin_notices(&self) -> Result<(), Refusal> {
        let place = *self.shared.store.published().borrow();
        let mut tellers = Tellers::default();
        self.keep_up(&mut tellers, place).await?;
        let engine = self.clone();
        self.shared.tasks.spawn(async move {
            let shutdown = engine.shared.shutdown.clone();
            tokio::select! {
                () = engine.follow_settings(&mut tellers, place) => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Looks at the settings whenever there is something to tell.
    async fn follow_settings(&self, tellers: &mut Tellers, place: u64) {
        let mut watch = self.watch(occasions(), Some(place));
        loop {
            let kept = match watch.next().await {
                Ok(events) => match events.iter().find(|event| Occasion::of(&event.event).is_some()) {
                    // Who was added since hears of this one too.
                    Some(first) => self.keep_up(tellers, first.seq - 1).await,
                    None => Ok(()),
                },
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = kept {
                tracing::warn!(%refusal, "who is to be told cannot be found out; trying again");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }

    async fn keep_up(&self, tellers: &mut Tellers, place: u64) -> Result<(), Refusal> {
        let wanted: Vec<Channel> =
            self.channels()?.into_iter().filter(|channel| channel.to != To::Terminal).collect();
        let is_wanted = |channel: &Channel| wanted.iter().any(|wanted| wanted.name == channel.name);
        let gone: Vec<String> =
            tellers.0.values().filter(|(known, _)| !is_wanted(known)).map(|(c, _)| c.name.clone()).collect();
        for name in gone {
            if let Some((_, task)) = tellers.0.remove(&name) {
                task.abort();
            }
            self.shared.untold.forget(&name);
            self.shared.store.forget_cursor(&cursor_name(&name)).await.map_err(Refusal::from)?;
        }
        for channel in wanted {
            match tellers.0.get(&channel.name) {
                Some((known, task)) if *known == channel && !task.is_finished() => continue,
                Some((_, task)) => task.abort(),
                None => {}
            }
            let name = cursor_name(&channel.name);
            // Who is told for the first time hears of what is to come, not of years.
            let from = match self.shared.store.cursor(&name).await? {
                Some(from) => from,
                None => {
                    self.shared.store.set_cursor(&name, place).await.map_err(Refusal::from)?;
                    place
                }
            };
            let (engine, told) = (self.clone(), channel.clone());
            let task = tokio::spawn(async move { engine.tell_from(told, from).await });
            tellers.0.insert(channel.name.clone(), (channel, task));
        }
        Ok(())
    }

    pub(super) fn channels(&self) -> Result<Vec<Channel>, Refusal> {
        self.shared.options.notices.channels.all()
    }

    /// Tells a channel that it is told, once, and says why it was not heard.
    pub async fn test_channel(&self, name: &str) -> Result<Channel, Refusal> {
        let channels = self.channels()?;
        let Some(channel) = channels.iter().find(|channel| channel.name == name) else {
            let known: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
            let refusal = Refusal::invalid(format!("there is no channel \"{name}\""));
            return Err(match ostler_domain::text::nearest(name, known) {
                Some(meant) => refusal.hint(format!("ostler notify test {meant}"), "is one that exists"),
                None => refusal,
            }
            .hint("ostler notify ls", "lists them"));
        };
        let on = channel.on.first().copied().unwrap_or(Occasion::Approval);
        let node = self.shared.store.node_id().to_string();
        let notice = Notice::trial(on, &node, name, self.shared.clock.now().wall);
        match self.try_channel(channel, &notice).await {
            Tried::Heard => Ok(channel.clone()),
            Tried::Refused(why) | Tried::Again(why) => {
                Err(Refusal::new(Reason::WrongState, format!("{name} was not told"))
                    .because(why)
                    .hint("ostler notify ls", "says where it goes"))
            }
        }
    }
}

pub(super) fn occasions() -> EventFilter {
    EventFilter { kinds: Occasion::KINDS.to_vec(), ..EventFilter::default() }
}
