//! One channel: what the log has for it, told when it is due.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ostler_domain::{
    Event, Kind, Reason, Refusal,
    event::BudgetReached,
    limits::{WEBHOOK_FIRST, WEBHOOK_LONGEST},
    notice::{About, Channel, Notice, Occasion, OfMission, Pace, To, Whose, is_stale},
    query::EventFilter,
};
use ostler_store::{ApprovalState, Published};

use super::{
    Tried, Wanted,
    channels::{AFTER_FAILURE, cursor_name, occasions},
    desktop, hook, post,
};
use crate::Engine;

/// Places that are passed without being noted, as long as nobody was told.
const UNNOTED: u64 = 256;
/// How many used up budgets are looked through for one that was told of.
const CROSSINGS: u32 = 1_000;

/// What is not there any more is not worth telling of.
fn unless_gone<T>(found: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(refusal)
            if matches!(
                refusal.reason,
                Reason::SessionUnknown | Reason::MissionUnknown | Reason::ApprovalUnknown
            ) =>
        {
            Ok(None)
        }
        Err(refusal) => Err(refusal),
    }
}

impl Engine {
    pub(super) async fn tell_from(&self, channel: Channel, mut place: u64) {
        loop {
            if let Err(refusal) = self.tell_on(&channel, &mut place).await {
                tracing::warn!(channel = channel.name, %refusal, "nobody can be told; trying again");
            }
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }

    /// Tells what the log has behind a place, and goes on with what comes. Ends only with a failure of our own.
    async fn tell_on(&self, channel: &Channel, place: &mut u64) -> Result<(), Refusal> {
        let (mut pace, mut read) = (Pace::default(), *place);
        let mut events: BTreeMap<u64, Arc<Published>> = BTreeMap::new();
        let mut watch = self.watch(occasions(), Some(*place));
        loop {
            let mut now = self.shared.clock.now();
            while let Some((about, due)) = pace.due(now.since_boot) {
                let group: Vec<_> = due.iter().filter_map(|seq| events.remove(seq)).collect();
                if self.tell(channel, &group).await? {
                    pace.told(about, self.shared.clock.now().since_boot);
                }
                self.remember(channel, place, pace.place(read)).await?;
                now = self.shared.clock.now();
            }
            let rest = pace.next().map(|due| due.saturating_sub(now.since_boot));
            tokio::select! {
                batch = watch.next(), if pace.has_room() => {
                    for event in batch? {
                        read = event.seq;
                        let on = Occasion::of(&event.event).filter(|on| channel.wants(*on));
                        if let Some((on, about)) = on.zip(About::of(&event)) {
                            let now = self.shared.clock.now();
                            pace.heard(event.seq, on, about, now.wall.since(event.time), now.since_boot);
                            events.insert(event.seq, event);
                        }
                    }
                    // What was not told is read again by the next daemon, and costs nothing; a note costs a commit.
                    if pace.place(read) >= *place + UNNOTED {
                        self.remember(channel, place, pace.place(read)).await?;
                    }
                }
                () = tokio::time::sleep(rest.unwrap_or(Duration::MAX)), if rest.is_some() => {}
            }
        }
    }

    async fn remember(&self, channel: &Channel, place: &mut u64, told: u64) -> Result<(), Refusal> {
        if told != *place {
            let name = cursor_name(&channel.name);
            self.shared.store.set_cursor(&name, told).await.map_err(Refusal::from)?;
            *place = told;
        }
        Ok(())
    }

    /// Tells the first that is still worth it, and of how many others it stands for. Says whether somebody was told.
    async fn tell(&self, channel: &Channel, group: &[Arc<Published>]) -> Result<bool, Refusal> {
        let mut worth = Vec::new();
        for recorded in group {
            if self.is_worth_telling(recorded).await? {
                worth.push(recorded);
            }
        }
        let more = u32::try_from(worth.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let Some(first) = worth.first() else { return Ok(false) };
        if channel.to == To::Desktop && self.somebody_looks() {
            return Ok(false);
        }
        let Some(mut notice) = self.notice_of(first, channel).await? else { return Ok(false) };
        notice = notice.with_more(more);
        let mut pause = WEBHOOK_FIRST;
        loop {
            let (channel_name, id) = (&channel.name, &notice.id);
            match self.try_channel(channel, &notice).await {
                Tried::Heard => {
                    tracing::info!(
                        channel_name,
                        id,
                        on = notice.on.as_str(),
                        "the {} was told",
                        channel.to.as_str()
                    );
                    return Ok(true);
                }
                Tried::Refused(why) => {
                    tracing::warn!(
                        channel_name,
                        id,
                        why,
                        "the {} does not want to hear this",
                        channel.to.as_str()
                    );
                    return Ok(true);
                }
                Tried::Again(why) => {
                    let seconds = pause.as_secs();
                    tracing::warn!(
                        channel_name,
                        id,
                        why,
                        seconds,
                        "the {} did not hear; trying again",
                        channel.to.as_str()
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(WEBHOOK_LONGEST);
            let is_wanted = self.channels().map_or(true, |all| all.contains(channel));
            if !is_wanted || !self.is_worth_telling(first).await? {
                return Ok(false);
            }
        }
    }

    /// One try.
    pub(super) async fn try_channel(&self, channel: &Channel, notice: &Notice) -> Tried {
        let poster = self.shared.options.notices.post.as_ref();
        let tried = match &channel.to {
            To::Hook(to) => hook::tell(to, notice).await,
            To::Desktop => desktop::tell(notice).await,
            To::Webhook(to) => post::webhook(poster, to, notice, self.shared.clock.now().wall).await,
            To::Ntfy(to) => post::ntfy(poster, to, notice).await,
            To::Terminal => Tried::Refused("the daemon has no terminal".to_owned()),
        };
        self.shared.untold.tried(&channel.name, &tried);
        tried
    }

    /// None of what nobody needs to hear of.
    async fn notice_of(&self, recorded: &Published, channel: &Channel) -> Result<Option<Notice>, Refusal> {
        let node = self.shared.store.node_id().to_string();
        let campaigns = self.campaigns().await?;
        let named = |id| campaigns.iter().find(|known| known.id == id).map(|known| known.name.to_string());
        let notice = match About::of(recorded) {
            Some(About::Session(session)) => {
                let view = unless_gone(self.session(&session.to_string()).await)?;
                let Some(view) = view.filter(|view| view.imported.is_none()) else { return Ok(None) };
                let campaign = named(view.campaign).unwrap_or_else(|| view.campaign.to_string());
                let whose = Whose { node: &node, session: &view, campaign: &campaign };
                Notice::of(recorded, whose, channel.details)
            }
            Some(About::Mission(id)) => {
                let Some(mission) = unless_gone(self.mission(&id.to_string()).await)? else {
                    return Ok(None);
                };
                let campaign = named(mission.campaign).unwrap_or_default();
                let name = mission.name.to_string();
                let whose = OfMission { node: &node, name: &name, campaign: &campaign };
                Notice::of_mission(recorded, whose, channel.details)
            }
            None => None,
        };
        Ok(notice.map(|notice| self.with_link(notice, recorded, channel)))
    }

    fn with_link(&self, mut notice: Notice, recorded: &Published, channel: &Channel) -> Notice {
        let until = match &recorded.event {
            Event::ApprovalRequested(asked) => asked.deadline.as_ref().map(|deadline| deadline.wall()),
            _ => None,
        };
        let approval = notice.approval.as_deref().zip(until).filter(|_| channel.link);
        let page = notice.page();
        let wanted = Wanted { page: &page, channel: &channel.name, approval };
        notice.link = self.shared.options.notices.link.as_ref().and_then(|link| link.make(&wanted));
        notice
    }

    /// Whether somebody sits before this machine's screen and sees it.
    fn somebody_looks(&self) -> bool {
        let file = self.shared.options.notices.looked_at.as_ref();
        let touched = file.and_then(|file| file.metadata().ok()?.modified().ok());
        touched.is_some_and(|touched| {
            touched.elapsed().is_ok_and(|ago| ago < ostler_domain::limits::NOTICE_LOOK)
        })
    }

    /// Not what is a day old, and no question that somebody has answered meanwhile.
    async fn is_worth_telling(&self, recorded: &Published) -> Result<bool, Refusal> {
        if is_stale(recorded.time, self.shared.clock.now().wall) {
            return Ok(false);
        }
        match &recorded.event {
            Event::ApprovalRequested(asked) => {
                let row = unless_gone(self.approval(&asked.id.to_string()).await)?;
                Ok(row.is_some_and(|row| row.state == ApprovalState::Open))
            }
            Event::BudgetExceeded(reached) => Ok(!self.was_crossed_before(recorded, reached).await?),
            _ => Ok(true),
        }
    }

    /// Whether another session ran into the same budget before, in the same period: each of those that use it records that.
    async fn was_crossed_before(
        &self,
        recorded: &Published,
        reached: &BudgetReached,
    ) -> Result<bool, Refusal> {
        let Some(period) = reached.period else { return Ok(false) };
        let since = Some(period.start(recorded.time));
        let filter = EventFilter { kinds: vec![Kind::BudgetExceeded], since, ..EventFilter::default() };
        let before = self.shared.store.events_before(Some(recorded.seq), &filter, CROSSINGS).await?;
        Ok(before.rows.iter().any(
            |other| matches!(&other.event, Event::BudgetExceeded(other) if other.is_same_crossing(reached)),
        ))
    }
}
