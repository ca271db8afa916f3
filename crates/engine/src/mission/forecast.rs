//! After each turn of a member with a tree of its own: whether its work will merge with that of the others, as theirs is
//! then, in the middle of a turn too.

use std::collections::BTreeMap;

use ostler_domain::{
    AssignmentId, Recorded, Refusal, SessionId,
    campaign::Campaign,
    event::Event,
    limits::{FORECAST_OTHERS, FORECAST_RUNNING},
    mission::Input,
    snapshot::Cause,
};

use super::{Command, actor::Actor};
use crate::{Engine, git::forecast::Stand};

/// What is to be looked at. One at a time: an older answer never comes after a newer one.
#[derive(Default)]
pub(super) struct Forecasts {
    is_looking: bool,
    /// Places of those whose trees have changed, with the turn.
    due: BTreeMap<usize, Option<u32>>,
    /// The end of the last member, which is heard when it is foreseen what its work will meet: nobody looks after that.
    held: Option<Box<Input>>,
}

/// Somebody whose work may meet that of others.
struct Other {
    id: AssignmentId,
    sessions: Vec<SessionId>,
    /// The one that works on it now.
    live: Option<SessionId>,
}

impl Actor {
    /// A member's turn has left something.
    pub(super) fn forecast_after(&mut self, recorded: &Recorded) {
        let Event::SnapshotTaken(taken) = &recorded.event else { return };
        let Some(place) = self.state.of_session(taken.session) else { return };
        if taken.cause == Cause::Turn && taken.commit.is_some() && self.state.is_to_be_merged(place) {
            self.forecasts.due.insert(place, Some(taken.turn));
            self.look_ahead();
        }
    }

    /// What was looked at when the daemon before this one ended is looked at again.
    pub(super) fn forecast_all(&mut self) {
        let active = (0..self.state.slots().len())
            .filter(|place| self.state.slots()[*place].is_active() && self.state.is_to_be_merged(*place));
        self.forecasts.due = active.map(|place| (place, None)).collect();
        self.look_ahead();
    }

    pub(super) async fn foreseen(&mut self, collisions: Vec<Input>) {
        self.forecasts.is_looking = false;
        for collision in collisions {
            self.take(collision).await;
        }
        self.look_ahead();
        if !self.forecasts.is_looking
            && let Some(end) = self.forecasts.held.take()
        {
            self.take(*end).await;
        }
    }

    /// News that are to be heard now. With the end of the last member the mission would be over before it is known whether
    /// what it left will merge, where no merge is asked for: that comes after a last look.
    pub(super) fn unless_foreseen_first(&mut self, input: Box<Input>) -> Option<Box<Input>> {
        let Input::SessionEnded { session, .. } = &*input else { return Some(input) };
        let place = self.state.of_session(*session);
        let is_last = |place: usize| {
            let slots = self.state.slots();
            (0..slots.len()).all(|other| (slots[other].end().is_some()) != (other == place))
        };
        let is_wanted = self.state.plan().merge.is_none() && self.state.stop().is_none();
        let place = place.filter(|place| {
            is_wanted
                && self.forecasts.held.is_none()
                && self.state.is_to_be_merged(*place)
                && is_last(*place)
        });
        let Some(place) = place.filter(|place| !self.state.meets(*place).is_empty()) else {
            return Some(input);
        };
        self.forecasts.due.entry(place).or_insert(None);
        self.forecasts.held = Some(input);
        self.look_ahead();
        None
    }

    fn look_ahead(&mut self) {
        if self.forecasts.is_looking {
            return;
        }
        let Some((place, turn)) = self.forecasts.due.pop_first() else { return };
        let mut others = self.state.meets(place);
        // Those that were begun last are the likeliest to meet it.
        let skipped = others.len().saturating_sub(FORECAST_OTHERS);
        others.drain(..skipped);
        let one = &self.state.slots()[place];
        let (one, sessions) = (one.assignment.id, one.sessions.clone());
        let of = |place: usize| {
            let slot = &self.state.slots()[place];
            Other { id: slot.assignment.id, sessions: slot.sessions.clone(), live: slot.session() }
        };
        let others: Vec<Other> = others.into_iter().map(of).collect();
        let (engine, campaign) = (self.engine.clone(), self.state.campaign());
        self.forecasts.is_looking = true;
        self.report(async move {
            let looked = async {
                let Some(stand) = engine.stand(&sessions).await? else { return Ok(Vec::new()) };
                let campaign = engine.campaign(&campaign.to_string()).await?;
                let stands = engine.stands_of(&campaign, others).await?;
                if stands.is_empty() {
                    return Ok(Vec::new());
                }
                engine.shared.forecast(&campaign, &stand, &stands).await
            };
            let found = looked.await.unwrap_or_else(|refusal: Refusal| {
                tracing::info!(assignment = %one, %refusal, "no forecast");
                Vec::new()
            });
            let collision = |(other, paths)| Input::Collision { one, other, paths, turn };
            Command::Foreseen(found.into_iter().map(collision).collect())
        });
    }
}

impl Engine {
    /// How far others have come: where one works, its tree is looked at as it is, else what its last turn left counts.
    async fn stands_of(
        &self,
        campaign: &Campaign,
        others: Vec<Other>,
    ) -> Result<Vec<(AssignmentId, Stand)>, Refusal> {
        let (mut stands, mut looks) = (Vec::new(), 0);
        for Other { id, sessions, live } in others.into_iter().rev() {
            let live = match live.filter(|_| looks < FORECAST_RUNNING) {
                Some(live) => self.shared.store.session(live).await?,
                None => None,
            };
            let now = match live.filter(|view| view.worktree.is_some()) {
                Some(view) => {
                    looks += 1;
                    self.shared.stand_now(campaign, &view).await
                }
                None => None,
            };
            let stand = match now {
                Some(now) => Some(now),
                None => self.stand(&sessions).await?,
            };
            stands.extend(stand.map(|stand| (id, stand)));
        }
        Ok(stands)
    }
}
