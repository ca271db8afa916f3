//! What a plan would come to, and what is expected of a mission: from what the like took and cost before.

use std::collections::{BTreeMap, BTreeSet};

use ostler_domain::{
    AssignmentId, MissionId, Name, Now, Refusal,
    limits::HISTORY_SAMPLES,
    mission::{
        self, Context, Faults, Interval, Member, Plan, Request, State, Strategy,
        estimate::{Estimate, estimate},
        eta::{Eta, History, HitRate, eta},
        plan::{Read, Terms, check_added, read, read_members_whole, read_whole},
    },
};
use ostler_store::DoneAssignment;

use crate::{Change, Engine, clock::entropy};

/// A plan that is to be looked at.
#[derive(Debug, Clone, Default)]
pub struct WantedPlan {
    /// Name, id, or any path in it.
    pub campaign: String,
    pub text: String,
    pub parameters: BTreeMap<String, String>,
    /// Of agents for whom it names none.
    pub provider: Option<String>,
    pub model: Option<String>,
}

/// What a plan without faults would come to.
#[derive(Debug, Clone)]
pub struct PlannedMission {
    pub plan: Plan,
    /// As it would be at its beginning.
    pub state: State,
    pub price: Estimate,
    pub eta: Eta,
    pub rate: HitRate,
}

impl Engine {
    /// What time it is here.
    pub fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// Reads a plan with what is known here, and says what it would come to, or what is wrong with it. Changes nothing.
    pub async fn plan_mission(
        &self,
        wanted: &WantedPlan,
        change: &Change,
    ) -> Result<Result<PlannedMission, Faults>, Refusal> {
        let campaign = self.campaign(&wanted.campaign).await?;
        let providers = self.shared.provider_names();
        let terms = Terms { parameters: Some(&wanted.parameters), providers: Some(&providers) };
        let Read { what: mut plan, lines, mut faults } = match read_whole(&wanted.text, &terms) {
            Ok(read) => read,
            Err(faults) => return Ok(Err(faults)),
        };
        let defaults = &mut plan.defaults;
        defaults.provider = defaults.provider.take().or_else(|| wanted.provider.clone());
        defaults.model = defaults.model.take().or_else(|| wanted.model.clone());
        let (settled, further) = self.settled(&campaign, plan.clone(), &lines, change).await?;
        faults.add(further);
        let settled = match Faults::unless(faults.0, settled) {
            Ok(settled) => settled,
            Err(faults) => return Ok(Err(faults)),
        };
        let now = self.shared.clock.now();
        let id = MissionId::new(now.wall, entropy());
        let context = Context {
            now: now.clone(),
            entropy: entropy(),
            used: Default::default(),
            paused_by_hand: Default::default(),
            halted: false,
        };
        let by = ostler_domain::event::By::ostler();
        let created = mission::create(settled, id, campaign.id, plan.named(), by, &context)?;
        let state = State::replay([(now.wall, &created)])
            .ok_or_else(|| Refusal::internal("a plan came to no mission"))?;
        let history = self.mission_history(&state).await?;
        let all: Vec<usize> = (0..state.slots().len()).collect();
        Ok(Ok(PlannedMission {
            price: estimate(&state, &all, &history),
            eta: eta(&state, &history, &now),
            rate: self.forecasts_that_held().await?,
            plan,
            state,
        }))
    }

    /// A plan's text, read with the providers that there are.
    pub fn read_plan(&self, text: &str, parameters: &BTreeMap<String, String>) -> Result<Plan, Faults> {
        let providers = self.shared.provider_names();
        read(text, &Terms { parameters: Some(parameters), providers: Some(&providers) })
    }

    /// Agents to add, read with the providers that there are.
    fn read_members(&self, text: &str) -> Result<Read<Vec<Member>>, Faults> {
        let providers = self.shared.provider_names();
        read_members_whole(text, &Terms { parameters: None, providers: Some(&providers) })
    }

    /// Agents to add to a mission, settled as those that it began with; or what is wrong with them, where they say it.
    pub(super) async fn members_to_add(
        &self,
        state: &State,
        text: &str,
        change: &Change,
    ) -> Result<Vec<Member>, Refusal> {
        let Read { what: members, lines, mut faults } = self.read_members(text)?;
        let campaign = self.campaign(&state.campaign().to_string()).await?;
        let mut further = Vec::new();
        let defaults = &state.plan().defaults;
        let members = self.settled_members(&campaign, defaults, members, &lines, change, &mut further).await;
        // Who asks twice, because nobody heard the answer, has them already.
        let is_there = |member: &Member| {
            let is_it = |one: &Member| one.name == member.name && one.task == member.task;
            state.plan().agents.iter().any(is_it) && !state.has_removed(&member.name)
        };
        if state.plan().strategy == Strategy::Adaptive && !members.iter().all(is_there) {
            further.extend(check_added(state, &members, &lines));
        }
        faults.add(further);
        Ok(Faults::unless(faults.0, members)?)
    }

    /// Adds the agents of a file to a mission.
    pub async fn add_to_mission(&self, who: &str, text: &str, change: Change) -> Result<State, Refusal> {
        let state = self.mission_state(who).await?;
        self.check_place_of(state.campaign(), state.name()).await?;
        let members = self.members_to_add(&state, text, &change).await?;
        self.ask_mission(who, Request::Add { members, from: None }, change).await
    }

    /// Starts a mission that was made and not started.
    pub async fn start_mission(&self, who: &str, change: Change) -> Result<State, Refusal> {
        // What is forecast differs from moment to moment, and is no part of what was asked for.
        let fingerprint = format!("start_mission {who}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.mission_state(&done).await;
        }
        let state = self.mission_state(who).await?;
        self.check_place_of(state.campaign(), state.name()).await?;
        let forecast = match state.started_at() {
            Some(_) => None,
            None => self.forecast(&state, &self.now()).await,
        };
        let done = change.done(&fingerprint, state.id().to_string());
        self.ask_mission_of(state.id(), Request::Start { forecast }, &change, done).await
    }

    /// How long a mission still takes, and how often such answers held.
    pub async fn mission_eta(&self, state: &State) -> Result<(Eta, HitRate), Refusal> {
        if state.is_over() {
            return Ok((Eta::Over, HitRate::default()));
        }
        let history = self.mission_times(state).await?;
        Ok((eta(state, &history, &self.shared.clock.now()), self.forecasts_that_held().await?))
    }

    /// What the assignments at these places would cost.
    pub async fn mission_price(&self, state: &State, places: &[usize]) -> Result<Estimate, Refusal> {
        Ok(estimate(state, places, &self.mission_history(state).await?))
    }

    /// The interval that a mission is started with, where there is a history to say so.
    pub(super) async fn forecast(&self, state: &State, now: &Now) -> Option<Interval> {
        let history = match self.mission_times(state).await {
            Ok(history) => history,
            Err(refusal) => {
                tracing::warn!(mission = %state.id(), %refusal, "started without a forecast");
                return None;
            }
        };
        match eta(state, &history, now) {
            Eta::In(interval) => Some(interval),
            Eta::Over | Eta::Merge | Eta::NoHistory { .. } | Eta::LittleHistory { .. } => None,
        }
    }

    /// What the roles of a mission did before.
    async fn done_before(&self, state: &State) -> Result<Vec<DoneAssignment>, Refusal> {
        let roles: BTreeSet<&Name> = state.slots().iter().map(|slot| &slot.assignment.role).collect();
        let mut done = Vec::new();
        for role in roles {
            done.extend(self.shared.store.done_assignments(role.as_str(), HISTORY_SAMPLES).await?);
        }
        Ok(done)
    }

    /// How long that took: asked for again and again, where its prices are not.
    async fn mission_times(&self, state: &State) -> Result<History, Refusal> {
        Ok(History::of(Self::timed_samples(self.done_before(state).await?)))
    }

    /// What it took and cost.
    async fn mission_history(&self, state: &State) -> Result<History, Refusal> {
        Ok(History::of(self.priced_samples(self.done_before(state).await?).await?))
    }

    async fn forecasts_that_held(&self) -> Result<HitRate, Refusal> {
        Ok(HitRate::of(self.shared.store.past_forecasts(HISTORY_SAMPLES).await?))
    }

    /// The assignments that are meant by these words.
    pub async fn assignments_named(&self, who: &str, which: &[String]) -> Result<Vec<AssignmentId>, Refusal> {
        if which.is_empty() {
            return Ok(Vec::new());
        }
        let state = self.mission_state(who).await?;
        which.iter().map(|word| assignment_named(&state, word)).collect()
    }

    /// What a request would have run and cost. Changes nothing.
    pub async fn priced_preview(
        &self,
        who: &str,
        request: &Request,
    ) -> Result<(State, mission::Preview, Estimate), Refusal> {
        let (state, preview) = self.preview_mission(who, request).await?;
        // What was begun is paid for to its end, too.
        let places: Vec<usize> = preview.runs.iter().chain(&preview.goes_on).copied().collect();
        let price = self.mission_price(&state, &places).await?;
        Ok((state, preview, price))
    }
}

fn assignment_named(state: &State, word: &str) -> Result<AssignmentId, Refusal> {
    if let Some(place) = state.find(word) {
        return Ok(state.slots()[place].assignment.id);
    }
    let names = state.slots().iter().map(|slot| slot.assignment.name.as_str());
    let said = ostler_domain::text::one_line(word, 64);
    let refusal = Refusal::invalid(format!("the mission {} has no assignment \"{said}\"", state.name()));
    Err(match ostler_domain::text::nearest(word, names) {
        Some(meant) => refusal.because(format!("{meant} may be meant")),
        None => refusal,
    }
    .hint(format!("ostler mission show {}", state.name()), "lists them"))
}
