//! Missions: making them, asking them, and one actor for each that is not over.
//!
//! What follows from what is decided in `ostler_domain::mission`. A member's session is an ordinary one, and tells of
//! itself by its own events in the log: the actor reads them there, so nothing is missed while no daemon runs.

mod actor;
mod ask;
mod assign;
mod costs;
mod effects;
mod errands;
mod forecast;
mod member;
mod merge;
mod messages;
mod news;
mod pause;
mod plan;
mod progress;
mod seen;
mod settle;
pub(crate) mod shared_dir;
mod succession;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use ostler_domain::{
    CampaignId, FreeNumber, MissionId, Name, Reason, Refusal,
    budget::Used,
    campaign::Campaign,
    event::By,
    id::Fragment,
    limits::PAGE_MOST,
    mission::{self, Context, Faults, Filter, Input, Listed as Mission, Plan, Request, State, plan::Lines},
    query::{Listed, Page, SessionFilter},
    text::{one_line, shell_word},
};
use tokio::sync::{mpsc, watch};

pub(crate) use actor::Command;
pub(crate) use messages::not_there;
pub use pause::StoodStill;
pub use plan::{PlannedMission, WantedPlan};

use crate::{Change, Engine, clock::entropy};

/// The actors there are, by mission.
#[derive(Default)]
pub(crate) struct Missions {
    actors: Mutex<HashMap<MissionId, Known>>,
}

/// An actor, and its mission as it is when what it last decided was durable.
struct Known {
    commands: mpsc::Sender<Command>,
    state: watch::Receiver<State>,
}

impl Missions {
    fn get(&self, id: MissionId) -> Option<mpsc::Sender<Command>> {
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.get(&id).map(|known| &known.commands).filter(|actor| !actor.is_closed()).cloned()
    }

    /// How the mission of an actor stands.
    fn state(&self, id: MissionId) -> Option<State> {
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        let known = actors.get(&id).filter(|known| !known.commands.is_closed())?;
        Some(known.state.borrow().clone())
    }

    /// The same, as it changes.
    fn shown(&self, id: MissionId) -> Option<watch::Receiver<State>> {
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.get(&id).map(|known| known.state.clone())
    }

    /// Registers an actor; the one that is there already where somebody was faster.
    fn register(&self, id: MissionId, actor: Known) -> Result<(), mpsc::Sender<Command>> {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        match actors.get(&id).map(|known| &known.commands).filter(|there| !there.is_closed()) {
            Some(there) => Err(there.clone()),
            None => {
                actors.insert(id, actor);
                Ok(())
            }
        }
    }

    fn forget(&self, id: MissionId) {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// A mission that is to be.
#[derive(Debug, Clone)]
pub struct NewMission {
    /// Name, id, or any path in it.
    pub campaign: String,
    pub plan: Plan,
    /// It starts at once.
    pub starts: bool,
}

impl Engine {
    /// Makes a mission; it is durable when this returns.
    pub async fn create_mission(&self, wanted: NewMission, change: Change) -> Result<State, Refusal> {
        let fingerprint = format!("create_mission {wanted:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.mission_state(&done).await;
        }
        let campaign = self.campaign(&wanted.campaign).await?;
        let (plan, faults) = self.settled(&campaign, wanted.plan, &Lines::default(), &change).await?;
        Faults::unless(faults, ())?;
        let now = self.shared.clock.now();
        let id = MissionId::new(now.wall, entropy());
        let context = Context {
            now,
            entropy: entropy(),
            used: Default::default(),
            paused_by_hand: Default::default(),
            halted: false,
        };
        let state = {
            let _naming = self.shared.naming.lock().await;
            let name = self.free_mission_name(&plan).await?;
            let created = mission::create(plan, id, campaign.id, name, change.by.clone(), &context)?;
            let request = change.done(&fingerprint, id.to_string());
            self.record_nodes(vec![created], request).await?;
            self.loaded_mission(id).await?
        };
        shared_dir::make(&self.shared.options.state_dir, &state)
            .map_err(|error| Refusal::internal(format!("the mission's directory cannot be made: {error}")))?;
        if !wanted.starts {
            return Ok(state);
        }
        let forecast = self.forecast(&state, &self.shared.clock.now()).await;
        self.ask_mission_of(id, Request::Start { forecast }, &change, None).await
    }

    /// The name that a plan asks for, or one like it that no mission has which is not over.
    async fn free_mission_name(&self, plan: &Plan) -> Result<Name, Refusal> {
        let wanted = plan.named();
        let mut search = FreeNumber::default();
        while let Some(number) = search.question() {
            let name = if number == 1 { wanted.clone() } else { wanted.numbered(number) };
            let there = self.shared.store.missions_named(name.as_str()).await?;
            search.answer(number, there.iter().any(|mission| !mission.status.is_over()));
        }
        let number = search.found();
        Ok(if number == 1 { wanted } else { wanted.numbered(number) })
    }

    /// Asks something of a mission. Says how it stands when that is durable.
    pub async fn ask_mission(&self, who: &str, request: Request, change: Change) -> Result<State, Refusal> {
        let fingerprint = format!("ask_mission {who} {request:?}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.mission_state(&done).await;
        }
        let mission = self.mission(who).await?;
        if request.begins_something() {
            self.check_place_of(mission.campaign, &mission.name).await?;
        }
        let done = change.done(&fingerprint, mission.id.to_string());
        self.ask_mission_of(mission.id, request, &change, done).await
    }

    /// Refuses to have a mission begin anything where nobody may work any more: each of its sessions would be.
    pub(super) async fn check_place_of(&self, campaign: CampaignId, mission: &Name) -> Result<(), Refusal> {
        let row = self.shared.store.campaign(campaign).await?;
        let row = row.ok_or_else(|| Refusal::internal(format!("campaign {campaign} is not on record")))?;
        if row.removed.is_none() {
            return self.check_workplace(&row.campaign);
        }
        let Campaign { name, root, .. } = &row.campaign;
        let message = format!("the campaign {name} of the mission {mission} was removed");
        Err(Refusal::new(Reason::CampaignUnknown, message)
            .because("what was allowed there is allowed to nobody any more, also when it is added again")
            .hint(format!("ostler campaign add {}", shell_word(&root.path)), "registers the directory anew")
            .hint("ostler mission start FILE", "then starts its plan as another mission"))
    }

    /// What a request would have run, and how the mission stands.
    pub async fn preview_mission(
        &self,
        who: &str,
        request: &Request,
    ) -> Result<(State, mission::Preview), Refusal> {
        let state = self.mission_state(who).await?;
        let preview = mission::preview(&state, request)?;
        if request.begins_something() {
            self.check_place_of(state.campaign(), state.name()).await?;
        }
        // Whatever would be refused then is refused now.
        let context = Context {
            now: self.shared.clock.now(),
            entropy: entropy(),
            used: self.used_by_mission(state.id()).await?,
            paused_by_hand: Default::default(),
            halted: self.halted().is_some(),
        };
        mission::decide(&state, Input::Request(request.clone(), By::ostler()), &context)?;
        Ok((state, preview))
    }

    /// What all sessions of a mission have used.
    async fn used_by_mission(&self, id: MissionId) -> Result<Used, Refusal> {
        let filter = SessionFilter { missions: vec![id], ..SessionFilter::default() };
        let (mut used, prices) = (Used::default(), self.shared.prices.current());
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = self.shared.store.list_sessions(&filter, page).await?;
            listed.rows.iter().for_each(|view| used.add(&Used::of(&view.usage, &view.cost, &prices)));
            match listed.next_cursor {
                Some(next) => page.cursor = Some(next),
                None => return Ok(used),
            }
        }
    }

    /// The mission of an id, a unique part of one, or a name; of several with a name, the one that is not over, else the
    /// newest.
    pub async fn mission(&self, who: &str) -> Result<Mission, Refusal> {
        let store = &self.shared.store;
        if let Ok(id) = who.parse::<MissionId>() {
            return store.mission(id).await?.ok_or_else(|| unknown(who));
        }
        let mut named = store.missions_named(who).await?;
        if let Some(open) = named.iter().position(|mission| !mission.status.is_over()) {
            return Ok(named.swap_remove(open));
        }
        if !named.is_empty() {
            return Ok(named.remove(0));
        }
        let fragment = Fragment::parse(who, MissionId::PREFIX).ok_or_else(|| unknown(who))?;
        let mut found = store.find_missions(&fragment).await?;
        match found.len() {
            0 => Err(unknown(who)),
            1 => Ok(found.remove(0)),
            n => {
                let shown: Vec<String> =
                    found.iter().take(5).map(|one| format!("{} {}", one.id.short(), one.name)).collect();
                Err(Refusal::new(Reason::Ambiguous, format!("\"{}\" fits {n} missions", one_line(who, 64)))
                    .because(shown.join(" · ")))
            }
        }
    }

    /// The same, with what it cost at the prices of now.
    pub async fn listed_mission(&self, id: MissionId) -> Result<Mission, Refusal> {
        let mission = self.mission(&id.to_string()).await?;
        self.priced(mission).await
    }

    pub async fn missions(&self, filter: &Filter, page: Page) -> Result<Listed<Mission>, Refusal> {
        let Listed { rows, next_cursor } = self.shared.store.missions(filter, page).await?;
        let mut priced = Vec::with_capacity(rows.len());
        for mission in rows {
            priced.push(self.priced(mission).await?);
        }
        Ok(Listed { rows: priced, next_cursor })
    }

    /// A mission as its events add up.
    pub async fn mission_state(&self, who: &str) -> Result<State, Refusal> {
        let id = self.mission(who).await?.id;
        self.current_mission(id).await
    }

    /// A mission's events after a place in the log, oldest first.
    pub async fn mission_events(
        &self,
        who: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ostler_domain::Recorded>, Refusal> {
        let id = self.mission(who).await?.id;
        Ok(self.shared.store.mission_events(id, after, limit).await?)
    }

    pub(crate) async fn loaded_mission(&self, id: MissionId) -> Result<State, Refusal> {
        self.shared.store.load_mission(id).await?.ok_or_else(|| unknown(&id.to_string()))
    }

    /// Looks after every mission that is not over, as the daemon before this one did.
    pub(crate) async fn adopt_missions(&self) -> Result<(), Refusal> {
        for id in self.shared.store.open_missions().await? {
            if let Err(refusal) = self.mission_actor(id).await {
                tracing::error!(mission = %id, %refusal, "the mission cannot be looked after");
            }
        }
        Ok(())
    }
}

fn unknown(who: &str) -> Refusal {
    Refusal::new(Reason::MissionUnknown, format!("there is no mission \"{}\"", one_line(who, 64)))
        .hint("ostler mission ls -a", "lists all there are")
        .hint("ostler mission start FILE", "starts one from a plan")
}

/// Ostler itself, where no person asked.
pub(crate) fn by_mission(state: &State) -> By {
    By::of_mission(state.name())
}
