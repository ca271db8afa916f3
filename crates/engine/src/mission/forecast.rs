//! After each turn of a member with a tree of its own: whether its work will merge with that of the others.

use std::collections::BTreeMap;

use ostler_domain::{
    Recorded, Refusal, event::Event, limits::FORECAST_OTHERS, mission::Input, snapshot::Cause,
};

use super::{Command, actor::Actor};

/// What is to be looked at. One at a time: an older answer never comes after a newer one.
#[derive(Default)]
pub(super) struct Forecasts {
    is_looking: bool,
    /// Places of those whose trees have changed, with the turn.
    due: BTreeMap<usize, Option<u32>>,
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
        let of = |place: usize| {
            let slot = &self.state.slots()[place];
            (slot.assignment.id, slot.sessions.clone())
        };
        let (one, sessions) = of(place);
        let others: Vec<_> = others.into_iter().map(of).collect();
        let (engine, campaign) = (self.engine.clone(), self.state.campaign());
        self.forecasts.is_looking = true;
        self.report(async move {
            let looked = async {
                let Some(stand) = engine.stand(&sessions).await? else { return Ok(Vec::new()) };
                let mut stands = Vec::new();
                for (id, sessions) in others {
                    stands.extend(engine.stand(&sessions).await?.map(|stand| (id, stand)));
                }
                if stands.is_empty() {
                    return Ok(Vec::new());
                }
                let campaign = engine.campaign(&campaign.to_string()).await?;
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
