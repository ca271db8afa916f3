//! MissionService.

use ostler_domain::{
    limits::{EVENT_PAGE_BYTES, PAGE_DEFAULT, PAGE_MOST},
    mission::{Filter, Listed, Request as Wish, State},
};
use ostler_engine::{Change, NewMission, PlannedMission, WantedPlan};
use ostler_wire::{
    from_proto,
    pb::{self, mission_service_server::MissionService},
    reply::{self, AssignmentRow, CollisionRow, MissionEta, MissionPrice, WholeMission},
    request::{MissionAction, PlanMission, ResumeMission},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, change_with_keys, invalid, refused};
use crate::Served;

/// Who asks for a change that may start an agent, under which id, and with which keys.
macro_rules! keyed {
    ($request:ident) => {
        change_with_keys(&mut $request, |inner| &inner.request_id, |inner| &mut inner.keys)?
    };
}

/// Answers with a mission alone.
macro_rules! answer {
    ($response:ident, $mission:expr) => {
        Ok(Response::new(pb::$response { mission: Some(to_proto::mission(&$mission)) }))
    };
}

#[async_trait]
impl MissionService for Served {
    async fn plan_mission(
        &self,
        mut request: Request<pb::PlanMissionRequest>,
    ) -> Result<Response<pb::PlanMissionResponse>, Status> {
        let change = change_with_keys(&mut request, |_| "", |inner| &mut inner.keys)?;
        let PlanMission { campaign, plan: text, parameters, provider, model } =
            from_proto::plan_mission(request.into_inner()).map_err(invalid)?;
        let wanted = WantedPlan { campaign, text, parameters, provider, model };
        let planned = self.engine.plan_mission(&wanted, &change).await.map_err(refused)?;
        let planned = match planned {
            Ok(planned) => sound(planned),
            Err(faults) => reply::PlannedMission::Faulty(faults.0),
        };
        Ok(Response::new(to_proto::planned_mission(&planned)))
    }

    async fn create_mission(
        &self,
        mut request: Request<pb::CreateMissionRequest>,
    ) -> Result<Response<pb::CreateMissionResponse>, Status> {
        let change = keyed!(request);
        let asked = from_proto::create_mission(request.into_inner()).map_err(invalid)?;
        let plan =
            self.engine.read_plan(&asked.plan, &asked.parameters).map_err(|faults| refused(faults.into()))?;
        let wanted = NewMission { campaign: asked.campaign, plan, starts: asked.starts };
        let state = self.engine.create_mission(wanted, change).await.map_err(refused)?;
        answer!(CreateMissionResponse, self.listed(&state).await?)
    }

    async fn start_mission(
        &self,
        mut request: Request<pb::StartMissionRequest>,
    ) -> Result<Response<pb::StartMissionResponse>, Status> {
        let change = keyed!(request);
        let state = self.engine.start_mission(&request.get_ref().who, change).await.map_err(refused)?;
        answer!(StartMissionResponse, self.listed(&state).await?)
    }

    async fn list_missions(
        &self,
        request: Request<pb::ListMissionsRequest>,
    ) -> Result<Response<pb::ListMissionsResponse>, Status> {
        let asked = request.into_inner();
        let page = from_proto::page(asked.limit, &asked.cursor).map_err(invalid)?;
        let filter = self.mission_filter(asked).await?;
        let listed = self.engine.missions(&filter, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListMissionsResponse {
            missions: listed.rows.iter().map(to_proto::mission).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn get_mission(
        &self,
        request: Request<pb::GetMissionRequest>,
    ) -> Result<Response<pb::GetMissionResponse>, Status> {
        let state = self.engine.mission_state(&request.get_ref().who).await.map_err(refused)?;
        let (eta, rate) = self.engine.mission_eta(&state).await.map_err(refused)?;
        let beside = self.engine.mission_beside(&state).await.map_err(refused)?;
        let now = self.engine.now();
        let mut assignments = AssignmentRow::all(&state, &now, &beside);
        let spent = assignments.iter_mut().map(|row| (row.id, &mut row.spent));
        self.engine.price_assignments(state.id(), spent).await.map_err(refused)?;
        let whole = WholeMission {
            mission: self.listed(&state).await?,
            assignments,
            wait: state.wait(beside.halted).map(|wait| wait.words(&state, &now)).unwrap_or_default(),
            eta: MissionEta::of(&eta, rate),
            collisions: CollisionRow::all(&state),
            why: state.ended().map(|over| over.why.clone()).unwrap_or_default(),
            metadata: state.plan().metadata.clone(),
        };
        Ok(Response::new(to_proto::whole_mission(&whole)))
    }

    async fn list_mission_events(
        &self,
        request: Request<pb::ListMissionEventsRequest>,
    ) -> Result<Response<pb::ListMissionEventsResponse>, Status> {
        let pb::ListMissionEventsRequest { who, after, limit } = request.into_inner();
        let limit = if limit == 0 { PAGE_DEFAULT } else { limit.min(PAGE_MOST) };
        let found = self.engine.mission_events(&who, after, limit).await.map_err(refused)?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in found.iter().map(to_proto::recorded) {
            bytes += event.body.len();
            events.push(event);
            if bytes >= EVENT_PAGE_BYTES {
                break;
            }
        }
        let has_more = events.len() < found.len() || found.len() >= limit as usize;
        let next_cursor = events.last().filter(|_| has_more).map(|event| event.seq);
        Ok(Response::new(pb::ListMissionEventsResponse { events, next_cursor }))
    }

    async fn preview_mission(
        &self,
        request: Request<pb::PreviewMissionRequest>,
    ) -> Result<Response<pb::PreviewMissionResponse>, Status> {
        let (action, asked) = from_proto::preview_mission(request.into_inner()).map_err(invalid)?;
        let ResumeMission { who, budget, more_time: time, which } = asked;
        let which = self.engine.assignments_named(&who, &which).await.map_err(refused)?;
        let wish = match action {
            MissionAction::Start => Wish::Start { forecast: None },
            MissionAction::Resume => Wish::Resume { budget, time, which },
            MissionAction::Retry => Wish::Retry { which, budget, time },
        };
        let (state, preview, price) = self.engine.priced_preview(&who, &wish).await.map_err(refused)?;
        let names = |places: &[usize]| places.iter().map(|place| name(&state, *place)).collect();
        let preview = reply::MissionPreview {
            mission: self.listed(&state).await?,
            runs: names(&preview.runs),
            goes_on: names(&preview.goes_on),
            price: MissionPrice::from(&price),
            merges_into: preview.merges_into,
        };
        Ok(Response::new(to_proto::mission_preview(&preview)))
    }

    async fn pause_mission(
        &self,
        request: Request<pb::PauseMissionRequest>,
    ) -> Result<Response<pb::PauseMissionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::PauseMissionRequest { who, why, .. } = request.into_inner();
        let (state, stood) = self.engine.pause_mission(&who, why, change).await.map_err(refused)?;
        let paused = reply::PausedMission {
            mission: self.listed(&state).await?,
            by_freezer: stood.by_freezer,
            by_signals: stood.by_signals,
            not_yet: stood.not_yet,
        };
        Ok(Response::new(to_proto::paused_mission(&paused)))
    }

    async fn resume_mission(
        &self,
        mut request: Request<pb::ResumeMissionRequest>,
    ) -> Result<Response<pb::ResumeMissionResponse>, Status> {
        let change = keyed!(request);
        let asked = from_proto::resume_mission(request.into_inner()).map_err(invalid)?;
        let which = self.engine.assignments_named(&asked.who, &asked.which).await.map_err(refused)?;
        let wish = Wish::Resume { budget: asked.budget, time: asked.more_time, which };
        answer!(ResumeMissionResponse, self.asked(&asked.who, wish, change).await?)
    }

    async fn cancel_mission(
        &self,
        request: Request<pb::CancelMissionRequest>,
    ) -> Result<Response<pb::CancelMissionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::CancelMissionRequest { who, why, .. } = request.into_inner();
        answer!(CancelMissionResponse, self.asked(&who, Wish::Cancel { why }, change).await?)
    }

    async fn retry_mission(
        &self,
        mut request: Request<pb::RetryMissionRequest>,
    ) -> Result<Response<pb::RetryMissionResponse>, Status> {
        let change = keyed!(request);
        let asked = from_proto::retry_mission(request.into_inner()).map_err(invalid)?;
        let which = self.engine.assignments_named(&asked.who, &asked.which).await.map_err(refused)?;
        let wish = Wish::Retry { which, budget: asked.budget, time: asked.more_time };
        answer!(RetryMissionResponse, self.asked(&asked.who, wish, change).await?)
    }

    async fn add_assignments(
        &self,
        mut request: Request<pb::AddAssignmentsRequest>,
    ) -> Result<Response<pb::AddAssignmentsResponse>, Status> {
        let change = keyed!(request);
        let pb::AddAssignmentsRequest { who, members, .. } = request.into_inner();
        let state = self.engine.add_to_mission(&who, &members, change).await.map_err(refused)?;
        answer!(AddAssignmentsResponse, self.listed(&state).await?)
    }

    async fn remove_assignments(
        &self,
        request: Request<pb::RemoveAssignmentsRequest>,
    ) -> Result<Response<pb::RemoveAssignmentsResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::RemoveAssignmentsRequest { who, which, .. } = request.into_inner();
        let which = self.engine.assignments_named(&who, &which).await.map_err(refused)?;
        answer!(RemoveAssignmentsResponse, self.asked(&who, Wish::Remove { which }, change).await?)
    }
}

impl Served {
    async fn asked(&self, who: &str, wish: Wish, change: Change) -> Result<Listed, Status> {
        let state = self.engine.ask_mission(who, wish, change).await.map_err(refused)?;
        self.listed(&state).await
    }

    async fn listed(&self, state: &State) -> Result<Listed, Status> {
        self.engine.listed_mission(state.id()).await.map_err(refused)
    }

    /// Puts ids in the place of words.
    async fn mission_filter(&self, mut asked: pb::ListMissionsRequest) -> Result<Filter, Status> {
        if let Some(campaign) = &mut asked.campaign {
            *campaign = self.engine.campaign(campaign).await.map_err(refused)?.id.to_string();
        }
        from_proto::mission_filter(asked).map_err(invalid)
    }
}

fn name(state: &State, place: usize) -> String {
    state.slots()[place].assignment.name.to_string()
}

fn sound(planned: PlannedMission) -> reply::PlannedMission {
    let PlannedMission { plan, state, price, eta, rate } = planned;
    let wave = |wave: &Vec<usize>| wave.iter().map(|place| name(&state, *place)).collect();
    reply::PlannedMission::Sound {
        plan: Box::new(plan),
        waves: state.graph().waves().iter().map(wave).collect(),
        price: MissionPrice::from(&price),
        eta: MissionEta::of(&eta, rate),
    }
}
