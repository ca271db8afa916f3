//! Missions: teams of agents with one objective.

use ostler_domain::{
    Kind, Reason, Refusal, Time,
    limits::PAGE_MOST,
    mission::{Filter, Listed as Mission, Standing, State},
    query::{Listed, Page},
};
use ostler_wire::{
    from_proto,
    pb::{self, mission_service_client::MissionServiceClient as Service},
    reply::{EventPage, MissionPreview, PausedMission, PlannedMission, Received, WholeMission},
    request::{CreateMission, MissionAction, PlanMission, ResumeMission, RetryMission},
    to_proto,
};

use crate::{Client, Error};

/// Asks for something that is answered with the mission as it then is.
macro_rules! ask {
    ($client:ident, $method:ident, $request:expr) => {{
        let request = $request;
        let answer =
            $client.ask(async |channel| Service::new(channel).$method(request.clone()).await).await?;
        Ok(from_proto::answered_mission(answer.mission)?)
    }};
}

impl Client {
    /// The kinds of events that missions are made of.
    pub const MISSION_KINDS: &'static [Kind] = &[
        Kind::MissionCreated,
        Kind::MissionStarted,
        Kind::MissionPaused,
        Kind::MissionResumed,
        Kind::MissionHeld,
        Kind::MissionReleased,
        Kind::MissionBudgetWarned,
        Kind::MissionBudgetChanged,
        Kind::MissionStopRequested,
        Kind::MissionEnded,
        Kind::AssignmentsReady,
        Kind::AssignmentStarted,
        Kind::AssignmentMoved,
        Kind::AssignmentCheckStarted,
        Kind::AssignmentRetried,
        Kind::AssignmentEnded,
        Kind::AssignmentsReopened,
        Kind::AssignmentsAdded,
        Kind::AssignmentsRemoved,
        Kind::AssignmentNudged,
        Kind::AssignmentBegan,
        Kind::AssignmentUnstuck,
        Kind::CollisionForecast,
        Kind::MergeStarted,
        Kind::MergeChecked,
        Kind::MergeMoving,
        Kind::MergeEnded,
        Kind::MissionArchived,
    ];

    /// Reads a plan, the text of a TOML file, with values for its parameters, and says what is wrong with it or what it
    /// would come to. Changes nothing.
    pub async fn plan_mission(&self, wanted: PlanMission) -> Result<PlannedMission, Error> {
        let mut request = to_proto::plan_mission(wanted);
        request.keys = to_proto::caller_keys(&self.keys);
        let answer =
            self.ask(async |channel| Service::new(channel).plan_mission(request.clone()).await).await?;
        Ok(from_proto::planned_mission(answer)?)
    }

    /// Makes a mission, and starts it where that is wanted. It is durable when this returns.
    pub async fn create_mission(&self, wanted: CreateMission) -> Result<Mission, Error> {
        let mut request = to_proto::create_mission(wanted, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        ask!(self, create_mission, request)
    }

    /// Starts a mission that was made and not started.
    pub async fn start_mission(&self, who: &str) -> Result<Mission, Error> {
        let request = pb::StartMissionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            keys: to_proto::caller_keys(&self.keys),
        };
        ask!(self, start_mission, request)
    }

    /// Lists missions, newest first.
    pub async fn missions(&self, filter: &Filter, page: Page) -> Result<Listed<Mission>, Error> {
        let request = to_proto::list_missions(filter, page);
        let answer =
            self.ask(async |channel| Service::new(channel).list_missions(request.clone()).await).await?;
        Ok(from_proto::listed(answer.missions, &answer.next_cursor, from_proto::mission)?)
    }

    /// Returns a mission with its assignments, by its id, a unique part of one, or its name.
    pub async fn mission(&self, who: &str) -> Result<WholeMission, Error> {
        let request = pb::GetMissionRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).get_mission(request.clone()).await).await?;
        Ok(from_proto::whole_mission(answer)?)
    }

    /// A mission's events after a place in the log, oldest first.
    pub async fn mission_events(&self, who: &str, after: u64, limit: u32) -> Result<EventPage, Error> {
        let request = pb::ListMissionEventsRequest { who: who.to_owned(), after, limit };
        let answer = self
            .ask(async |channel| Service::new(channel).list_mission_events(request.clone()).await)
            .await?;
        Ok(from_proto::mission_events(answer)?)
    }

    /// A mission as its events add up, and the place in the log of the last of them: a watch from there on misses nothing.
    pub async fn mission_state(&self, who: &str) -> Result<(State, u64), Error> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.mission_events(who, after, PAGE_MOST).await?;
            events.extend(page.events);
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        let last = events.last().map_or(0, Received::seq);
        let known = events.iter().filter_map(|event| match event {
            Received::Known(recorded) => Some((recorded.time, &recorded.event)),
            Received::Unknown(_) => None,
        });
        let state = State::replay(known).ok_or_else(|| {
            Refusal::new(
                Reason::Internal,
                format!("the events of the mission \"{who}\" are not known to this version"),
            )
            .hint("ostler version", "says which this is")
        });
        let mut state = state.map_err(Error::Refused)?;
        // Its events have what it cost at the prices of then.
        if state.slots().iter().any(|slot| slot.spent.unpriced) {
            let rows = self.mission(&state.id().to_string()).await?.assignments;
            state.price(rows.into_iter().map(|row| (row.id, row.spent)));
        }
        Ok((state, last))
    }

    /// A mission's report as it is at this moment, in markdown, and the state that it is about.
    pub async fn mission_report(&self, who: &str, now: Time) -> Result<(State, String), Error> {
        let id = self.mission(who).await?.mission.id.to_string();
        let (state, _) = self.mission_state(&id).await?;
        // Later than the events, or an attempt that ended in between would be in neither.
        let rows = self.mission(&id).await?.assignments;
        let known = rows.into_iter().map(|row| (row.id, Standing { status: row.status, spent: row.spent }));
        let report = state.report(now, &known.collect());
        Ok((state, report))
    }

    /// Says what a request would have run, and what that would cost, or that it would be refused. Changes nothing.
    pub async fn preview_mission(
        &self,
        action: MissionAction,
        wanted: ResumeMission,
    ) -> Result<MissionPreview, Error> {
        let request = to_proto::preview_mission(action, wanted);
        let answer =
            self.ask(async |channel| Service::new(channel).preview_mission(request.clone()).await).await?;
        Ok(from_proto::mission_preview(answer)?)
    }

    /// Freezes what runs, and begins nothing new. Says how many stand still by then, and in which way.
    pub async fn pause_mission(&self, who: &str, why: &str) -> Result<PausedMission, Error> {
        let request = pb::PauseMissionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            why: why.to_owned(),
        };
        let answer =
            self.ask(async |channel| Service::new(channel).pause_mission(request.clone()).await).await?;
        Ok(from_proto::paused_mission(answer)?)
    }

    /// Lets a mission that is paused, or waits for a person, go on.
    pub async fn resume_mission(&self, wanted: ResumeMission) -> Result<Mission, Error> {
        let mut request = to_proto::resume_mission(wanted, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        ask!(self, resume_mission, request)
    }

    /// Ends a mission before its work is done: what runs is stopped, what has not begun is not begun.
    pub async fn cancel_mission(&self, who: &str, why: &str) -> Result<Mission, Error> {
        let request = pb::CancelMissionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            why: why.to_owned(),
        };
        ask!(self, cancel_mission, request)
    }

    /// Does again what failed, was skipped or was cancelled, and what follows from it; never what was completed.
    pub async fn retry_mission(&self, wanted: RetryMission) -> Result<Mission, Error> {
        let mut request = to_proto::retry_mission(wanted, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        ask!(self, retry_mission, request)
    }

    /// Adds agents, the text of a TOML file with nothing but `[[agents]]`, to a mission that is not over.
    pub async fn add_assignments(&self, who: &str, members: &str) -> Result<Mission, Error> {
        let request = pb::AddAssignmentsRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            members: members.to_owned(),
            keys: to_proto::caller_keys(&self.keys),
        };
        ask!(self, add_assignments, request)
    }

    /// Takes assignments away that have not begun: what needed them no longer does.
    pub async fn remove_assignments(&self, who: &str, which: &[String]) -> Result<Mission, Error> {
        let request = pb::RemoveAssignmentsRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            which: which.to_vec(),
        };
        ask!(self, remove_assignments, request)
    }
}
